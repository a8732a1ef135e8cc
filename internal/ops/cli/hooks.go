package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/ops/clients"
)

// versionWait is how long a CLI may take to print its version: a cold start of a large one takes seconds.
const versionWait = 30 * time.Second

func hooksLong() string {
	return `Put outlive's hook into the settings of agent CLIs, so that outlive monitor hears at once when an agent waits, has
finished or has failed. Other hooks, comments and formatting stay; the file as it was is kept beside it, and remove gives
it back.

Nothing is allowed or denied by this alone. With install --ask, permission requests of ` + asking(" and ") + ` can be
answered through the monitor; without a monitor, or without an answer in time, their own dialog decides as always.`
}

// asking are the CLIs that let a hook decide on a permission.
func asking(between string) string {
	var titles []string
	for _, v := range hooks.Vendors() {
		if v.CanAsk() {
			titles = append(titles, v.Title)
		}
	}
	return strings.Join(titles, between)
}

const hooksInstallLong = `

The CLI is asked for its version, and gets those hooks that it knows. One that runs new hooks only after they were trusted
in its own dialog is named.

EXIT STATUS
  0  done, also when there was nothing to do
  1  a CLI is missing, too old or of unknown version, or its settings could not be read or written
  2  a mistake in the command line`

// hooksFlags are the flags of `outlive hooks` and its verbs.
type hooksFlags struct {
	project string
	home    string
	command string
	ask     bool
	wait    time.Duration
	force   bool
	dryRun  bool
}

func newHooks(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hooks",
		Short: "Connect agent CLIs' hooks with the monitor",
		Long:  hooksLong(),
		Args:  takes(0, 0),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newHooksInstall(io), newHooksRemove(io), newHooksStatus(io))
	return cmd
}

// vendorArgs takes names of CLIs, at least min of them.
func vendorArgs(min int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		for _, name := range args {
			if hooks.VendorNamed(name) == nil {
				return fail(exitUsage, "%s: no such CLI; must be one of %s", name, vendorNames(", "))
			}
		}
		if len(args) < min {
			return fail(exitUsage, "name the CLI: %s", vendorNames(", "))
		}
		return nil
	}
}

func newHooksInstall(io streams) *cobra.Command {
	var f hooksFlags
	cmd := &cobra.Command{
		Use:     "install " + vendorNames("|") + " … [flags]",
		Short:   "Put the hook into a CLI's settings",
		Long:    hooksLong() + hooksInstallLong,
		Example: "  outlive hooks install claude\n  outlive hooks install claude codex --ask",
		Args:    vendorArgs(1), ValidArgs: vendorList(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.wait <= 0 {
				return fail(exitUsage, "--wait %s: must be above 0", f.wait)
			}
			return eachVendor(args, func(v *hooks.Vendor) error { return f.install(cmd.Context(), io, v) })
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.BoolVar(&f.ask, "ask", false, "have permission requests answered through the monitor")
	fl.DurationVar(&f.wait, "wait", hooks.DefaultWait, "how long a permission request waits for its answer")
	f.define(fl)
	defineHome(fl, &f.home)
	fl.StringVar(&f.command, "command", "", "the program that the CLI is to run (default: this outlive)")
	fl.BoolVar(&f.force, "force", false, "install all hooks, whatever the CLI's version")
	return cmd
}

func newHooksRemove(io streams) *cobra.Command {
	var f hooksFlags
	cmd := &cobra.Command{
		Use:   "remove " + vendorNames("|") + " … [flags]",
		Short: "Take the hook out of a CLI's settings",
		Args:  vendorArgs(1), ValidArgs: vendorList(),
		RunE: func(_ *cobra.Command, args []string) error {
			return eachVendor(args, func(v *hooks.Vendor) error { return f.remove(io, v) })
		},
	}
	f.define(cmd.Flags())
	return cmd
}

func newHooksStatus(io streams) *cobra.Command {
	var f hooksFlags
	cmd := &cobra.Command{
		Use:   "status [" + vendorNames("|") + " …] [flags]",
		Short: "Show which hooks are in the CLIs' settings",
		Args:  vendorArgs(0), ValidArgs: vendorList(),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = strings.Split(vendorNames(" "), " ")
			}
			return eachVendor(args, func(v *hooks.Vendor) error { return f.status(io, v) })
		},
	}
	cmd.Flags().StringVar(&f.project, "project", "", "the settings in this directory instead of yours")
	return cmd
}

func (f *hooksFlags) define(fl *pflag.FlagSet) {
	fl.SortFlags = false
	fl.StringVar(&f.project, "project", "", "the settings in this directory instead of yours")
	fl.BoolVarP(&f.dryRun, "dry-run", "n", false, "show what would be done, and do nothing")
}

// eachVendor runs do for each named CLI, also after an error of one.
func eachVendor(names []string, do func(*hooks.Vendor) error) error {
	var failed []error
	for _, name := range names {
		if err := do(hooks.VendorNamed(name)); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	if len(failed) > 0 {
		return &exitError{exitFailure, errors.Join(failed...)}
	}
	return nil
}

func (f *hooksFlags) settings(v *hooks.Vendor) (*hooks.SettingsFile, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find your home directory: %w", err)
	}
	project := f.project
	if project != "" {
		if project, err = filepath.Abs(project); err != nil {
			return nil, fmt.Errorf("--project %s: %w", f.project, err)
		}
	}
	return hooks.ReadSettings(v.SettingsPath(home, os.Getenv, project))
}

func (f *hooksFlags) install(ctx context.Context, io streams, v *hooks.Vendor) error {
	if f.ask && !v.CanAsk() {
		return fmt.Errorf("--ask: %s lets no hook decide on a permission", v.Title)
	}
	version, err := versionOf(ctx, v)
	if err != nil && !f.force {
		return fmt.Errorf("%w; --force installs all hooks nevertheless", err)
	}
	o, err := f.entryOptions(v)
	if err != nil {
		return err
	}
	entries, tooOld := v.Entries(version, o)
	if len(entries) == 0 {
		return fmt.Errorf("%s %s is too old for hooks: %s; --force installs them nevertheless", v.Title, version, strings.Join(tooOld, ", "))
	}
	file, err := f.settings(v)
	if err != nil {
		return err
	}
	text, err := v.Install(file.Text, entries)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	for _, event := range tooOld {
		fmt.Fprintf(io.out, "%s: %s is too old for %s: left out\n", v.Name, version, event)
	}
	had, _ := v.Inspect(file.Text) // what is wrong with hooks of ours in it is replaced
	changed, err := f.save(io, v, file, text)
	if err != nil {
		return err
	}
	if changed {
		fmt.Fprintf(io.out, "%s: %d hooks in %s; sessions that are open see them when they start again\n", v.Name, len(entries), file.Path)
		if v.Trust != "" {
			fmt.Fprintln(io.out, v.Name+": "+v.Trust)
		}
	}
	tellOff(io, v, file, had)
	return nil
}

// tellOff says that a settings file switches all hooks off, with the key that does: no hook in it runs.
func tellOff(io streams, v *hooks.Vendor, file *hooks.SettingsFile, s hooks.Status) {
	if s.Off {
		fmt.Fprintf(io.out, "%s: %s is %s in %s: all hooks are switched off, and none runs until that is changed\n", v.Name, strings.Join(v.Off, "."), v.OffValue, file.Path)
	}
}

// entryOptions maps the flags to the options of the hooks' commands.
func (f *hooksFlags) entryOptions(v *hooks.Vendor) (hooks.EntryOptions, error) {
	o := hooks.EntryOptions{Wait: f.wait, Any: f.force}
	program, err := outliveCommand(f.command, false)
	if err != nil {
		return o, err
	}
	if !clients.IsOutlive(program) {
		return o, fmt.Errorf("the CLI would run %s, and the hook is known by its program's name when it is taken out again: call it outlive", program)
	}
	var flags []string
	if f.home != "" {
		home, err := expandHome(f.home)
		if err != nil {
			return o, err
		}
		flags = append(flags, "--home", home)
	}
	o.Command = v.HookCommand(program, flags...)
	var ask []string
	if f.ask {
		ask = append(ask, "--ask")
	}
	if f.wait != hooks.DefaultWait {
		ask = append(ask, "--wait", f.wait.String())
	}
	o.AskFlags = strings.Join(ask, " ")
	return o, nil
}

func (f *hooksFlags) remove(io streams, v *hooks.Vendor) error {
	file, err := f.settings(v)
	if err != nil {
		return err
	}
	text, err := v.Remove(file.Text)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	changed, err := f.save(io, v, file, text)
	if err != nil || !changed {
		return err
	}
	fmt.Fprintf(io.out, "%s: no hooks of outlive are in %s any more\n", v.Name, file.Path)
	_, err = atomicfile.DropBackups(file.Path, file.Text)
	return err
}

// save shows the changes and writes them, with a back-up. It reports whether something was written.
func (f *hooksFlags) save(io streams, v *hooks.Vendor, file *hooks.SettingsFile, text []byte) (bool, error) {
	if bytes.Equal(text, file.Text) {
		fmt.Fprintf(io.out, "%s: nothing to do in %s\n", v.Name, file.Path)
		return false, nil
	}
	showDiff(io.out, file.Path, file.Text, text)
	if f.dryRun {
		fmt.Fprintf(io.out, "%s: nothing was written\n", v.Name)
		return false, nil
	}
	var backup string
	if had, err := v.Inspect(file.Text); err != nil || len(had.Ours) == 0 { // with hooks of ours in it, the back-up was made before
		if backup, err = atomicfile.Backup(file.Path, file.Text, time.Now()); err != nil {
			return false, err
		}
	}
	if err := file.Save(text); err != nil {
		return false, perhapsRunning(err, "CLI")
	}
	if backup != "" {
		fmt.Fprintf(io.out, "%s: as it was: %s\n", v.Name, backup)
	}
	return true, nil
}

func (f *hooksFlags) status(io streams, v *hooks.Vendor) error {
	file, err := f.settings(v)
	if err != nil {
		return err
	}
	s, err := v.Inspect(file.Text)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	fmt.Fprintf(io.out, "%s: %d hooks of outlive, %d of others in %s\n", v.Name, len(s.Ours), s.Others, file.Path)
	for _, e := range s.Ours {
		fmt.Fprintf(io.out, "  %-17s %s (%s)\n", e.Event, e.Command, e.Timeout)
	}
	tellOff(io, v, file, s)
	return nil
}

// versionOf asks a CLI for its version.
func versionOf(ctx context.Context, v *hooks.Vendor) (version hooks.Version, err error) {
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	path, err := exec.LookPath(v.Name)
	if err != nil {
		return version, fmt.Errorf("its version decides which hooks it knows: %w", err)
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return version, fmt.Errorf("%s --version: %w", path, err)
	}
	version, ok := hooks.ParseVersion(string(out))
	if !ok {
		return version, fmt.Errorf("%s --version says no version: %.80q", path, out)
	}
	return version, nil
}

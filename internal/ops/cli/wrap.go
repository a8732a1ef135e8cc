package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/ops/clients"
)

// wrapFlags are the flags of `outlive wrap` as they were given.
type wrapFlags struct {
	clientFlags
	command string
	shared  bool
	dryRun  bool
	run     []string // flags for outlive run, behind the "--"
}

func newWrap(io streams) *cobra.Command {
	var f wrapFlags
	cmd := &cobra.Command{
		Use:   "wrap [flags] [-- RUN-FLAGS…]",
		Short: "Put outlive in front of the servers in AI clients' configurations",
		Long: `Rewrite the configuration of AI clients so that each stdio server runs under outlive run. The change is shown as a diff
and made; with --dry-run it is only shown. Secrets are shown as [redacted], and stay in the file as they are. Comments and formatting stay, and the file as it was is kept beside it. Servers
that are reached over the network, or wrapped already, are left. outlive unwrap takes the change back, and keeps
what was changed meanwhile.

Files of a project, such as .mcp.json, are often shared with others who may not have outlive: they are changed only with
--project.

EXIT STATUS
  0  done, also when there was nothing to do
  1  a client, server or file could not be found, read or written
  2  a mistake in the command line`,
		Example: "  outlive wrap --dry-run\n  outlive wrap --client cursor --server files -- --standby 1",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return fail(exitUsage, "wrap takes no arguments but flags of outlive run behind --; got %q", args[0])
			}
			f.run = args
			if f.shared {
				f.run = append([]string{"--shared"}, args...)
			}
			return f.wrap(io)
		},
	}
	f.define(cmd.Flags(), "", "also the files of the project in this directory (default: none)")
	cmd.Flags().StringVar(&f.command, "command", "", "what the client is to start (default: this outlive, by its name on PATH in a project's files)")
	cmd.Flags().BoolVar(&f.shared, "shared", false, "as -- --shared: clients use one process of each server together")
	cmd.Flags().BoolVarP(&f.dryRun, "dry-run", "n", false, "show what would be done, and do nothing")
	return cmd
}

// check finds mistakes in the flags for outlive run before they stand in a client's file.
func (f *wrapFlags) check() error {
	run := newRunFlags()
	fl := run.flagSet()
	if err := fl.Parse(f.run); err != nil {
		return fail(exitUsage, "behind --: %w", err)
	}
	if fl.NArg() > 0 || fl.Changed("name") {
		return fail(exitUsage, "behind -- stand flags of outlive run only, and no --name: each server keeps its own")
	}
	if _, err := run.check("", []string{"server"}, fl.Changed); err != nil {
		return err
	}
	if err := sharingPossible(); run.shared && err != nil {
		return fail(exitUsage, "--shared: %w", err)
	}
	return nil
}

func (f *wrapFlags) wrap(io streams) error {
	if err := f.check(); err != nil {
		return err
	}
	// Whichever command a file gets, it is of this program.
	command, err := outliveCommand(f.command, false)
	if err != nil {
		return err
	}
	if !clients.IsOutlive(command) {
		return fail(exitFailure, "the clients would start %s, and outlive is known by its name when it is taken out again: call the program outlive", command)
	}
	err = f.editAll(io.out, fileEdit{done: "wrapped", dryRun: f.dryRun, text: f.text, write: saveWrapped})
	f.tellProject(io)
	return err
}

// tellProject names the files of the project in this directory that are left because nobody has asked for them.
func (f *wrapFlags) tellProject(io streams) {
	sys, err := thisSystem()
	chosen, unknown := f.chosen()
	dir, wrong := os.Getwd()
	if f.project != "" || errors.Join(err, unknown, wrong) != nil || dir == sys.Home {
		return
	}
	var places []clients.Place
	for _, c := range chosen {
		places = append(places, slices.DeleteFunc(c.Places(sys, dir), func(p clients.Place) bool { return !p.Project })...)
	}
	for _, file := range clients.Find(places) {
		_, outcomes, err := file.Client.Wrap(file.Text, clients.Options{Only: f.wants})
		outcomes = slices.DeleteFunc(outcomes, func(o clients.Outcome) bool { return o.Why != "" })
		if rel, _ := filepath.Rel(dir, file.Path); err == nil && len(outcomes) > 0 {
			fmt.Fprintf(io.out, "%s in this directory's %s (%s) left, since others may share it: outlive wrap --project .\n", counted(len(outcomes), "server"), rel, file.Client.Title)
		}
	}
}

// text is a file with outlive in front of its servers.
func (f *wrapFlags) text(file clients.File, only func(clients.Server) bool) ([]byte, []clients.Outcome, error) {
	command, err := outliveCommand(f.command, file.Project)
	if err != nil {
		return nil, nil, err
	}
	return file.Client.Wrap(file.Text, clients.Options{Outlive: command, Flags: f.run, Label: labelOf, Only: only})
}

// saveWrapped makes a back-up and writes the file.
func saveWrapped(w io.Writer, file clients.File, text []byte) error {
	backup, err := atomicfile.Backup(file.Path, file.Text, time.Now())
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(file.Path, file.Text, text); err != nil {
		return perhapsRunning(err, "client")
	}
	fmt.Fprintf(w, "%s: as it was: %s\n", file.Client.Name, backup)
	return nil
}

// labelOf makes a server's name fit for --name. ".js.js" loses one ending at a time.
func labelOf(name string) string { return cmp.Or(plainName(plainName(name)), "server") }

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/ops/service"
)

const serviceLong = `Have the system start outlive monitor, gateway, dashboard, fleet hub or fleet join at login and again whenever it ends: a user unit for systemd, an
agent for launchd, or a task for Windows' Task Scheduler. What is behind -- are the verb's flags.

The service gets the PATH of the installing user, since agents and servers are found by it, and what --env names. Under
systemd it also reads ~/.config/outlive/NAME.env, if it is there: lines of NAME=value, the place for tokens. A task of Windows
has its user's environment.`

// services are the verbs that can be a service; a dash in a name stands for a blank in the verb.
var services = map[string]service.Service{
	"monitor":    {About: "outlive monitor: keeps unattended agents moving", Notifies: true, Watchdog: 2 * time.Minute, Keeps: true},
	"gateway":    {About: "outlive gateway: keeps MCP servers alive behind one endpoint"},
	"dashboard":  {About: "outlive dashboard: everything that is kept alive, on a page"},
	"fleet-hub":  {About: "outlive fleet hub: where the machines of a fleet meet"},
	"fleet-join": {About: "outlive fleet join: this machine in its fleet"},
}

// serviceNames are they for people.
const serviceNames = "monitor, gateway, dashboard, fleet-hub or fleet-join"

// serviceFlags are the flags of `outlive service`.
type serviceFlags struct {
	kind    service.Kind
	program string
	environ []string
	now     bool
}

func newService(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Have the system keep monitor, gateway, dashboard, or fleet hub or member running",
		Long:  serviceLong,
		Args:  takes(0, 0),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	verb := func(name, short, example string, run func(*serviceFlags, streams, string, []string) error) *cobra.Command {
		f := &serviceFlags{}
		sub := &cobra.Command{
			Use: name + " SERVICE [flags] [-- FLAGS]", Short: short, Example: example,
			Args: func(cmd *cobra.Command, args []string) error {
				if before := cmd.ArgsLenAtDash(); before > 1 || before < 0 && len(args) != 1 || before == 0 || len(args) == 0 {
					return fail(exitUsage, "service %s: must be %s, with its own flags after --", name, serviceNames)
				}
				if _, ok := services[args[0]]; !ok {
					return fail(exitUsage, "service %s %s: must be %s", name, args[0], serviceNames)
				}
				if !slices.Contains([]service.Kind{service.ForSystemd, service.ForLaunchd, service.ForWindows}, f.kind) {
					return fail(exitUsage, "--for %s: systemd, launchd or windows", f.kind)
				}
				return nil
			},
			ValidArgs: slices.Sorted(maps.Keys(services)),
			RunE:      func(_ *cobra.Command, args []string) error { return run(f, io, args[0], args[1:]) },
		}
		fl := sub.Flags()
		fl.SortFlags = false
		fl.StringVar((*string)(&f.kind), "for", string(nativeService), "whose service: systemd, launchd or windows")
		if name != "remove" {
			fl.StringVar(&f.program, "program", "", "path of outlive (default: this one, as PATH has it)")
			fl.StringArrayVar(&f.environ, "env", nil, "NAME or NAME=VALUE for the service's environment; may be repeated")
		}
		if name != "print" {
			fl.BoolVar(&f.now, "now", false, name+" it in the running system, too")
		}
		return sub
	}
	cmd.AddCommand(
		verb("print", "Show the service's file", "  outlive service print monitor", (*serviceFlags).print),
		verb("install", "Write the service's file, and say what switches it on",
			"  outlive service install monitor --now\n  outlive service install gateway -- -c ~/outlive.yaml --listen 127.0.0.1:8080", (*serviceFlags).install),
		verb("remove", "Take the service's file away", "  outlive service remove monitor --now", (*serviceFlags).remove),
	)
	return cmd
}

func (f *serviceFlags) print(io streams, name string, flags []string) error {
	text, err := f.text(name, flags)
	if err != nil {
		return err
	}
	_, err = io.out.Write(text)
	return err
}

func (f *serviceFlags) install(io streams, name string, flags []string) error {
	text, err := f.text(name, flags)
	if err != nil {
		return err
	}
	place, err := f.place(name)
	if err != nil {
		return err
	}
	if f.kind == service.ForWindows {
		text = service.UTF16(text)
	}
	if err := os.MkdirAll(stateDir(), 0o700); err != nil { // launchd does not make the log's
		return &exitError{exitFailure, err}
	}
	_, missing := os.Stat(place.Path)
	changed, err := place.Write(text)
	if err != nil {
		return &exitError{exitFailure, err}
	}
	what := "wrote"
	if !changed {
		what = "nothing to do:"
	}
	fmt.Fprintln(io.out, what, place.Path)
	if f.kind == service.ForSystemd {
		fmt.Fprintln(io.out, "tokens and the like belong into", environFile(name))
		if setsPath(environFile(name)) {
			fmt.Fprintln(io.out, "the PATH in that file counts, and not yours: take it out there to have yours")
		}
	}
	if place.Remark != "" {
		fmt.Fprintln(io.out, place.Remark)
	}
	commands := f.switchOn(place, changed, missing == nil)
	if f.now {
		return runAll(io, place, commands)
	}
	fmt.Fprintln(io.out, "to start it now and at every login:")
	showAll(io, commands)
	return nil
}

// switchOn are the commands after which the system has the service with its file as it is now. thereWas says that it had one before.
func (f *serviceFlags) switchOn(place service.Place, changed, thereWas bool) [][]string {
	if f.now && len(place.Known) > 0 && len(place.Renew) > 0 { // launchd refuses what it has, the same file as well
		if thereWas = known(place); thereWas && !changed {
			return nil
		}
	}
	if thereWas && changed && len(place.Renew) > 0 {
		return place.Renew
	}
	return place.Enable
}

func (f *serviceFlags) remove(io streams, name string, flags []string) error {
	if len(flags) > 0 {
		return fail(exitUsage, "service remove %s: takes no arguments after --", name)
	}
	place, err := f.place(name)
	if err != nil {
		return err
	}
	if f.now && known(place) {
		if err := runAll(io, place, place.Disable); err != nil {
			return err
		}
	}
	there, err := place.Remove()
	if err != nil {
		return &exitError{exitFailure, err}
	}
	if !there {
		fmt.Fprintln(io.out, "nothing to do: there is no", place.Path)
		return nil
	}
	fmt.Fprintln(io.out, "removed", place.Path)
	if !f.now {
		fmt.Fprintln(io.out, "to stop it, if it runs:")
		showAll(io, place.Stop)
	}
	return nil
}

// known reports whether the system has the service, as far as it says so.
func known(place service.Place) bool {
	if len(place.Known) == 0 {
		_, err := os.Stat(place.Path)
		return err == nil
	}
	_, no := errors.AsType[*exec.ExitError](exec.Command(place.Known[0], place.Known[1:]...).Run())
	return !no
}

// setsPath reports whether a file with variables has a PATH: for systemd it counts more than that of the unit.
func setsPath(file string) bool {
	text, _ := os.ReadFile(file) // systemd does without it, too
	return slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return strings.HasPrefix(strings.TrimSpace(line), "PATH=")
	})
}

// text is the service's file.
func (f *serviceFlags) text(name string, flags []string) ([]byte, error) {
	s := services[name]
	s.Name, s.EnvironFile, s.Log = name, environFile(name), filepath.Join(stateDir(), name+".service.log")
	program, err := outliveCommand(f.program, false) // an installer may have its file elsewhere with the next version
	if err != nil {
		return nil, err
	}
	if flag, path := relativePath(flags); path != "" {
		return nil, fail(exitUsage, "service %s: %s %s: the service runs in another directory than this one: write the whole path", name, flag, path)
	}
	s.Command = slices.Concat([]string{program}, strings.Split(name, "-"), flags)
	if f.kind == service.ForWindows && len(f.environ) > 0 {
		return nil, fail(exitUsage, "--env: a task of Windows has the environment of its user: set the variable there, such as with setx NAME VALUE")
	}
	if s.Environ, err = f.environment(); err != nil {
		return nil, err
	}
	var text []byte
	switch f.kind {
	case service.ForSystemd:
		text, err = service.Systemd(s)
	case service.ForLaunchd:
		text, err = service.Launchd(s)
	case service.ForWindows:
		who := ""
		if u, err := user.Current(); err == nil {
			who = u.Username
		}
		text, err = service.Task(s, who)
	}
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return text, nil
}

// pathFlags are the flags with a path, of all verbs that can be a service.
var pathFlags = []string{"-c", "--config", "--token-file", "--peer-secret-file", "--home", "--creds"}

// relativePath returns the first path that depends on the working directory, with its flag; "": there is none.
func relativePath(flags []string) (flag, path string) {
	for i, word := range flags {
		flag, path, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(flags) {
			path = flags[i+1]
		}
		ofWindows := len(path) > 1 && path[1] == ':' || strings.HasPrefix(path, `\`)
		if slices.Contains(pathFlags, flag) && path != "" && !filepath.IsAbs(path) && !ofWindows {
			return flag, path
		}
	}
	return "", ""
}

// environment is what the service is given, the last of a name counting. A name alone stands for its value here and now.
func (f *serviceFlags) environment() ([]string, error) {
	wanted := append([]string{"PATH"}, f.environ...)
	var environ []string
	for _, kv := range wanted {
		name, value, given := strings.Cut(kv, "=")
		if !given {
			if value, given = os.LookupEnv(name); !given && name != "PATH" {
				return nil, fail(exitUsage, "--env %s: no such variable", name)
			}
		}
		environ = slices.DeleteFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if given {
			environ = append(environ, name+"="+value)
		}
	}
	return environ, nil
}

func environFile(name string) string { return filepath.Join(configDir(), name+".env") }

// place is where the service's file belongs.
func (f *serviceFlags) place(name string) (service.Place, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return service.Place{}, fail(exitFailure, "find the home directory: %w", err)
	}
	var dir string
	switch f.kind {
	case service.ForSystemd:
		dir = filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "systemd", "user")
	case service.ForLaunchd:
		dir = filepath.Join(home, "Library", "LaunchAgents")
	case service.ForWindows:
		dir = filepath.Join(stateDir(), "services")
	}
	return service.PlaceOf(f.kind, name, dir, os.Getuid()), nil
}

func showAll(io streams, commands [][]string) {
	for _, c := range commands {
		words := slices.Clone(c)
		for i, w := range words {
			if strings.ContainsAny(w, " \t") { // such as a path below C:\Users\First Last
				words[i] = `"` + w + `"`
			}
		}
		fmt.Fprintln(io.out, "  "+strings.Join(words, " "))
	}
}

// leaveTime is how long a service may take to end: launchd kills one after 20 s. leaveLook is how often it is looked whether it has.
const (
	leaveTime = 30 * time.Second
	leaveLook = 100 * time.Millisecond
)

// leave runs the command by which the system gives a service up, and waits until it has. Before that it refuses another file.
func leave(cmd *exec.Cmd, place service.Place) error {
	err := cmd.Run()
	if status, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || status.ExitCode() != place.InProgress) {
		return err
	}
	for end := time.Now().Add(leaveTime); known(place); time.Sleep(leaveLook) {
		if time.Now().After(end) {
			return fmt.Errorf("the service has not ended within %s", leaveTime)
		}
	}
	return nil
}

// runAll runs commands for a service one after the other, up to the first that fails.
func runAll(io streams, place service.Place, commands [][]string) error {
	for n, c := range commands {
		fmt.Fprintln(io.out, "+", strings.Join(c, " "))
		cmd := exec.Command(c[0], c[1:]...)
		cmd.Stdout, cmd.Stderr = io.out, io.err
		run := cmd.Run
		if slices.Equal(c, place.Leaves) {
			run = func() error { return leave(cmd, place) }
		}
		if err := run(); err != nil {
			var left []string
			for _, c := range commands[n:] {
				left = append(left, strings.Join(c, " "))
			}
			hint := "; once its cause is mended: " + strings.Join(left, " && ")
			if errors.Is(err, exec.ErrNotFound) {
				hint = "; without --now the file alone is dealt with"
			}
			return fail(exitFailure, "%s: %w%s", strings.Join(c, " "), err, hint)
		}
	}
	return nil
}

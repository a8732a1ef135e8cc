package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/pflag"

	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/ops/clients"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// clientFlags pick clients, servers and files; wrap, unwrap and doctor share them.
type clientFlags struct {
	clients []string
	servers []string
	project string
}

func (f *clientFlags) define(fl *pflag.FlagSet, project, projectHelp string) {
	fl.SortFlags = false
	fl.StringSliceVar(&f.clients, "client", nil, "only this client, repeated for several: "+strings.Join(clientNames(), ", ")+" (default: all that are found)")
	fl.StringSliceVar(&f.servers, "server", nil, "only the server of this name, repeated for several (default: all)")
	fl.StringVar(&f.project, "project", project, projectHelp)
}

// clientNames are the clients by the names that --client takes.
func clientNames() (names []string) {
	for _, c := range clients.All() {
		names = append(names, c.Name)
	}
	return names
}

// wants reports whether the flags pick a server.
func (f *clientFlags) wants(s clients.Server) bool {
	return len(f.servers) == 0 || slices.Contains(f.servers, s.Name)
}

// thisSystem is the machine outlive runs on.
func thisSystem() (clients.System, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return clients.System{}, fail(exitFailure, "find your home directory: %w", err)
	}
	return clients.System{OS: systemName, Home: home, Env: os.Getenv}, nil
}

// find returns the files that the flags select. A client of --client without a file is an error with the places
// searched.
func (f *clientFlags) find(sys clients.System) ([]clients.File, error) {
	project := f.project
	if project != "" {
		abs, err := filepath.Abs(project)
		if err != nil {
			return nil, fail(exitUsage, "--project %s: %w", project, err)
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return nil, fail(exitUsage, "--project %s: there is no such directory", project)
		}
		project = abs
	}
	if len(f.clients) == 0 {
		var places []clients.Place
		for _, c := range clients.All() {
			places = append(places, c.Places(sys, project)...)
		}
		return clients.Find(places), nil
	}
	var files []clients.File
	for _, name := range f.clients {
		c := clients.Named(name)
		if c == nil {
			return nil, fail(exitUsage, "--client %s: no such client; outlive wrap --help lists them", name)
		}
		places := c.Places(sys, project)
		found := clients.Find(places)
		if len(found) == 0 {
			var looked []string
			for _, p := range places {
				looked = append(looked, p.Path)
			}
			return nil, fail(exitFailure, "%s has no configuration here; looked for %s", c.Title, strings.Join(looked, ", "))
		}
		files = append(files, found...)
	}
	return files, nil
}

// missing names the servers of --server that no file has.
func (f *clientFlags) missing(seen map[string]bool) error {
	for _, name := range f.servers {
		if !seen[name] {
			return fail(exitFailure, "--server %s: no configuration that was looked at has a server of this name", name)
		}
	}
	return nil
}

// editAll finds the files, calls edit for each, and reports the results, also after an error of one.
func (f *clientFlags) editAll(io streams, dryRun bool, edit func(clients.File, map[string]bool) (int, error)) error {
	sys, err := thisSystem()
	if err != nil {
		return err
	}
	files, err := f.find(sys)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	var failed []error
	edited := 0
	for _, file := range files {
		n, err := edit(file, seen)
		edited += n
		if err != nil {
			failed = append(failed, err)
		}
	}
	switch {
	case len(failed) > 0:
		return fail(exitFailure, "%w", errors.Join(failed...))
	case len(files) == 0:
		fmt.Fprintln(io.out, "No client's configuration was found. outlive wrap knows those of "+strings.Join(clientNames(), ", ")+"; others are edited by hand: put outlive run -- in front of the command.")
	case edited == 0:
		fmt.Fprintln(io.out, "Nothing to do.")
	case dryRun:
		fmt.Fprintf(io.out, "%s would be changed; nothing was written.\n", counted(edited, "server"))
	default:
		fmt.Fprintf(io.out, "%s changed. The clients see it when they are started again.\n", counted(edited, "server"))
	}
	return f.missing(seen)
}

// tellOutcomes prints a line for each server.
func tellOutcomes(w io.Writer, c *clients.Client, outcomes []clients.Outcome, verbs map[clients.Action]string) {
	for _, o := range outcomes {
		name := o.Server.Name
		if p := o.Server.Project(); p != "" {
			name += " (in " + p + ")"
		}
		told := verbs[o.Action]
		if o.Action == clients.Left {
			told = "left: " + o.Why
		}
		fmt.Fprintf(w, "%s: %s: %s\n", c.Name, logline.Printable(name), logline.Printable(told)) // somebody else may have written the file
	}
}

// showDiff prints an edit as a diff, without secrets, since people paste diffs into reports.
func showDiff(w io.Writer, path string, before, after []byte) {
	_, text, _ := strings.Cut(string(diff.Diff(path, before, path, after)), "\n") // without the line "diff a b"
	known := append(config.Secrets(path, before), config.Secrets(path, after)...)
	fmt.Fprint(logline.NewScreen(w), known.Redact(text))
}

// outliveCommand is how a client is to start outlive. In a file that others share it is the bare name, as long as that is
// found here. In the user's own it is a full path, because a client started from the desktop often has a shorter PATH
// than a shell; and it is the one on PATH, because the file that runs may move with the next version.
func outliveCommand(project bool) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fail(exitFailure, "find the program that runs: %w", err)
	}
	onPath, err := exec.LookPath("outlive" + filepath.Ext(self))
	switch {
	case err != nil || !filepath.IsAbs(onPath) || !sameFile(onPath, self):
		return self, nil
	case project:
		return "outlive", nil
	}
	return onPath, nil
}

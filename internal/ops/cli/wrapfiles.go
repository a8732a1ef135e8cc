package cli

import (
	"bytes"
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

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
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

// chosen are the clients of --client, or all.
func (f *clientFlags) chosen() ([]*clients.Client, error) {
	if len(f.clients) == 0 {
		return clients.All(), nil
	}
	var chosen []*clients.Client
	for _, name := range f.clients {
		c := clients.Named(name)
		if c == nil {
			return nil, fail(exitUsage, "--client %s: no such client; outlive wrap --help lists them", name)
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}

// find returns the machine and the files that the flags select. A client of --client without a file is an error with the places
// searched.
func (f *clientFlags) find() (sys clients.System, files []clients.File, err error) {
	project := f.project
	if project != "" {
		if project, err = filepath.Abs(project); err != nil {
			return sys, nil, fail(exitUsage, "--project %s: %w", f.project, err)
		}
		if info, err := os.Stat(project); err != nil || !info.IsDir() {
			return sys, nil, fail(exitUsage, "--project %s: there is no such directory", f.project)
		}
	}
	chosen, err := f.chosen()
	if err == nil {
		sys, err = thisSystem()
	}
	if err != nil {
		return sys, nil, err
	}
	var places []clients.Place
	for _, c := range chosen {
		own := c.Places(sys, project)
		if len(f.clients) > 0 && len(clients.Find(own)) == 0 {
			var looked []string
			for _, p := range own {
				looked = append(looked, p.Path)
			}
			return sys, nil, fail(exitFailure, "%s has no configuration here; looked for %s", c.Title, strings.Join(looked, ", "))
		}
		places = append(places, own...)
	}
	return sys, clients.Find(places), nil // each file once, also where two clients or flags name it
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

// fileEdit is what a verb does with clients' files.
type fileEdit struct {
	done   string // to a server
	dryRun bool
	// text returns a file as it is to be, and write puts that in the place of what there is.
	text  func(file clients.File, only func(clients.Server) bool) ([]byte, []clients.Outcome, error)
	write func(w io.Writer, file clients.File, text []byte) error
}

// editAll finds the files, edits each, and reports the results, also after an error of one.
func (f *clientFlags) editAll(w io.Writer, e fileEdit) error {
	_, files, err := f.find()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	var failed []error
	edited := 0
	for _, file := range files {
		n, err := e.edit(w, file, func(s clients.Server) bool {
			seen[s.Name] = true
			return f.wants(s)
		})
		edited += n
		if err != nil {
			failed = append(failed, err)
		}
	}
	switch {
	case len(failed) > 0:
		return fail(exitFailure, "%w", errors.Join(failed...))
	case len(files) == 0:
		fmt.Fprintln(w, "No client's configuration was found. outlive wrap knows those of "+strings.Join(clientNames(), ", ")+"; others are edited by hand: put outlive run -- in front of the command.")
	case edited == 0:
		fmt.Fprintln(w, "Nothing to do.")
	case e.dryRun:
		fmt.Fprintf(w, "%s would be changed; nothing was written.\n", counted(edited, "server"))
	default:
		fmt.Fprintf(w, "%s changed. The clients see it when they are started again.\n", counted(edited, "server"))
	}
	return f.missing(seen)
}

// edit edits one file, prints a line for each server, and returns how many of them are others now.
func (e fileEdit) edit(w io.Writer, file clients.File, only func(clients.Server) bool) (edited int, err error) {
	if file.Err != nil {
		return 0, file.Err
	}
	text, outcomes, err := e.text(file, only)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file.Path, err)
	}
	showDiff(w, file.Path, file.Text, text)
	for _, o := range outcomes {
		name, told := o.Server.Name, "left: "+o.Why
		if p := o.Server.Project(); p != "" {
			name += " (in " + p + ")"
		}
		if o.Why == "" {
			told = e.done
			edited++
		}
		fmt.Fprintf(w, "%s: %s: %s\n", file.Client.Name, logline.Printable(name), logline.Printable(told)) // somebody else may have written the file
	}
	if e.dryRun || bytes.Equal(text, file.Text) {
		return edited, nil
	}
	return edited, e.write(w, file, text)
}

// perhapsRunning is the error of an edit, with what to do if the program whose file it is has changed it meanwhile.
func perhapsRunning(err error, program string) error {
	if errors.Is(err, atomicfile.ErrChanged) {
		return fmt.Errorf("%w; is the %s running? Nothing was written: try again", err, program)
	}
	return err
}

// showDiff prints an edit as a diff, without secrets, since people paste diffs into reports.
func showDiff(w io.Writer, path string, before, after []byte) {
	_, text, _ := strings.Cut(string(diff.Diff(path, before, path, after)), "\n") // without the line "diff a b"
	known := append(config.Secrets(path, before), config.Secrets(path, after)...)
	fmt.Fprint(logline.NewScreen(w), known.Redact(text))
}

// outliveCommand is how a client is to start outlive: as somebody has given it, or else, in a file that others share, by the bare name, as
// long as that is found here. In the user's own it is a full path, because a client started from the desktop often has a shorter PATH
// than a shell; and it is the one on PATH, because the file that runs may move with the next version.
func outliveCommand(given string, project bool) (string, error) {
	if given != "" {
		return given, nil
	}
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

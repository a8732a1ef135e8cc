package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/ops/clients"
	"github.com/outlive-mcp/outlive/internal/ops/serverprobe"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// sideBySide is how many servers are looked at at once.
const sideBySide = 4

// fileReport is a client's file as outlive doctor shows it.
type fileReport struct {
	Client  string `json:"client"`
	Path    string `json:"path"`
	Project bool   `json:"project,omitempty"`
	Servers int    `json:"servers"`
	Problem string `json:"problem,omitempty"`
}

// serverReport is a server in a client's file as outlive doctor shows it.
type serverReport struct {
	Client  string `json:"client"`
	Path    string `json:"path"`
	Project string `json:"project,omitempty"`
	Name    string `json:"name"`
	// State is "ok", "warning", "failed", or why it was not started: "remote", "extension", "disabled", "gateway", "unknown",
	// "found", "not started".
	State     string   `json:"state"`
	Wrapped   bool     `json:"wrapped"`
	Command   []string `json:"command,omitempty"` // without outlive in front
	Era       string   `json:"era,omitempty"`
	Only      bool     `json:"only_era,omitempty"`     // it speaks no other one
	Installer string   `json:"installed_by,omitempty"` // the launcher that installed it first, which was waited for
	Version   string   `json:"protocol_version,omitempty"`
	Server    string   `json:"server,omitempty"`
	ReadyMS   int64    `json:"ready_ms,omitempty"`
	Problem   string   `json:"problem,omitempty"`
	Hint      string   `json:"hint,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Stderr    []string `json:"stderr,omitempty"`
}

// examination is one server that is to be started, for all the entries that start just the same one.
type examination struct {
	spec    serverprobe.Spec
	entries []int // in diagnosis.Servers
}

// examine looks at the servers of all files that the flags pick.
func (f *doctorFlags) examine(ctx context.Context, d *diagnosis) error {
	d.Files, d.Servers = []fileReport{}, []serverReport{}
	sys, files, err := f.find()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	todo := map[string]*examination{}
	for _, file := range files {
		report := fileReport{Client: file.Client.Name, Path: file.Path, Project: file.Project}
		servers, err := file.Client.Servers(file.Text)
		if err = errors.Join(file.Err, err); err != nil {
			report.Problem = err.Error()
		}
		for _, s := range servers {
			seen[s.Name] = true
			if !f.wants(s) {
				continue
			}
			report.Servers++
			r, spec := f.prepare(sys, file, s)
			d.Servers = append(d.Servers, r)
			if spec != nil {
				key := fmt.Sprintf("%q %q %q", spec.Argv, spec.Dir, slices.Sorted(slices.Values(spec.Env)))
				if todo[key] == nil {
					todo[key] = &examination{spec: *spec}
				}
				todo[key].entries = append(todo[key].entries, len(d.Servers)-1)
			}
		}
		d.Files = append(d.Files, report)
	}
	d.examineAll(ctx, inTurn(todo))
	return f.missing(seen)
}

// prepare says what is known of a server without starting it, and how it is started; nil when it is not.
func (f *doctorFlags) prepare(sys clients.System, file clients.File, s clients.Server) (serverReport, *serverprobe.Spec) {
	r := serverReport{Client: file.Client.Name, Path: file.Path, Project: s.Project(), Name: s.Name}
	if file.Project {
		r.Project, _ = filepath.Abs(f.project)
	}
	outer := s.Command
	r.Wrapped = s.Wrapped()
	inner, known := s.Inner()
	switch {
	case s.Odd != "" && !s.Disabled:
		r.State, r.Problem = "failed", s.Odd
	case s.Extension && !s.Disabled:
		r.State = "extension"
	case s.Remote(), !known && slices.ContainsFunc(s.Args, isURL):
		r.State = "remote"
	case s.Disabled:
		r.State = "disabled"
	case s.Gateway():
		r.State = "gateway"
	case !known:
		r.State, r.Problem = "unknown", `there is no "--" before the server's command`
	}
	if r.State != "" {
		return r, nil
	}
	s.Command, s.Args = inner[0], inner[1:]
	s, err := file.Client.Expand(s, sys, r.Project)
	argv := append([]string{s.Command}, s.Args...)
	r.Command = secret.Words(argv)
	if err != nil {
		r.State, r.Problem = "unknown", err.Error()
		return r, nil
	}
	dir := cmp.Or(s.Dir, r.Project)
	if r.Wrapped {
		if _, err := child.Resolve(outer, dir); err != nil {
			r.fail(err)
			return r, nil
		}
	}
	if f.noStart || file.Project && !f.chosen {
		r.State = "found"
		if !f.noStart {
			r.State = notStarted
		}
		if _, err := child.Resolve(s.Command, dir); err != nil {
			r.fail(err)
		}
		return r, nil
	}
	return r, &serverprobe.Spec{Argv: argv, Dir: dir, Env: withVars(s.Env), Timeout: f.timeout, InstallTime: f.installTime, Waiting: f.waiting(s.Name)}
}

// waiting tells on the terminal which server is being installed; nil: there is none.
func (f *doctorFlags) waiting(name string) func(by string, since time.Duration) {
	if f.progress == nil {
		return nil
	}
	return func(by string, since time.Duration) {
		fmt.Fprintf(f.progress, "%s: %s is installing it, which is waited for (%s of at most %s)\n", logline.Printable(name), by, since.Round(time.Second), f.installTime)
	}
}

// withVars is what a server is handed: our own environment, and what is set for it.
func withVars(set map[string]string) []string {
	env := os.Environ()
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, name+"="+set[name])
	}
	return env
}

// notStarted is the state of a server in a file that came with the working directory: its command runs only when somebody
// names the project.
const notStarted = "not started"

// fail notes why a command cannot be started.
func (r *serverReport) fail(err error) {
	r.State, r.Problem = "failed", err.Error()
	if why, ok := errors.AsType[*child.StartError](err); ok {
		r.Problem, r.Hint = fmt.Sprintf("%v: %s: %s", why.Err, why.Command, why.Detail), why.Hint
	}
}

// inTurn puts those into one list that may not start at once: two launchers of one package would install it into one place.
func inTurn(todo map[string]*examination) [][]*examination {
	var lists [][]*examination
	at := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(todo)) {
		x := todo[key]
		command := fmt.Sprintf("%q", x.spec.Argv)
		if i, ok := at[command]; ok && launcher.Installs(x.spec.Argv) != "" {
			lists[i] = append(lists[i], x)
			continue
		}
		at[command] = len(lists)
		lists = append(lists, []*examination{x})
	}
	return lists
}

// examineAll starts the servers, a few lists of them side by side, and returns when all have been looked at.
func (d *diagnosis) examineAll(ctx context.Context, lists [][]*examination) {
	var wg sync.WaitGroup
	places := make(chan struct{}, sideBySide)
	for _, list := range lists {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			for _, x := range list {
				var seen serverprobe.Report
				if err := ctx.Err(); err != nil {
					seen.Problem = "not looked at: " + err.Error()
				} else {
					seen = serverprobe.Run(ctx, x.spec)
				}
				for _, i := range x.entries { // nobody else has these entries
					d.Servers[i].note(seen)
				}
			}
		})
	}
	wg.Wait()
}

// note turns what was seen into what is shown.
func (r *serverReport) note(seen serverprobe.Report) {
	r.Problem, r.Hint, r.Stderr, r.Installer = seen.Problem, seen.Hint, seen.Stderr, seen.Installer
	if seen.Ready {
		r.Era, r.Version, r.Server, r.ReadyMS = seen.Era.String(), seen.Version, seen.Server, seen.ReadyAfter.Milliseconds()
		r.Only = seen.Only
	}
	if seen.Garbage > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d lines on stdout are not messages, which ends the connection in some clients; the first: %s", seen.Garbage, seen.GarbageLine))
	}
	if seen.Stubborn {
		r.Warnings = append(r.Warnings, fmt.Sprintf("it does not end within %s after its stdin is closed", serverprobe.UsualGrace))
	}
	if len(seen.LeftBehind) > 0 {
		r.Warnings = append(r.Warnings, "it leaves processes behind: "+strings.Join(seen.LeftBehind, "; "))
	}
	switch {
	case !seen.Ready:
		r.State = "failed"
	case len(r.Warnings) > 0:
		r.State = "warning"
	default:
		r.State = "ok"
	}
}

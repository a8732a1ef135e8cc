package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

func agentScanLong() string {
	return `Find the sessions of ` + knownCLIs() + ` that run on this machine for this user,
by their processes and their own files. Nothing has to be declared or configured, and nothing is changed.

With --add, those that are not declared yet are: one agent for each directory and kind, named after the directory. How
it is started or gone on with is not known then: only a human is told of its stalls until its entry in registry.yaml says.

EXIT STATUS
  0  looked, also when nothing runs
  1  the processes or the registry could not be read, or the registry could not be written`
}

// knownCLIs are the CLIs whose sessions are found by themselves.
func knownCLIs() string { return strings.Join(agentcli.Titles(agentcli.CLI.Known), ", ") }

// scanned is an agent that runs, as scan shows it.
type scanned struct {
	PID      int        `json:"pid"`
	Kind     string     `json:"kind"`
	Dir      string     `json:"dir"`
	Session  string     `json:"session,omitempty"`
	Status   string     `json:"status"` // busy, idle, waiting, retrying; "unknown"
	Waiting  string     `json:"waiting_for,omitempty"`
	Since    *time.Time `json:"since,omitempty"` // that it has this status
	Began    time.Time  `json:"began"`
	Declared string     `json:"declared,omitempty"` // the name of the agent that it is declared as

}

func newAgentScan(io streams) *cobra.Command {
	var home string
	var asJSON, add bool
	cmd := &cobra.Command{
		Use:   "scan",
		Short: "Find the agent CLIs that run here, declared or not",
		Long:  agentScanLong(),
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, r, err := readRegistry(home)
			if err != nil {
				return err
			}
			list := scan(o, r)
			if add {
				if err := addScanned(io, home, list); err != nil {
					return err
				}
			}
			if asJSON {
				return encodeJSON(io.out, list)
			}
			return printScanned(io.out, o, list, time.Now())
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.BoolVar(&add, "add", false, "declare those that are not")
	fl.BoolVar(&asJSON, "json", false, "as a JSON array")
	defineHome(fl, &home)
	return cmd
}

func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// readRegistry reads who is declared in a home; nobody where there is no registry.
func readRegistry(given string) (monitor.Options, *registry.Registry, error) {
	home, err := monitorHome(given)
	if err != nil {
		return monitor.Options{}, nil, &exitError{exitUsage, err}
	}
	o := agentsOptions(home)
	r, err := registry.Read(registryOf(o), registry.Options{Home: o.UserHome})
	if errors.Is(err, os.ErrNotExist) {
		return o, &registry.Registry{}, nil
	}
	if err != nil {
		return o, nil, fail(exitFailure, "%w", err)
	}
	return o, r, nil
}

// runningAgents are the processes of agent CLIs.
func runningAgents() []agentcli.Process {
	procs := process.System{}
	all := procs.All()
	kinds := map[int]agentcli.Kind{}
	for _, e := range all {
		if args := procs.Args(e.PID); len(args) > 0 {
			if kind, ok := agentcli.Recognise(args); ok {
				kinds[e.PID] = kind
			}
		}
	}
	now := time.Now()
	var found []agentcli.Process
	for _, e := range outermost(all, kinds) {
		p := agentcli.Process{Kind: kinds[e.PID], PID: e.PID, Start: e.Start, Began: now.Add(-e.Age)}
		if look, err := procs.Look(e.PID); err == nil {
			p.Dir = look.Dir
		}
		found = append(found, p)
	}
	return found
}

// outermost are the CLIs that none of their kind has started. A child of the same kind, as of a package runner or a wrapper, is
// the same agent.
func outermost(all []process.Process, kinds map[int]agentcli.Kind) []process.Process {
	inner, table := map[int]bool{}, process.TableOf(all)
	for pid, kind := range kinds {
		for _, e := range table.Tree(pid) {
			inner[e.PID] = inner[e.PID] || e.PID != pid && kinds[e.PID] == kind
		}
	}
	return slices.DeleteFunc(all, func(e process.Process) bool { return kinds[e.PID] == "" || inner[e.PID] })
}

// scan finds the running agents, and what their files show.
func scan(o monitor.Options, r *registry.Registry) []scanned {
	procs := process.System{}
	running := runningAgents()
	reader := agentcli.NewReader(agentcli.Options{Places: o.Places, OpenFiles: procs.Files})
	sessions, _ := reader.Sessions(agentcli.Query{Processes: running}) // what cannot be read leaves a process without its session
	table := process.TableOf(procs.All())
	list := []scanned{}
	for _, p := range running {
		s := scanned{PID: p.PID, Kind: string(p.Kind), Dir: p.Dir, Status: "unknown", Began: p.Began, Declared: declaredAs(r, p)}
		tree := table.Tree(p.PID)
		for _, v := range sessions {
			mine := slices.ContainsFunc(tree, func(e process.Process) bool { return e.PID == v.PID && (v.Start == 0 || v.Start == e.Start) })
			if v.Kind != p.Kind || v.Subagent || !mine {
				continue
			}
			s.Session, s.Dir = v.ID, cmp.Or(p.Dir, v.Dir)
			s.Status, s.Waiting = cmp.Or(string(v.Status), "unknown"), string(v.WaitingFor)
			if !v.StatusAt.IsZero() {
				s.Since = &v.StatusAt
			}
			break // the latest is the first
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b scanned) int { return cmp.Or(strings.Compare(a.Dir, b.Dir), a.PID-b.PID) })
	return list
}

// declaredAs is the agent that a process is taken for, the one of the deepest directory.
func declaredAs(r *registry.Registry, p agentcli.Process) string {
	best := registry.Agent{}
	for _, a := range r.Agents {
		owns := a.Match.CWD == nil || *a.Match.CWD
		if a.Kind == p.Kind && owns && agentcli.Within(p.Dir, filepath.Clean(a.Path)) && len(a.Path) > len(best.Path) {
			best = a
		}
	}
	return best.Name
}

// addScanned declares the undeclared agents.
func addScanned(io streams, given string, list []scanned) error {
	user, _ := os.UserHomeDir()
	var fresh []*scanned
	for i := range list {
		s := &list[i]
		switch {
		case s.Declared != "":
		case s.Dir == "" || s.Dir == filepath.Dir(s.Dir) || s.Dir == user:
			fmt.Fprintf(io.err, "outlive: %s %d works in %s: everything below would be taken for it; declare it by hand, with --pidfile\n", s.Kind, s.PID, cmp.Or(s.Dir, "an unknown directory"))
		default:
			fresh = append(fresh, s)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	_, _, err := editRegistry(io, given, func(d *registry.Document) error {
		for i, s := range fresh {
			s.Declared = ""
			for _, before := range fresh[:i] {
				if before.Kind == s.Kind && before.Dir == s.Dir {
					s.Declared = before.Declared // two in one directory cannot be told apart
				}
			}
			if s.Declared != "" {
				continue
			}
			name, err := addUnique(d, s)
			if err != nil {
				return err
			}
			s.Declared = name
		}
		return nil
	})
	return err
}

// addUnique declares an agent under an unused name.
func addUnique(d *registry.Document, s *scanned) (string, error) {
	base := plainName(s.Dir)
	base = strings.TrimRight(base[:min(len(base), 48)], ".-")
	if heartbeat.ValidName(base) != nil {
		base = "agent"
	}
	names := []string{base, base + "-" + s.Kind}
	for n := 2; n < 100; n++ {
		names = append(names, fmt.Sprintf("%s-%s-%d", base, s.Kind, n))
	}
	var err error
	for _, name := range names {
		if err = d.Add(name, registry.Kind(s.Kind), s.Dir); err == nil {
			return name, nil
		}
	}
	return "", err
}

func printScanned(w io.Writer, o monitor.Options, list []scanned, now time.Time) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "No session of "+knownCLIs()+" runs here.")
		return err
	}
	var rows [][]string
	for _, s := range list {
		status, since := s.Status, "-"
		if s.Waiting != "" {
			status += " (" + s.Waiting + ")"
		}
		if s.Since != nil {
			since = briefly(now.Sub(*s.Since))
		}
		rows = append(rows, []string{fmt.Sprint(s.PID), s.Kind, logline.Printable(status), since, briefly(now.Sub(s.Began)),
			cmp.Or(s.Declared, "-"), cmp.Or(logline.Printable(s.Session), "-"), cmp.Or(logline.Printable(s.Dir), "-")})
	}
	if err := printTable(w, []string{"PID", "KIND", "STATUS", "SINCE", "UP", "DECLARED", "SESSION", "DIRECTORY"}, rows); err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(s scanned) bool { return s.Declared == "" }) {
		fmt.Fprintln(w, "\nThose without a name under DECLARED are not watched. Declare them: outlive agent scan --add"+homeFlag(o.Home))
	}
	return nil
}

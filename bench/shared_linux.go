package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// sharingPlan is how many sessions use the servers, and how long all are silent before memory is read: garbage of the start is
// given back after some seconds.
func (b *bench) sharingPlan() (sessions int, rest time.Duration) {
	if b.quick {
		return 2, time.Second
	}
	return 10, 30 * time.Second
}

// kinds of processes, in the order of the table.
var kinds = []string{"outlive run", "keepers", "daemon", "servers"}

// real is a server of a registry, by its name in DIR/bin, and a tool of it that needs nothing else.
type real struct {
	name, params string
	args         []string
}

func (b *bench) realServers() ([]real, error) {
	repo := filepath.Join(b.dir, "repo")
	if err := exec.Command("git", "init", "-q", repo).Run(); err != nil {
		return nil, fmt.Errorf("make a repository for mcp-server-git: %w", err)
	}
	return []real{
		{"mcp-server-filesystem", `{"name":"list_allowed_directories","arguments":{}}`, []string{b.dir}},
		{"mcp-server-memory", `{"name":"read_graph","arguments":{}}`, nil},
		{"mcp-server-sequential-thinking", `{"name":"sequentialthinking","arguments":{"thought":"x","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}}`, nil},
		{"mcp-server-time", `{"name":"get_current_time","arguments":{"timezone":"UTC"}}`, nil},
		{"mcp-server-git", `{"name":"git_status","arguments":{"repo_path":"` + repo + `"}}`, nil},
	}, nil
}

// serverCommand is the command line of a server, without the launcher of its registry, and its version.
func (b *bench) serverCommand(s real) (argv []string, version string, err error) {
	path, version, found := b.peer(s.name)
	if !found {
		return nil, "", fmt.Errorf("%s is not there: bench/peers.sh DIR sharing installs it for -peers DIR", s.name)
	}
	path, err = filepath.EvalSymlinks(path)
	if strings.HasSuffix(path, ".js") {
		argv = []string{"node"}
	}
	return append(append(argv, path), s.args...), version, err
}

// share is what the processes of one kind take, in bytes.
type share struct {
	processes    int
	private, pss float64
}

func (s share) and(processes int, private, pss float64) share {
	return share{s.processes + processes, s.private + private, s.pss + pss}
}

// shares has all sessions use all servers, and reads what their processes take.
func (b *bench) shares(servers []real, flags ...string) (map[string]share, error) {
	sessions, rest := b.sharingPlan()
	for n := range sessions {
		for _, s := range servers {
			b.say("memory, with %v: session %d of %d: %s", flags, n+1, sessions, s.name)
			argv, _, err := b.serverCommand(s)
			if err != nil {
				return nil, err
			}
			p, err := b.startPeer(s.name, slices.Concat([]string{b.outlive, "run"}, flags, []string{"--"}, argv))
			if err != nil {
				return nil, err
			}
			defer p.stop()
			if err = p.handshake(); err == nil {
				err = p.call(s.params)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	time.Sleep(rest)
	all := map[string]share{}
	for _, pid := range b.ours() {
		line := strings.Join(proc.Argv(pid), " ")
		kind := "servers"
		switch {
		case strings.HasPrefix(line, "outlive-keeper"):
			kind = "keepers"
		case strings.HasPrefix(line, b.outlive+" shared-daemon"):
			kind = "daemon"
		case strings.HasPrefix(line, b.outlive+" run"):
			kind = "outlive run"
		}
		if m := proc.MemoryOf(pid); m.PSS > 0 { // it may have ended meanwhile
			all[kind] = all[kind].and(1, m.Dirty+m.Clean, m.PSS)
		}
	}
	return all, nil
}

// ours are all processes that have this run's directory in their environment, and those below them.
func (b *bench) ours() (found []int) {
	seen := map[int]bool{os.Getpid(): true}
	for _, pid := range proc.All() {
		if seen[pid] || !proc.Has(pid, b.dir) {
			continue
		}
		for _, one := range append([]int{pid}, proc.Descendants(pid)...) {
			if !seen[one] {
				seen[one] = true
				found = append(found, one)
			}
		}
	}
	return found
}

// sharedMemory measures the servers of the sessions, not shared and shared.
func (b *bench) sharedMemory() (outcome, error) {
	servers, err := b.realServers()
	if err != nil {
		return outcome{}, err
	}
	var versions []string
	for _, s := range servers {
		_, version, err := b.serverCommand(s)
		if err != nil {
			return outcome{}, err
		}
		versions = append(versions, s.name+" "+version)
	}
	alone, err := b.shares(servers)
	if err != nil {
		return outcome{}, err
	}
	shared, err := b.shares(servers, "--shared")
	if err != nil {
		return outcome{}, err
	}
	sessions, rest := b.sharingPlan()
	t := figures.Table{
		Title: fmt.Sprintf("One process of each server for %d sessions", sessions),
		Note: fmt.Sprintf("%d sessions, each with the same five servers of npm and PyPI (%s), started without launchers; each has listed the tools and "+
			"called one; then all are silent for %.0f s, and memory is read once. Private: Private_Clean and Private_Dirty of `smaps_rollup`, the pages that no other process has; PSS also counts "+
			"a share of the others. MB, sums over all processes that exist because of the sessions.", sessions, strings.Join(versions, ", "), rest.Seconds()),
		Rows: [][]string{{"", "`outlive run`: processes", "private", "PSS", "`--shared`: processes", "private", "PSS", "private, shared ÷ not"}},
	}
	line := func(name string, a, s share) {
		t.Add(name, a.processes, a.private/1e6, a.pss/1e6, s.processes, s.private/1e6, s.pss/1e6, figures.Ratio(s.private, a.private))
	}
	var a, s share
	for _, kind := range kinds {
		line(kind, alone[kind], shared[kind])
		a, s = a.and(alone[kind].processes, alone[kind].private, alone[kind].pss), s.and(shared[kind].processes, shared[kind].private, shared[kind].pss)
	}
	line("all", a, s)
	out := outcome{tables: []figures.Table{t}}
	if !b.quick { // it is a promise of ten sessions
		out.promises = []promise{{name: "private memory with shared servers", got: s.private / a.private, limit: 0.2, unit: " × not shared"}}
	}
	return out, nil
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// sessions is how many sessions use the servers.
const sessions = 10

// rest is how long all are silent before memory is read: garbage of the start is given back after some seconds.
const rest = 30 * time.Second

// kinds of processes, in the order of the table.
var kinds = []string{"outlive run", "keepers", "daemon", "servers"}

// real is a server of a registry, and a tool of it that needs nothing else.
type real struct {
	name, params string
	argv         []string
}

func (b *bench) servers() ([]real, error) {
	repo := filepath.Join(b.dir, "repo")
	if err := exec.Command("git", "init", "-q", repo).Run(); err != nil {
		return nil, fmt.Errorf("make a repository for mcp-server-git: %w", err)
	}
	npm := func(name string, args ...string) []string {
		return append([]string{"node", filepath.Join(b.installed, "npm", "node_modules", "@modelcontextprotocol", name, "dist", "index.js")}, args...)
	}
	pypi := func(name string) []string { return []string{filepath.Join(b.installed, "pypi", name, "bin", name)} }
	return []real{
		{"server-filesystem", `{"name":"list_allowed_directories","arguments":{}}`, npm("server-filesystem", b.dir)},
		{"server-memory", `{"name":"read_graph","arguments":{}}`, npm("server-memory")},
		{"server-sequential-thinking", `{"name":"sequentialthinking","arguments":{"thought":"x","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}}`, npm("server-sequential-thinking")},
		{"mcp-server-time", `{"name":"get_current_time","arguments":{"timezone":"UTC"}}`, pypi("mcp-server-time")},
		{"mcp-server-git", `{"name":"git_status","arguments":{"repo_path":"` + repo + `"}}`, pypi("mcp-server-git")},
	}, nil
}

// share is what the processes of one kind take, in bytes.
type share struct {
	processes    int
	private, pss float64
}

// memory has all sessions use all servers, and reads what their processes take.
func (b *bench) memory(flags ...string) (map[string]share, error) {
	servers, err := b.servers()
	if err != nil {
		return nil, err
	}
	env := b.env()
	var ends []*stdio
	defer func() {
		for _, e := range ends {
			e.close()
		}
	}()
	for range sessions {
		for _, s := range servers {
			argv := append(append([]string{b.outlive, "run"}, flags...), "--")
			e, err := startStdio(append(argv, s.argv...), env, b.dir)
			if err != nil {
				return nil, err
			}
			ends = append(ends, e)
			if err := e.ask("tools/list", "{}"); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if err := e.ask("tools/call", s.params); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	time.Sleep(rest)
	all := map[string]share{}
	for _, pid := range tagged(b.tag) {
		line := commandLine(pid)
		kind := "servers"
		switch {
		case strings.HasPrefix(line, "outlive-keeper"):
			kind = "keepers"
		case strings.HasPrefix(line, b.outlive+" shared-daemon"):
			kind = "daemon"
		case strings.HasPrefix(line, b.outlive+" run"):
			kind = "outlive run"
		}
		one := all[kind]
		one.processes++
		private, pss := memoryOf(pid)
		one.private, one.pss = one.private+private, one.pss+pss
		all[kind] = one
	}
	return all, nil
}

// serverVersions are the servers with the versions that are installed.
func (b *bench) serverVersions() (all []string, err error) {
	servers, err := b.servers()
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		version, err := b.versionOf(s.name)
		if err != nil {
			return nil, fmt.Errorf("version of %s: %w", s.name, err)
		}
		all = append(all, s.name+" "+version)
	}
	return all, nil
}

func (b *bench) versionOf(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(b.installed, "npm", "node_modules", "@modelcontextprotocol", name, "package.json"))
	if err == nil {
		var of struct {
			Version string `json:"version"`
		}
		err = json.Unmarshal(text, &of)
		return of.Version, err
	}
	info := strings.ReplaceAll(name, "-", "_") + "-"
	found, _ := filepath.Glob(filepath.Join(b.installed, "pypi", name, "lib", "python*", "site-packages", info+"*.dist-info")) // the pattern is well formed
	if len(found) != 1 {
		return "", fmt.Errorf("%d installations, want one", len(found))
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), info), ".dist-info"), nil
}

// loadAverage is the machine's load over the last minute.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg") // always there on Linux
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// loads says what the machine's load was before a measurement, and is after it.
func loads(before string) string {
	return fmt.Sprintf("Load of the machine: %s before, %s after it.", before, loadAverage())
}

// tagged are all processes with the tag in their environment, and those below them.
func tagged(tag string) (found []int) {
	seen := map[int]bool{os.Getpid(): true}
	var add func(pid int)
	add = func(pid int) {
		if seen[pid] {
			return
		}
		seen[pid] = true
		found = append(found, pid)
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, list := range lists {
			text, _ := os.ReadFile(list) // a thread that has ended has no children
			for _, word := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(word); err == nil {
					add(child)
				}
			}
		}
	}
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		text, _ := os.ReadFile(path) // of others it cannot be read
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && bytes.Contains(text, []byte(tag)) {
			add(pid)
		}
	}
	return found
}

func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
	return strings.ReplaceAll(string(text), "\x00", " ")
}

// memoryOf is what a process has written or mapped alone, and its PSS, in bytes.
func memoryOf(pid int) (private, pss float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)) // it may have ended
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch {
		case err != nil:
		case key == "Private_Clean" || key == "Private_Dirty":
			private += kilobytes * 1024
		case key == "Pss":
			pss += kilobytes * 1024
		}
	}
	return private, pss
}

// memoryTable measures both and makes the table.
func (b *bench) memoryTable() (figures.Table, error) {
	versions, err := b.serverVersions()
	if err != nil {
		return figures.Table{}, err
	}
	before := loadAverage()
	alone, err := b.memory()
	if err != nil {
		return figures.Table{}, err
	}
	shared, err := b.memory("--shared")
	if err != nil {
		return figures.Table{}, err
	}
	t := figures.Table{
		Title: "One process of each server for ten sessions",
		Note: fmt.Sprintf("%d sessions, each with the same five servers of npm and PyPI (%s), started without launchers; each has listed the tools and "+
			"called one; then all are silent for %.0f s, and memory is read once. Private: Private_Clean and Private_Dirty of `smaps_rollup`, the pages that no other process has; PSS also counts "+
			"a share of the others. MB, sums over all processes that exist because of the sessions. %s",
			sessions, strings.Join(versions, ", "), rest.Seconds(), loads(before)),
		Rows: [][]string{{"", "`outlive run`: processes", "private", "PSS", "`--shared`: processes", "private", "PSS", "private, shared ÷ not"}},
	}
	var sums [2]share
	line := func(name string, a, s share) {
		t.Rows = append(t.Rows, []string{name, fmt.Sprint(a.processes), figures.Number(a.private / 1e6), figures.Number(a.pss / 1e6),
			fmt.Sprint(s.processes), figures.Number(s.private / 1e6), figures.Number(s.pss / 1e6), figures.Ratio(s.private, a.private)})
	}
	for _, kind := range kinds {
		line(kind, alone[kind], shared[kind])
		for i, one := range []share{alone[kind], shared[kind]} {
			sums[i].processes += one.processes
			sums[i].private += one.private
			sums[i].pss += one.pss
		}
	}
	line("all", sums[0], sums[1])
	return t, nil
}

package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// world is a home, a machine and a human that exist in memory, but for the files.
type world struct {
	t     *testing.T
	home  string
	opts  Options
	wall  time.Time
	mono  time.Duration
	slept time.Duration
	boot  string

	living   map[int]process.Process
	stopErr  error
	startErr error
	onStop   func()
	onLook   func(pid int)
	stopped  []int // leaders, by number
	started  []process.Launch
	said     []string // to the human
	shown    []notify.Message
	blind    bool // the table of processes cannot be read
	parents  map[int]int
	args     map[int][]string
	used     map[int]time.Duration
	halted   map[int]bool     // stopped by job control
	files    map[int][]string // that a process has open
	environ  map[int]map[string]string

	going *Monitor // of look
	looks int

	interrupted []int
	typed       time.Time // when somebody typed at a wrapper's terminal
	joined      []agentrun.Joined
	socket      string // where a wrapper's terminal can be joined
	piped       bool   // a wrapper has given its agent pipes
	sendErr     error
	out         strings.Builder
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, home: t.TempDir(), wall: time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC), mono: 10 * time.Hour, boot: "b1",
		living: map[int]process.Process{}, parents: map[int]int{}, args: map[int][]string{}, used: map[int]time.Duration{},
		halted: map[int]bool{}, files: map[int][]string{},
	}
	w.opts = Options{Home: w.home, Channels: map[string]notify.Channel{"telegram": w}, Out: &w.out, clock: w.now, processes: w, clockOnly: true}
	return w
}

func (w *world) now() Clocks {
	return Clocks{Wall: w.wall, Mono: w.mono, Up: w.mono + w.slept, Boot: w.boot}
}

// pass lets time pass; the machine is awake.
func (w *world) pass(d time.Duration) {
	w.wall, w.mono = w.wall.Add(d), w.mono+d
	for pid, p := range w.living {
		p.Age += d
		w.living[pid] = p
	}
}

func (w *world) sleep(d time.Duration) {
	mono := w.mono
	w.pass(d)
	w.mono, w.slept = mono, w.slept+d
}

// process lets a process run, with a working directory, since so long ago.
func (w *world) process(pid int, dir string, age time.Duration) {
	w.living[pid] = process.Process{Identity: process.Identity{PID: pid, Start: uint64(pid)*1000 + 1, Boot: w.boot}, Age: age, Dir: dir}
}

func (w *world) Look(pid int) (process.Process, error) {
	if w.onLook != nil {
		w.onLook(pid)
	}
	p, ok := w.living[pid]
	switch {
	case !ok:
		return process.Process{}, fmt.Errorf("look: %w", os.ErrProcessDone)
	case p.Start == 0: // not ours to look at
		return process.Process{}, os.ErrPermission
	}
	return p, nil
}

func (w *world) Stop(_ context.Context, t process.Target) error {
	if w.onStop != nil {
		w.onStop()
	}
	if w.stopErr != nil {
		return w.stopErr
	}
	for _, l := range t.Leaders {
		if w.living[l.PID].Identity == l && l.PID != 0 {
			w.stopped = append(w.stopped, l.PID)
			delete(w.living, l.PID)
		}
	}
	return nil
}

func (w *world) Start(l process.Launch) (process.Identity, error) {
	if w.startErr != nil {
		return process.Identity{}, w.startErr
	}
	w.started = append(w.started, l)
	pid := 5000 + len(w.started)
	w.process(pid, l.Dir, 0)
	return w.living[pid].Identity, nil
}

func (w *world) Send(_ context.Context, m notify.Message) (string, error) {
	if w.sendErr != nil {
		return "", w.sendErr
	}
	w.said = append(w.said, m.Text.Body)
	w.shown = append(w.shown, m)
	return strconv.Itoa(len(w.said)), nil
}

// Update implements [notify.Editor]: the message stands as it was said first, and as it is shown now.
func (w *world) Update(_ context.Context, ref string, m notify.Message) error {
	if w.sendErr != nil {
		return w.sendErr
	}
	n, err := strconv.Atoi(ref)
	if err != nil {
		return err
	}
	w.shown[n-1] = m
	return nil
}

func (w *world) All() []process.Process {
	var all []process.Process
	if w.blind {
		return nil
	}
	for _, pid := range slices.Sorted(maps.Keys(w.living)) {
		p := w.living[pid]
		all = append(all, process.Process{Identity: p.Identity, Parent: w.parents[pid], Age: p.Age, CPU: w.used[pid], Stopped: w.halted[pid]})
	}
	return all
}

func (w *world) Args(pid int) []string { return w.args[pid] }

func (w *world) Files(pid int) []string { return w.files[pid] }

func (w *world) Variable(pid int, name string) string { return w.environ[pid][name] }

func (w *world) Interrupt(id process.Identity) error {
	if w.living[id.PID].Identity != id {
		return os.ErrProcessDone
	}
	w.interrupted = append(w.interrupted, id.PID)
	return nil
}

// entry is a project of the registry as the original writes it. No number stands for null.
func (w *world) entry(name string, status piv.Status, beatAge time.Duration, pid int) string {
	dir := filepath.Join(w.home, "projects", name)
	if err := os.MkdirAll(filepath.Join(dir, ".agents"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	number := "null"
	if pid != 0 {
		number = fmt.Sprint(pid)
	}
	return fmt.Sprintf("  %s:\n    name: %s\n    path: %s\n    status: %s\n    heartbeat: '%s'\n    currentPhase: 3\n    pivCommandsVersion: x\n"+
		"    orchestratorPid: %s\n    registeredAt: '2026-03-01T00:00:00.000Z'\n    lastCompletedPhase: 2\n", name, name, dir, status, piv.FormatTime(w.wall.Add(-beatAge)), number)
}

func (w *world) registry(entries ...string) {
	w.write("registry.yaml", "projects:\n"+strings.Join(entries, "")+"lastUpdated: '"+piv.FormatTime(w.wall)+"'\n")
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.home, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.home, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return string(b)
}

// project is what the registry says of one.
func (w *world) project(key string) piv.Project {
	w.t.Helper()
	r, err := piv.ParseRegistry([]byte(w.read("registry.yaml")))
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(r.Projects, func(p piv.Project) bool { return p.Key == key })
	if i < 0 {
		w.t.Fatalf("%s is not in the registry", key)
	}
	return r.Projects[i]
}

// cycle is `outlive monitor --once`: a run of its own, so that everything it knows has to outlast one.
func (w *world) cycle() Summary {
	w.t.Helper()
	return w.cycles(1, func() {})
}

// cycles are as many of one run, something happening before each; the summary is the last one's.
func (w *world) cycles(count int, before func()) (s Summary) {
	w.t.Helper()
	before()
	m, err := Open(w.t.Context(), w.opts)
	if err != nil {
		w.t.Fatal(err)
	}
	for n := range count {
		if n > 0 {
			before()
		}
		var once error
		s, once = m.Once(w.t.Context())
		err = errors.Join(err, once)
	}
	if err := errors.Join(err, m.Close()); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// looksOfARun is how many looks are one run of the monitor where hours are watched: to open it takes longer than a look.
const looksOfARun = 16

// look is a cycle of a run that goes on; now and then another one begins, so that what is known has to outlast the process here, too.
func (w *world) look() Summary {
	w.t.Helper()
	if w.looks%looksOfARun == 0 {
		w.endRun()
		m, err := Open(w.t.Context(), w.opts)
		if err != nil {
			w.t.Fatal(err)
		}
		if w.looks == 0 {
			w.t.Cleanup(w.endRun)
		}
		w.going = m
	}
	w.looks++
	s, err := w.going.Once(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) endRun() {
	if w.going == nil {
		return
	}
	if err := w.going.Close(); err != nil {
		w.t.Error(err)
	}
	w.going = nil
}

// interventions is how many entries the improvement log has.
func (w *world) interventions() int { return strings.Count(w.read("improvement-log.md"), "### ") }

package monitor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// workday is some hours of agents that do ordinary work, in virtual time: scripts write what real CLIs write, processes live,
// use the processor and end, a person answers, the machine sleeps, and a monitor looks as often as the real one does.
type workday struct {
	*world
	random  *rand.Rand
	workers []*worker
	busy    map[int]float64  // process: share of a core that it uses
	files   map[int][]string // process: files that it holds open
	pids    int
	falls   []string // what was done or said without a reason
}

// worker is one agent and its script. The script runs in steps: whenever it waits, everybody else goes on.
type worker struct {
	*workday
	name   string
	random *rand.Rand
	wait   func(time.Duration) bool
	next   func() (time.Duration, bool)
	stop   func()
	due    time.Duration // by the machine's clock while it is awake

	pid      int
	asks     string        // what it waits for a person for; "": nothing
	asked    time.Duration // since when, by the machine's clock while it is awake
	answered time.Duration // when a person has answered last
	told     bool          // a person was told of what it asks now
	missed   []string      // what nobody was told of
}

// errDayOver ends a script.
var errDayOver = errors.New("the day is over")

func newWorkday(w *world, seed uint64) *workday {
	d := &workday{world: w, random: rand.New(rand.NewPCG(seed, 1)), busy: map[int]float64{}, files: map[int][]string{}, pids: 1000}
	w.opts.processes, w.opts.Channels = d, map[string]notify.Channel{"telegram": d}
	w.opts.Record = filepath.Join(w.home, "evidence.jsonl")
	w.opts.Places = agentcli.Places{agentcli.Claude: filepath.Join(w.home, "claude"), agentcli.Codex: filepath.Join(w.home, "codex")}
	return d
}

// employs adds an agent with its script, which is begun anew when it ends.
func (d *workday) employs(name string, script func(*worker)) {
	a := &worker{workday: d, name: name, random: rand.New(rand.NewPCG(d.random.Uint64(), 2))}
	var steps iter.Seq[time.Duration] = func(yield func(time.Duration) bool) {
		defer func() {
			if err := recover(); err != nil && err != any(errDayOver) {
				panic(err)
			}
		}()
		a.wait = yield
		for {
			script(a)
		}
	}
	a.next, a.stop = iter.Pull(steps)
	a.due = d.mono
	d.workers = append(d.workers, a)
}

// waits lets time pass, between two bounds.
func (a *worker) waits(least, most time.Duration) {
	d := least
	if most > least {
		d += time.Duration(a.random.Int64N(int64(most - least)))
	}
	if !a.wait(d) {
		panic(errDayOver)
	}
}

// chance is true so often in a hundred times.
func (a *worker) chance(percent int) bool { return a.random.IntN(100) < percent }

func (a *worker) oneOf(words ...string) string { return words[a.random.IntN(len(words))] }

// starts begins a process in the agent's directory, behind a wrapper with the number before it.
func (a *worker) starts(args ...string) {
	a.pids += 10
	a.pid = a.pids
	a.process(a.pid, a.dir(a.name), 0)
	a.args[a.pid] = args
}

// child begins a process below another; share is how much of a core it uses.
func (a *worker) child(parent int, share float64) int {
	a.pids++
	a.process(a.pids, a.dir(a.name), 0)
	a.parents[a.pids], a.busy[a.pids] = parent, share
	return a.pids
}

// end ends a process with everything below it.
func (d *workday) end(pid int) {
	for child, parent := range d.parents {
		if parent == pid && child != pid {
			delete(d.parents, child)
			d.end(child)
		}
	}
	delete(d.living, pid)
	delete(d.busy, pid)
	delete(d.files, pid)
}

// reports is what the wrapper of the agent says of it.
func (a *worker) reports(change func(*agentrun.Report)) {
	id := a.living[a.pid].Identity
	r := agentrun.Report{Version: 1, Agent: a.name, PID: a.pid, Start: id.Start, Boot: a.boot, StartedAt: a.wall.Add(-a.living[a.pid].Age), OutputAt: a.wall}
	if _, there := a.living[a.pid-1]; !there && a.living[a.pid].PID != 0 {
		a.process(a.pid-1, a.dir(a.name), 0)
	}
	r.Wrapper = process.Identity{PID: a.pid - 1, Start: uint64(a.pid-1)*1000 + 1, Boot: a.boot}
	change(&r)
	a.puts(agentrun.Path(a.home, a.name), os.O_TRUNC, mustJSON(r))
}

// endsWrapped is an end as it looks from outside: the process has gone a moment before its wrapper says how.
func (a *worker) endsWrapped(headless bool) {
	id, begun := a.living[a.pid].Identity, a.wall.Add(-a.living[a.pid].Age)
	a.end(a.pid)
	a.waits(time.Millisecond, 300*time.Millisecond)
	a.reports(func(r *agentrun.Report) {
		r.Start, r.Boot, r.StartedAt = id.Start, id.Boot, begun
		r.Headless, r.Exit = headless, &agentrun.Exit{At: a.wall}
	})
	a.waits(5*time.Millisecond, 300*time.Millisecond)
	a.end(a.pid - 1)
}

// puts writes into a file, with the time of this world.
func (d *workday) puts(path string, how int, text []byte) {
	d.t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|how, 0o600)
	}
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close(), os.Chtimes(path, d.wall, d.wall))
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// hook is what a hook of the agent leaves.
func (a *worker) hook(vendor, session string, e hooks.Event) {
	e.Time, e.Vendor, e.Session, e.Dir, e.PID = a.wall, vendor, session, a.dir(a.name), a.pid
	if err := hooks.Drop(hooks.Dir(a.home), e); err != nil {
		a.t.Fatal(err)
	}
}

// begs says that from now on it asks something, although its files may not show all of that yet.
func (a *worker) begs(what string) { a.asks, a.asked, a.told = what, a.mono, false }

// question lasts until a person has answered: some minutes, within the time that the settings give them.
func (a *worker) question(what string) {
	if a.asks == "" {
		a.begs(what)
	}
	a.waits(20*time.Second, 13*time.Minute)
	if open := a.mono - a.asked; !a.told && open > 4*time.Minute {
		a.missed = append(a.missed, fmt.Sprintf("%s: %s, for %s until %s", a.name, what, open, a.wall.Format(time.TimeOnly)))
	}
	a.asks, a.answered = "", a.mono
}

// Send implements [notify.Channel]: a message must be about an agent that asks, or whose person has answered only just.
func (d *workday) Send(ctx context.Context, m notify.Message) (string, error) {
	about := slices.IndexFunc(d.workers, func(a *worker) bool { return strings.Contains(m.Text.Body, a.name) })
	switch {
	case about < 0:
		d.fell("a message about nobody: %q", m.Text.Body)
	case d.workers[about].asks != "":
		d.workers[about].told = true
	case d.workers[about].answered > 0 && strings.HasPrefix(m.Text.Body, "🟢"): // what was told is over
	case d.workers[about].answered == 0 || d.mono-d.workers[about].answered > time.Minute:
		d.fell("%s asks nothing, and a person was told: %q", d.workers[about].name, m.Text.Body)
	}
	return d.world.Send(ctx, m)
}

// Stop, Interrupt and Start note what is done to processes: nothing should be.
func (d *workday) Stop(ctx context.Context, t process.Target) error {
	d.fell("ended: %v", t.Leaders)
	return d.world.Stop(ctx, t)
}

func (d *workday) Interrupt(id process.Identity) error {
	d.fell("interrupted: %v", id)
	return d.world.Interrupt(id)
}

func (d *workday) Start(l process.Launch) (process.Identity, error) {
	d.fell("started: %v in %s", l.Command, filepath.Base(l.Dir))
	return d.world.Start(l)
}

func (d *workday) Files(pid int) []string { return d.files[pid] }

func (d *workday) fell(format string, args ...any) {
	d.falls = append(d.falls, d.wall.Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
}

// advance lets time pass for processes, too.
func (d *workday) advance(t time.Duration) {
	for pid, share := range d.busy {
		d.used[pid] += time.Duration(share * float64(t))
	}
	d.pass(t)
}

// lives goes through the day. At one moment the machine sleeps, and at another the monitor is ended and begun again.
func (d *workday) lives(length, lookEvery time.Duration) {
	d.t.Helper()
	end := d.mono + length
	moment := func() time.Duration { return d.mono + length/8 + time.Duration(d.random.Int64N(int64(length)*3/4)) }
	nap, restart := moment(), moment()
	m, err := Open(d.t.Context(), d.opts)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = m.Close() }()
	look := func() {
		if _, err := m.look(d.t.Context()); err != nil {
			d.t.Fatal(err)
		}
		m.notifiers.outbox.Drain(d.t.Context())
	}
	var looked time.Duration
	for d.mono < end && len(d.falls) == 0 {
		if nap != 0 && d.mono >= nap {
			nap = 0
			d.sleep(40 * time.Minute)
		}
		if restart != 0 && d.mono >= restart {
			restart = 0
			if err := m.Close(); err != nil {
				d.t.Fatal(err)
			}
			if m, err = Open(d.t.Context(), d.opts); err != nil {
				d.t.Fatal(err)
			}
		}
		first := slices.MinFunc(d.workers, func(a, b *worker) int { return int(a.due - b.due) })
		if next := looked + lookEvery; first.due > next {
			d.advance(max(next-d.mono, 0))
			look()
			looked = d.mono
			continue
		}
		d.advance(max(first.due-d.mono, 0))
		wait, _ := first.next()
		first.due = d.mono + max(wait, time.Millisecond)
		if d.random.IntN(4) == 0 && d.mono-looked > wakeGap { // files and ends of processes ask for a look
			look()
			looked = d.mono
		}
	}
	for _, a := range d.workers {
		a.stop()
	}
}

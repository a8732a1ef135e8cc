package main

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// settleTime is how long a process is left alone before it counts as idle.
const settleTime = time.Second

// longLine is the size of the one line that must pass in bounded memory.
const longLine = 16 << 20

// memoryFigures are what one process holds, by way; NaN where the system cannot say.
type memoryFigures [ways]struct {
	idle   proc.Memory
	extra  float64 // peak over idle while the long line passes, bytes
	longMS float64 // round trip of the long line, ms
}

// memory measures, for each way with processes of its own, what the process holds when idle and how much more while long
// lines pass.
func (b *bench) memory() (outcome, error) {
	peers, err := b.startAll()
	if err != nil {
		return outcome{}, err
	}
	defer stopAll(peers)
	time.Sleep(settleTime)
	var by memoryFigures
	var trips, extra [ways][]float64
	for way, p := range peers {
		by[way].idle = proc.MemoryOf(p.pid())
		p.load(longLine, 1)
	}
	for line := range b.plan.longLines {
		b.say("long lines: %d of %d", line+1, b.plan.longLines)
		for way, p := range peers {
			idle := proc.ResetPeak(p.pid())
			if trips[way], err = p.trips(1, 1, trips[way]); err != nil {
				return outcome{}, err
			}
			extra[way] = append(extra[way], proc.Peak(p.pid())-idle)
		}
	}
	for way := range by {
		by[way].longMS, by[way].extra = figures.Median(trips[way])/1e3, figures.Percentile(extra[way], 1)
	}
	by[direct].extra = math.NaN()
	return by.outcome(), nil
}

func (by memoryFigures) outcome() outcome {
	size := sizeName(longLine)
	t := figures.Table{
		Title: "Memory and long lines",
		Note: "Private: pages that the process has written and shares with nobody. Pages of its binary: in memory, unwritten, mapped by no other " +
			"process at the moment; a second instance shares them. Extra: highest resident size while the line passes, over the size before.",
		Rows: [][]string{{"", "private, idle, MB", "pages of its binary, MB", "extra at a " + size + " line, MB", size + " line there and back, ms"}},
	}
	for way, m := range by {
		name := wayNames[way]
		if way == direct {
			name = "direct (the server itself)"
		}
		t.Add(name, m.idle.Dirty/mebibyte, m.idle.Clean/mebibyte, m.extra/mebibyte, m.longMS)
	}
	return outcome{tables: []figures.Table{t}, promises: []promise{
		{name: size + " line, extra memory", got: by[outlive].extra / mebibyte, limit: 40, unit: " MB"},
		{name: "private memory, idle", got: by[outlive].idle.Dirty / mebibyte, limit: 8, unit: " MB"}}}
}

// holding is what must not grow over restarts.
type holding struct {
	descriptors, threads int
	private              float64 // bytes
}

func holdingOf(pid int) (h holding, err error) {
	h.private = proc.MemoryOf(pid).Dirty
	h.descriptors, h.threads, err = proc.Counts(pid)
	return h, err
}

// restartFigures are the outcome of many restarts of one server.
type restartFigures struct {
	count         int
	before, after holding
	took          time.Duration
}

// restartsWarm is how many restarts come before the first look, so that what is allocated once is there.
const restartsWarm = 200

// restarts kills the echo server many times and compares what outlive holds before and after.
func (b *bench) restarts() (outcome, error) {
	p, err := b.start(outlive, []string{b.echo})
	if err != nil {
		return outcome{}, err
	}
	defer p.stop()
	found := restartFigures{count: b.plan.restarts}
	time.Sleep(settleTime) // what its start still does must not fall between the looks
	begin := time.Now()
	for i := range found.count + restartsWarm {
		if i == restartsWarm {
			time.Sleep(settleTime)
			if found.before, err = holdingOf(p.pid()); err != nil {
				return outcome{}, err
			}
			begin = time.Now()
		}
		if i%100 == 0 {
			runtime.GC() // it does not run by itself
			b.say("restarts: %d of %d", i, found.count+restartsWarm)
		}
		if _, err := p.killAndAsk(); err != nil {
			return outcome{}, fmt.Errorf("restart %d: %w", i+1, err)
		}
	}
	found.took = time.Since(begin)
	time.Sleep(settleTime)
	found.after, err = holdingOf(p.pid())
	return found.outcome(), err
}

// outcome: nothing may grow. Memory gets the room that a garbage collector needs between two looks; a leak over thousands
// of restarts is far beyond it.
func (f restartFigures) outcome() outcome {
	t := figures.Table{
		Title: fmt.Sprintf("What outlive holds before and after %s restarts", figures.Number(float64(f.count))),
		Note:  fmt.Sprintf("The server was killed with SIGKILL each time; %s ms a restart.", figures.Number(milliseconds(f.took)/float64(f.count))),
		Rows:  [][]string{{"", "descriptors", "threads", "private memory, MB"}},
	}
	t.Add("before", f.before.descriptors, f.before.threads, f.before.private/mebibyte)
	t.Add("after", f.after.descriptors, f.after.threads, f.after.private/mebibyte)
	over := fmt.Sprintf(" over %d restarts", f.count)
	return outcome{tables: []figures.Table{t}, promises: []promise{
		{name: "descriptors gained" + over, got: float64(f.after.descriptors - f.before.descriptors), limit: 0},
		{name: "threads gained" + over, got: float64(f.after.threads - f.before.threads), limit: 2},
		{name: "private memory gained" + over, got: (f.after.private - f.before.private) / mebibyte, limit: 1, unit: " MB"}}}
}

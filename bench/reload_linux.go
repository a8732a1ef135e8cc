package main

import (
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// throttleTime is the least time between two restarts that somebody asks for, and a little more.
const throttleTime = 1020 * time.Millisecond

// loadInFlight is how many calls are under way while a server is replaced.
const loadInFlight = 64

// reloadFigures are the outcome of many planned restarts under load. Times in ms.
type reloadFigures struct {
	count, calls, failed int
	p99                  float64 // of calls while the server is replaced
	ordinary             float64 // of as many calls under the same load without
	worst                float64
}

func (r reloadFigures) outcome() outcome {
	t := figures.Table{
		Title: "Planned restarts under load, ms",
		Note: fmt.Sprintf("SIGHUP to outlive with %d calls of 200 B in flight to the echo server; blocks with a restart and as long ones "+
			"without take turns.", loadInFlight),
		Rows: [][]string{{"", "restarts", "calls", "failed", "p99 without", "p99 meanwhile", "added", "longest wait"}},
	}
	t.Add("echo (Go)", r.count, figures.Number(float64(r.calls)), r.failed, r.ordinary, r.p99, r.p99-r.ordinary, r.worst)
	return outcome{tables: []figures.Table{t}, promises: []promise{
		{name: fmt.Sprintf("calls failed over %d planned restarts", r.count), got: float64(r.failed), limit: 0},
		{name: "added p99 while a server is replaced", got: r.p99 - r.ordinary, limit: 5, unit: " ms"}}}
}

// reloads replaces the echo server many times under load. Blocks of calls with a replacement in them and as long ones
// without take turns.
func (b *bench) reloads() (outcome, error) {
	count := b.plan.reloads
	p, j, err := b.startTold([]string{b.echo})
	if err != nil {
		return outcome{}, err
	}
	defer p.stop()
	p.load(200, loadInFlight)
	f := &flow{peer: p, inFlight: loadInFlight}
	out := reloadFigures{count: count}
	var with, without []float64
	length := 20 * time.Millisecond // of a block; then as long as the last replacement took
	for i := range count {
		b.say("replaced under load: %d of %d", i+1, count)
		begin := time.Now()
		waits, err := f.run(func() (bool, error) { return time.Since(begin) > length, nil })
		if err != nil {
			return outcome{}, err
		}
		without = append(without, figures.Percentile(waits, 0.99))
		out.calls += len(waits)
		begin = time.Now()
		if waits, err = f.replace(j, i+1); err != nil {
			return outcome{}, fmt.Errorf("replacement %d: %w", i+1, err)
		}
		length = time.Since(begin)
		with = append(with, figures.Percentile(waits, 0.99))
		out.calls += len(waits)
		out.worst = max(out.worst, figures.Percentile(waits, 1)/1e3)
		runtime.GC() // it does not run by itself
		time.Sleep(time.Until(begin.Add(throttleTime)))
	}
	out.failed = len(f.failed)
	out.p99, out.ordinary = figures.Midmean(with)/1e3, figures.Midmean(without)/1e3
	if got := j.count("restart_completed"); got != count {
		return outcome{}, fmt.Errorf("%d restarts completed, want %d", got, count)
	}
	return out.outcome(), nil
}

// replace asks outlive for its n-th restart and keeps calling until it is complete.
func (f *flow) replace(j *journal, n int) ([]float64, error) {
	if err := f.peer.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return nil, fmt.Errorf("signal %s: %w", f.peer.name, err)
	}
	return f.run(func() (bool, error) {
		err := j.read()
		return j.count("restart_completed") >= n, err
	})
}

//go:build unix

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

// reloads replaces the echo server count times under load. Blocks of calls with a replacement in them and as long ones
// without take turns.
func (b *bench) reloads(count int) (*reloadFigures, error) {
	p, j, err := b.startTold([]string{b.binaries.echo})
	if err != nil {
		return nil, err
	}
	defer p.stop()
	p.load(200, loadInFlight)
	f := &flow{peer: p, inFlight: loadInFlight}
	out := &reloadFigures{Count: count}
	var with, without []float64
	length := 20 * time.Millisecond // of a block; then as long as the last replacement took
	for i := range count {
		b.progress("replaced under load: %d of %d", i+1, count)
		begin := time.Now()
		waits, err := f.run(func() (bool, error) { return time.Since(begin) > length, nil })
		if err != nil {
			return nil, err
		}
		without = append(without, figures.Percentile(waits, 0.99))
		out.Calls += len(waits)
		begin = time.Now()
		if waits, err = f.replace(j, i+1); err != nil {
			return nil, fmt.Errorf("replacement %d: %w", i+1, err)
		}
		length = time.Since(begin)
		with = append(with, figures.Percentile(waits, 0.99))
		out.Calls += len(waits)
		out.Worst = max(out.Worst, figures.Percentile(waits, 1)/1e3)
		runtime.GC() // it does not run by itself
		time.Sleep(time.Until(begin.Add(throttleTime)))
	}
	out.Failed = len(f.failed)
	out.P99, out.Ordinary = figures.Midmean(with)/1e3, figures.Midmean(without)/1e3
	if got := j.count("restart_completed"); got != count {
		return nil, fmt.Errorf("%d restarts completed, want %d", got, count)
	}
	return out, nil
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

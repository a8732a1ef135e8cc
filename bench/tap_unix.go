//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/bench/rawio"
)

// tapPace is the time between two calls at 10,000 messages a second, each call being two.
const tapPace = 200 * time.Microsecond

// tapCalls is how many calls one block has.
const tapCalls = 1500

// taps measures calls that somebody watches, with blocks of as many that nobody does in turns, at one outlive.
func (b *bench) taps(pairs int) (*tapFigures, error) {
	p, err := b.start(outlive, []string{b.binaries.echo})
	if err != nil {
		return nil, err
	}
	defer p.stop()
	p.load(200, 1)
	out := &tapFigures{Count: pairs}
	var p50, p99 [2][]float64 // by whether it is watched
	began, calls := time.Duration(0), 0
	for i := range 2 * pairs {
		b.progress("watched by outlive tap: %d of %d", i/2+1, pairs)
		watched := (i + i/2) % 2 // without, with, with, without, …
		var w *watcher
		if watched == 1 {
			if w, err = b.watch(p); err != nil {
				return nil, err
			}
		}
		if _, err = p.paced(tapCalls/10, nil); err != nil { // what a start of a program has left behind
			return nil, err
		}
		start := time.Now()
		waits, err := p.paced(tapCalls, nil)
		if err != nil {
			return nil, err
		}
		began += time.Since(start)
		calls += len(waits)
		if w != nil {
			seen, leftOut, err := w.end()
			if err != nil {
				return nil, err
			}
			out.Seen += seen
			out.LeftOut += leftOut
		}
		p50[watched] = append(p50[watched], figures.Percentile(waits, 0.5))
		p99[watched] = append(p99[watched], figures.Percentile(waits, 0.99))
	}
	out.Rate = 2 * float64(calls) / began.Seconds()
	out.P50, out.P99 = [2]float64{figures.Midmean(p50[0]), figures.Midmean(p50[1])}, [2]float64{figures.Midmean(p99[0]), figures.Midmean(p99[1])}
	return out, nil
}

// paced is singleTrips with tapPace from the beginning of one call to that of the next.
func (p *peer) paced(total int, record []float64) ([]float64, error) {
	defer p.guard()()
	next := time.Now()
	for range total {
		if left := time.Until(next); left > 0 {
			rawio.Sleep(left)
		}
		next = next.Add(tapPace)
		var err error
		if record, err = p.singleTrips(1, record); err != nil {
			return record, err
		}
	}
	return record, nil
}

// watcher is an outlive tap.
type watcher struct {
	cmd         *exec.Cmd
	out, stderr string
}

// watch starts one, and returns when it watches.
func (b *bench) watch(p *peer) (*watcher, error) {
	w := &watcher{out: filepath.Join(b.dir, "tap.out"), stderr: filepath.Join(b.dir, "tap.err")}
	out, err := os.Create(w.out)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	defer out.Close()
	stderr, err := os.Create(w.stderr)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	defer stderr.Close()
	w.cmd = exec.Command(b.binaries.outlive, "tap", fmt.Sprintf("echo@%d", p.cmd.Process.Pid))
	w.cmd.Stdout, w.cmd.Stderr, w.cmd.Env = out, stderr, b.env
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(w.stderr)
		if err == nil && bytes.Contains(text, []byte("watching")) {
			return w, nil
		}
	}
	_, _, err = w.end()
	return nil, fmt.Errorf("watch: outlive tap does not begin to: %w", err)
}

// end ends it, and returns how many messages it has shown, and how many it says are missing.
func (w *watcher) end() (seen, leftOut int, err error) {
	time.Sleep(100 * time.Millisecond) // it is told 40 times a second
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return 0, 0, fmt.Errorf("end outlive tap: %w", err)
	}
	if err := w.cmd.Wait(); err != nil {
		text, _ := os.ReadFile(w.stderr)
		return 0, 0, fmt.Errorf("outlive tap: %w: %s", err, text)
	}
	text, err := os.ReadFile(w.out)
	if err != nil {
		return 0, 0, fmt.Errorf("outlive tap: %w", err)
	}
	for line := range bytes.Lines(text) {
		var at string
		var n int
		if k, _ := fmt.Sscanf(string(line), "%s %d messages left out", &at, &n); k == 2 && bytes.Contains(line, []byte("messages left out")) {
			leftOut += n
			continue
		}
		seen++
	}
	return seen, leftOut, nil
}

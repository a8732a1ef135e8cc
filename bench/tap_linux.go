package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/bench/rawio"
)

// tapPace is the time between two calls at 10,000 messages a second, each call being two.
const tapPace = 200 * time.Microsecond

// tapCalls is how many calls one block has.
const tapCalls = 1500

// tapFigures are calls at 10,000 messages a second, without and with somebody who watches the messages. Times in µs.
type tapFigures struct {
	rate          float64    // messages/s
	p50, p99      [2]float64 // by whether somebody watches
	seen, leftOut int        // messages
}

func (f tapFigures) outcome() outcome {
	t := figures.Table{
		Title: "Calls that somebody watches, µs",
		Note: "`outlive tap` beside calls of 200 B to the echo server, one after the other at a fixed pace; blocks with it and without take turns at one " +
			"outlive. Medians and p99 of the round trip.",
		Rows: [][]string{{"", "messages/s", "p50 unwatched", "p50 watched", "ratio", "p99 unwatched", "p99 watched", "messages shown", "left out"}},
	}
	t.Add("outlive", f.rate, f.p50[0], f.p50[1], figures.Ratio(f.p50[1], f.p50[0]), f.p99[0], f.p99[1], figures.Number(float64(f.seen)), f.leftOut)
	return outcome{tables: []figures.Table{t}, promises: []promise{
		{name: "call while watched, 10,000 messages/s", got: f.p50[1] / f.p50[0], limit: 1.05, unit: " × unwatched"},
		{name: "messages left out of it", got: float64(f.leftOut), limit: 0}}}
}

// taps measures calls that somebody watches, with blocks of as many that nobody does in turns, at one outlive.
func (b *bench) taps() (outcome, error) {
	pairs := b.plan.taps
	p, err := b.start(outlive, []string{b.echo})
	if err != nil {
		return outcome{}, err
	}
	defer p.stop()
	p.load(200, 1)
	var out tapFigures
	var p50, p99 [2][]float64 // by whether it is watched
	began, calls := time.Duration(0), 0
	for i := range 2 * pairs {
		b.say("watched by outlive tap: %d of %d", i/2+1, pairs)
		watched := (i + i/2) % 2 // without, with, with, without, …
		var w *watcher
		if watched == 1 {
			if w, err = b.watch(p); err != nil {
				return outcome{}, err
			}
		}
		if _, err = p.paced(tapCalls/10, nil); err != nil { // what a start of a program has left behind
			return outcome{}, err
		}
		start := time.Now()
		waits, err := p.paced(tapCalls, nil)
		if err != nil {
			return outcome{}, err
		}
		began += time.Since(start)
		calls += len(waits)
		if w != nil {
			seen, leftOut, err := w.count()
			if err != nil {
				return outcome{}, err
			}
			out.seen += seen
			out.leftOut += leftOut
		}
		p50[watched] = append(p50[watched], figures.Percentile(waits, 0.5))
		p99[watched] = append(p99[watched], figures.Percentile(waits, 0.99))
	}
	out.rate = 2 * float64(calls) / began.Seconds()
	out.p50, out.p99 = [2]float64{figures.Midmean(p50[0]), figures.Midmean(p50[1])}, [2]float64{figures.Midmean(p99[0]), figures.Midmean(p99[1])}
	return out.outcome(), nil
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
	*process
	shown *os.File // what it shows
}

// watch starts one, and returns when it watches.
func (b *bench) watch(p *peer) (*watcher, error) {
	shown, err := os.Create(filepath.Join(b.dir, "shown"))
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	started, err := b.launch(command{name: "outlive tap", argv: []string{b.outlive, "tap", fmt.Sprintf("echo@%d", p.pid())}, env: b.env, stdout: shown})
	if err != nil {
		return nil, err
	}
	w := &watcher{started, shown}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if strings.Contains(w.lastWords(), "watching") {
			return w, nil
		}
	}
	said := w.lastWords()
	w.end(time.Second)
	return nil, fmt.Errorf("outlive tap does not begin to watch%s", said)
}

// count ends it, and returns how many messages it has shown, and how many it says are missing.
func (w *watcher) count() (seen, leftOut int, err error) {
	time.Sleep(100 * time.Millisecond) // it is told 40 times a second
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return 0, 0, fmt.Errorf("end outlive tap: %w", err)
	}
	w.await(patience)
	defer w.shown.Close()
	if code := w.cmd.ProcessState.ExitCode(); code != 0 {
		return 0, 0, fmt.Errorf("outlive tap ends with status %d", code)
	}
	text, err := os.ReadFile(w.shown.Name())
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

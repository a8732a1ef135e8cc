package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// lazy measures a gateway of many servers that start with their first call: what their tools are is known from an earlier run.
func (b *bench) lazy() (*lazyFigures, error) {
	g := gateway{name: "outlive, lazy servers", ours: true, program: b.outlive, setup: outliveSetup(`args: ["0"]`, "lazy: true")}
	dir := filepath.Join(b.dir, "lazy")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lazy servers: %w", err)
	}
	out := &lazyFigures{Servers: b.plan.Lazy, Starts: b.plan.LazyStarts}
	var open, hello, list, called, private []float64
	for n := range b.plan.LazyStarts + 1 { // the first one learns
		b.say("%d lazy servers: start %d of %d", b.plan.Lazy, n, b.plan.LazyStarts)
		one, err := b.lazyStart(g, dir)
		if err != nil {
			return nil, fmt.Errorf("%d lazy servers: %w", b.plan.Lazy, err)
		}
		if n == 0 {
			continue
		}
		open, hello, list = append(open, one.Open), append(hello, one.Hello), append(list, one.List)
		called, private = append(called, one.Called), append(private, one.Private)
		out.Tools, out.Before, out.After = one.Tools, one.Before, one.After
	}
	out.Open, out.Hello, out.List = figures.Median(open), figures.Median(hello), figures.Median(list)
	out.Called, out.Private = figures.Median(called), figures.Median(private)
	return out, nil
}

// lazyStart starts it once, reads the tools, and calls one.
func (b *bench) lazyStart(g gateway, dir string) (one lazyFigures, err error) {
	r, err := b.startIn(g, b.plan.Lazy, dir)
	if err != nil {
		return one, err
	}
	defer r.stop(b.echo)
	one.Open = milliseconds(time.Since(r.began))
	w, err := newWire(r.url)
	if err != nil {
		return one, err
	}
	s := &session{wire: w, nextID: 100_000_000}
	defer s.close()
	if err := s.initialize(); err != nil {
		return one, err
	}
	one.Hello = milliseconds(time.Since(r.began))
	if err := s.awaitTools(b.plan.Lazy); err != nil {
		return one, err
	}
	one.List, one.Tools = milliseconds(time.Since(r.began)), len(s.tools)
	time.Sleep(1500 * time.Millisecond) // late starts would show
	before := look(r.cmd.Process.Pid, b.echo)
	one.Private, one.Before = before.Own.Private, before.Processes
	begin := time.Now()
	if _, err := s.ask("tools/call", echoParams(s.tools[0], messageSize), patience); err != nil {
		return one, err
	}
	one.Called = milliseconds(time.Since(begin))
	one.After = look(r.cmd.Process.Pid, b.echo).Processes
	return one, nil
}

package main

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// lazyServerFigures are of one start of a gateway of many servers that are not started before they are called. Times in ms.
type lazyServerFigures struct {
	open, hello, list float64 // since exec: it listens, initialize is answered, tools/list is answered
	called            float64 // first call of a server, its start included
	private           float64 // bytes
	tools             int
	before, after     int // processes of servers before and after that call
}

// lazyServers measures a gateway of many servers that start with their first call: what their tools are is known from an
// earlier run.
func (b *bench) lazyServers() (outcome, error) {
	g := gateway{name: "outlive, lazy servers", ours: true, program: b.outlive, setup: outliveSetup(`args: ["0"]`, "lazy: true")}
	dir, err := b.home()
	if err != nil {
		return outcome{}, err
	}
	var all []lazyServerFigures
	for n := range b.crowd.lazyStarts + 1 { // the first one learns
		b.say("%d lazy servers: start %d of %d", b.crowd.lazy, n, b.crowd.lazyStarts)
		one, err := b.lazyStart(g, dir)
		if err != nil {
			b.fail("%d lazy servers: %v", b.crowd.lazy, err)
			return outcome{}, nil
		}
		if n > 0 {
			all = append(all, one)
		}
	}
	median := func(of func(lazyServerFigures) float64) float64 {
		var values []float64
		for _, one := range all {
			values = append(values, of(one))
		}
		return figures.Median(values)
	}
	t := figures.Table{
		Title: fmt.Sprintf("Gateways: %d lazy servers", b.crowd.lazy),
		Note: fmt.Sprintf("outlive with %d servers that start with their first call (`lazy: true`); their tools are known from an earlier run. Times since exec, medians of %d starts.",
			b.crowd.lazy, b.crowd.lazyStarts),
		Rows: [][]string{{"", "listens, ms", "initialize answered, ms", "tools/list answered, ms", "tools", "memory, MB", "servers running", "first call, ms", "servers running then"}},
	}
	last := all[len(all)-1]
	t.Add("outlive", median(func(f lazyServerFigures) float64 { return f.open }), median(func(f lazyServerFigures) float64 { return f.hello }),
		median(func(f lazyServerFigures) float64 { return f.list }), last.tools, median(func(f lazyServerFigures) float64 { return f.private / mebibyte }),
		last.before, median(func(f lazyServerFigures) float64 { return f.called }), last.after)
	return outcome{tables: []figures.Table{t}}, nil
}

// lazyStart starts it once, reads the tools, and calls one.
func (b *bench) lazyStart(g gateway, dir string) (one lazyServerFigures, err error) {
	r, err := b.startIn(g, b.crowd.lazy, dir)
	if err != nil {
		return one, err
	}
	defer r.stop()
	one.open = milliseconds(time.Since(r.began))
	w, err := newWire(r.url)
	if err != nil {
		return one, err
	}
	s := &session{wire: w, nextID: 100_000_000}
	defer s.close()
	if err := s.initialize(); err != nil {
		return one, err
	}
	one.hello = milliseconds(time.Since(r.began))
	if err := s.awaitTools(b.crowd.lazy); err != nil {
		return one, err
	}
	one.list, one.tools = milliseconds(time.Since(r.began)), len(s.tools)
	time.Sleep(1500 * time.Millisecond) // late starts would show
	before := look(r.pid(), b.echo)
	one.private, one.before = before.own.Dirty, before.processes
	begin := time.Now()
	if _, err := s.ask("tools/call", echoParams(s.tools[0], messageSize), patience); err != nil {
		return one, err
	}
	one.called = milliseconds(time.Since(begin))
	one.after = look(r.pid(), b.echo).processes
	return one, nil
}

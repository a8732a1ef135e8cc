package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// lazy measures a gateway of many servers that start with their first call: what their tools are is known from an earlier run.
func (b *bench) lazy() (*lazyFigures, error) {
	var config strings.Builder
	config.WriteString("servers:\n")
	for i := range b.plan.Lazy {
		fmt.Fprintf(&config, "  s%d:\n    command: %s\n    args: [\"0\"]\n    lazy: true\n", i, b.echo)
	}
	out := &lazyFigures{Servers: b.plan.Lazy, Starts: b.plan.LazyStarts}
	var open, hello, list, called, memory []float64
	for n := range b.plan.LazyStarts + 1 { // the first one learns
		b.say("%d lazy servers: start %d of %d", b.plan.Lazy, n, b.plan.LazyStarts)
		one, err := b.lazyStart(config.String())
		if err != nil {
			return nil, fmt.Errorf("%d lazy servers: %w", b.plan.Lazy, err)
		}
		if n == 0 {
			continue
		}
		open, hello, list = append(open, one.Open), append(hello, one.Hello), append(list, one.List)
		called, memory = append(called, one.Called), append(memory, one.Private)
		out.Tools, out.Before, out.After = one.Tools, one.Before, one.After
	}
	out.Open, out.Hello, out.List = figures.Median(open), figures.Median(hello), figures.Median(list)
	out.Called, out.Private = figures.Median(called), figures.Median(memory)
	return out, nil
}

// lazyStart starts it once, reads the tools, and calls one.
func (b *bench) lazyStart(config string) (one lazyFigures, err error) {
	r, err := b.startOutlive(gateway{name: "outlive, lazy servers"}, config)
	if err != nil {
		return one, err
	}
	defer r.stop()
	one.Open = milliseconds(r.open)
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
	tools, err := s.ask("tools/list", "{}", patience)
	if err != nil {
		return one, err
	}
	one.List = milliseconds(time.Since(r.began))
	one.Tools = bytes.Count(tools, []byte(`_echo"`))
	s.tool = echoTool(tools)
	time.Sleep(1500 * time.Millisecond) // the process gives back what only its start needed, and late starts would show
	one.Private = ownMemory(r.cmd.Process.Pid, b.echo)
	one.Before = len(serversUnder(r.cmd.Process.Pid, b.echo))
	begin := time.Now()
	if _, err := s.ask("tools/call", s.echoParams(messageSize), patience); err != nil {
		return one, err
	}
	one.Called = milliseconds(time.Since(begin))
	one.After = len(serversUnder(r.cmd.Process.Pid, b.echo))
	return one, nil
}

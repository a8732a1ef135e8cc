package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// namedServer is a server whose restarts are measured.
type namedServer struct {
	name    string
	command []string
}

// runFlags are the flags of `outlive run` alone.
func runFlags(to *options, flags *flag.FlagSet) {
	add := func(list *[]namedServer) func(string) error {
		return func(text string) error {
			name, command, ok := strings.Cut(text, "=")
			if !ok || name == "" || len(strings.Fields(command)) == 0 {
				return fmt.Errorf("want NAME=COMMAND ARG…, got %q", text)
			}
			*list = append(*list, namedServer{name: name, command: strings.Fields(command)})
			return nil
		}
	}
	flags.Func("server", "also measure the restarts of a server, as NAME=COMMAND ARG… (repeatable)", add(&to.servers))
	flags.Func("launcher", "also measure a command that only starts a server, as NAME=COMMAND ARG… (repeatable)", add(&to.launchers))
}

// gapRow compares, for one server, its own cold start with the gap that a client sees when the server is killed behind
// outlive. Times in ms.
type gapRow struct {
	server   string
	cold     float64 // exec → first answer after the handshake, median
	gap, p90 float64 // SIGKILL → first answer, median
	starts   [ways]float64
	count    int
}

type gapRows []gapRow

// measured are the servers whose restarts are measured: our own, and those that flags name.
func (b *bench) measured() []namedServer {
	return append([]namedServer{{name: "echo (Go)", command: []string{b.echo}}}, b.servers...)
}

// gaps measures each server's cold start, its start-up by the three ways and the gap that a client sees when the server is
// killed behind outlive.
func (b *bench) gaps() (outcome, error) {
	var rows gapRows
	for _, server := range b.measured() {
		row, err := b.gap(server)
		if err != nil {
			return outcome{}, fmt.Errorf("restarts of %s: %w", server.name, err)
		}
		rows = append(rows, row)
	}
	return rows.outcome(), nil
}

func (rows gapRows) outcome() outcome {
	gaps := figures.Table{
		Title: "Restart gap, ms",
		Note: "From SIGKILL of the server to the answer of a call that waits for it, and the server's own cold start: " +
			"from exec to the answer of the same call, handshake included. Medians.",
		Rows: [][]string{{"server", "cold start", "gap", "gap p90", "gap − cold start", "restarts"}},
	}
	starts := figures.Table{
		Title: "Start-up, ms", Note: "From exec to the answer of initialize. Medians.",
		Rows: [][]string{{"server", "direct", "floor", "outlive", "outlive adds"}},
	}
	panel := figures.Panel{
		Title: "Server killed with SIGKILL: ms until the next call is answered",
		Legend: []figures.Bar{
			{Colour: figures.OtherColour, Text: "the server's own cold start"},
			{Colour: figures.OutliveColour, Text: "gap behind outlive"},
		},
	}
	var list []promise
	for _, g := range rows {
		gaps.Add(g.server, g.cold, g.gap, g.p90, g.gap-g.cold, g.count)
		starts.Add(g.server, g.starts[direct], g.starts[floor], g.starts[outlive], g.starts[outlive]-g.starts[direct])
		panel.Groups = append(panel.Groups, figures.Group{Label: g.server, Bars: []figures.Bar{
			{Colour: figures.OtherColour, Value: g.cold, Text: figures.Number(g.cold)},
			{Colour: figures.OutliveColour, Value: g.gap, Text: figures.Number(g.gap)},
		}})
		list = append(list, promise{name: "restart gap over cold start, " + g.server, got: g.gap - g.cold, limit: 5, unit: " ms"})
	}
	return outcome{promises: list, tables: []figures.Table{gaps, starts}, panels: []figures.Panel{panel}}
}

// gap measures one server: cold starts and gaps take turns.
func (b *bench) gap(server namedServer) (gapRow, error) {
	kept, err := b.start(outlive, server.command)
	if err != nil {
		return gapRow{}, err
	}
	defer kept.stop()
	var cold, gaps []float64
	var starts [ways][]float64
	for i := range b.plan.starts {
		b.say("start-up and restart of %s: %d of %d", server.name, i+1, b.plan.starts)
		for turn := range ways {
			way := (turn + i) % ways
			ready, answered, err := b.coldStart(way, server.command)
			if err != nil {
				return gapRow{}, err
			}
			starts[way] = append(starts[way], ready)
			if way == direct {
				cold = append(cold, answered)
			}
		}
		took, err := kept.killAndAsk()
		if err != nil {
			return gapRow{}, err
		}
		gaps = append(gaps, took)
	}
	row := gapRow{
		server: server.name, count: b.plan.starts,
		cold: figures.Median(cold), gap: figures.Median(gaps), p90: figures.Percentile(gaps, 0.9),
	}
	for way := range starts {
		row.starts[way] = figures.Median(starts[way])
	}
	return row, nil
}

// coldStart starts a server once and returns, in ms since before exec, when
// initialize was answered and when the first request after the handshake was.
func (b *bench) coldStart(way int, server []string) (ready, answered float64, err error) {
	begin := time.Now()
	p, err := b.startPeer(wayNames[way], b.command(way, server))
	if err != nil {
		return 0, 0, err
	}
	defer p.stop()
	if err := p.initialize(); err != nil {
		return 0, 0, err
	}
	ready = milliseconds(time.Since(begin))
	err = p.list()
	return ready, milliseconds(time.Since(begin)), err
}

// killAndAsk kills the server behind the peer, asks at once, and returns how
// many ms after the kill the answer came.
func (p *peer) killAndAsk() (float64, error) {
	children := serversOf(p.pid())
	if len(children) == 0 {
		return 0, errors.New("the peer has no server to kill")
	}
	begin := time.Now()
	for _, child := range children {
		if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
			return 0, fmt.Errorf("kill %d: %w", child, err)
		}
	}
	if err := p.list(); err != nil {
		return 0, err
	}
	took := milliseconds(time.Since(begin))
	if now := serversOf(p.pid()); slices.Equal(now, children) {
		return 0, fmt.Errorf("the killed processes %v answered", children)
	}
	return took, nil
}

// serversOf lists the servers that outlive runs: they are children of its keeper, or its own where it has none.
func serversOf(pid int) (servers []int) {
	for _, child := range proc.Children(pid) {
		if argv := proc.Argv(child); len(argv) > 0 && argv[0] == "outlive-keeper" {
			servers = append(servers, proc.Children(child)...)
		} else {
			servers = append(servers, child)
		}
	}
	slices.Sort(servers)
	return servers
}

package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// openers is how many sessions are opened at a time.
const openers = 16

// fleet is one gateway with all its sessions.
type fleet struct {
	*running
	sessions []*session
	at       int // its place among the gateways
}

// load is what one gateway does with so many sessions that call without a pause. Samples are by round, then by block.
type load struct {
	name            string
	ours            bool
	rates, p50, p99 [][]float64 // calls/s, ms, ms
	checked         [][]float64 // calls/s, counted by the second client
	idle, loaded    []usage     // by round: with all sessions open, and after the load
}

// loads measures every gateway's calls a second, its round trips and its memory, with each number of sessions.
func (b *bench) loads() (out outcome, err error) {
	for i, n := range b.crowd.connections {
		rows := b.loadOf(n)
		out.tables = append(out.tables, loadTable(rows, n, b.crowd))
		if i == 0 {
			out.panels = loadPanels(rows, n)
		}
	}
	return out, nil
}

// loadOf measures all gateways with so many sessions; they take turns.
func (b *bench) loadOf(connections int) []load {
	gateways := b.plain()
	rows := make([]load, len(gateways))
	for i, g := range gateways {
		rows[i].name, rows[i].ours = g.name, g.ours
	}
	out := make([]bool, len(rows))
	for round := range b.crowd.rounds {
		fleets := b.startFleets(connections, out)
		for _, f := range fleets {
			row := &rows[f.at]
			row.idle = append(row.idle, look(f.pid(), b.echo))
			row.rates, row.p50, row.p99 = append(row.rates, nil), append(row.p50, nil), append(row.p99, nil)
			row.checked = append(row.checked, nil)
		}
		for block := range b.crowd.blocks {
			for turn := range fleets {
				f := fleets[(turn+block+round)%len(fleets)]
				if out[f.at] {
					continue
				}
				b.say("load of %d: round %d of %d, block %d of %d: %s", connections, round+1, b.crowd.rounds, block+1, b.crowd.blocks, f.name)
				if err := f.blocks(&rows[f.at], b.crowd.block, block == 0); err != nil {
					b.fail("load of %d connections: %s: %v", connections, f.name, err)
					out[f.at] = true
				}
			}
		}
		for _, f := range fleets {
			rows[f.at].loaded = append(rows[f.at].loaded, look(f.pid(), b.echo))
		}
		for _, f := range fleets {
			f.close()
		}
	}
	kept := rows[:0]
	for i, row := range rows {
		if !out[i] {
			kept = append(kept, row)
		}
	}
	return kept
}

// blocks adds one block to a row, and with check one of the second client, beside all of the first.
func (f *fleet) blocks(row *load, length time.Duration, check bool) error {
	if err := f.block(row, length); err != nil || !check {
		return err
	}
	return f.checkBlock(row, length)
}

// block adds one block to a row.
func (f *fleet) block(row *load, length time.Duration) error {
	trips, took, err := f.run(length)
	if err != nil {
		return err
	}
	last := len(row.rates) - 1
	row.rates[last] = append(row.rates[last], float64(len(trips))/took.Seconds())
	row.p50[last] = append(row.p50[last], figures.Percentile(trips, 0.5))
	row.p99[last] = append(row.p99[last], figures.Percentile(trips, 0.99))
	return nil
}

// startFleets starts every gateway that is not out and its sessions, and lets each warm up.
func (b *bench) startFleets(connections int, out []bool) (fleets []*fleet) {
	for i, g := range b.plain() {
		if out[i] {
			continue
		}
		b.say("load of %d: starting %s", connections, g.name)
		f, err := b.startFleet(g, connections)
		if err != nil {
			b.fail("load of %d connections: %s: %v", connections, g.name, err)
			out[i] = true
			continue
		}
		f.at = i
		fleets = append(fleets, f)
	}
	time.Sleep(time.Second) // collectors give memory back
	return fleets
}

func (b *bench) startFleet(g gateway, connections int) (*fleet, error) {
	r, err := b.startGateway(g, 1)
	if err != nil {
		return nil, err
	}
	f := &fleet{running: r}
	if err = f.open(connections); err == nil {
		_, _, err = f.run(b.crowd.block / 2)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// connectAndCall opens a session and has it call once: only then some gateways start its server.
func connectAndCall(url string) (*session, error) {
	s, err := connect(url, 1)
	if err != nil {
		return nil, err
	}
	if _, err := s.ask("tools/call", echoParams(s.tools[0], messageSize), patience); err != nil {
		s.close()
		return nil, fmt.Errorf("first call: %w", err)
	}
	return s, nil
}

// open opens sessions until there are so many.
func (f *fleet) open(sessions int) error {
	for len(f.sessions) < sessions {
		batch := make([]*session, min(openers, sessions-len(f.sessions)))
		errs := make([]error, len(batch))
		var wg sync.WaitGroup
		for i := range batch {
			wg.Go(func() { batch[i], errs[i] = connectAndCall(f.url) })
		}
		wg.Wait()
		f.sessions = append(f.sessions, slices.DeleteFunc(batch, func(s *session) bool { return s == nil })...)
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("session %d: %w", len(f.sessions)+1, err)
		}
	}
	return nil
}

func (f *fleet) close() {
	for _, s := range f.sessions {
		s.close()
	}
	f.stop()
}

// run lets every session call for as long as a block lasts and returns the round trips in ms. Each opens its connection
// anew: during the turns of others a gateway may have closed it as idle.
func (f *fleet) run(block time.Duration) (trips []float64, took time.Duration, err error) {
	all := make([][]float64, len(f.sessions))
	errs := make([]error, len(f.sessions))
	begin := time.Now()
	var wg sync.WaitGroup
	for i, s := range f.sessions {
		s.close()
		wg.Go(func() { all[i], errs[i] = s.calls(begin.Add(block)) })
	}
	wg.Wait()
	took = time.Since(begin)
	for _, some := range all {
		trips = append(trips, some...)
	}
	return trips, took, errors.Join(errs...)
}

// calls calls until the end and returns the round trips in ms.
func (s *session) calls(end time.Time) (trips []float64, err error) {
	params := echoParams(s.tools[0], messageSize)
	for now := time.Now(); now.Before(end); {
		if _, err := s.ask("tools/call", params, patience); err != nil {
			return trips, err
		}
		after := time.Now()
		trips = append(trips, milliseconds(after.Sub(now)))
		now = after
	}
	return trips, nil
}

package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// plan says how much is measured.
type plan struct {
	Rounds, Blocks int
	Block          time.Duration // of one gateway's turn
	Kills          int           // of outlive's server; the others' first one shows whether they come back at all
	OtherKills     int
	Lazy           int // servers
	LazyStarts     int
}

func planFor(quick bool) plan {
	if quick {
		return plan{Rounds: 1, Blocks: 3, Block: 500 * time.Millisecond, Kills: 5, OtherKills: 1, Lazy: 100, LazyStarts: 3}
	}
	return plan{Rounds: 4, Blocks: 5, Block: time.Second, Kills: 50, OtherKills: 2, Lazy: 100, LazyStarts: 10}
}

// fleet is one gateway with all its sessions.
type fleet struct {
	*running
	sessions []*session
}

// loads measures every gateway's calls a second, its round trips and its memory; the gateways take turns.
func (b *bench) loads() ([]load, error) {
	rows := make([]load, len(b.gateways))
	rates, p50s, p99s := make([][]float64, len(rows)), make([][]float64, len(rows)), make([][]float64, len(rows))
	memory, idle := make([][]float64, len(rows)), make([][]float64, len(rows))
	for round := range b.plan.Rounds {
		fleets, err := b.startFleets()
		if err != nil {
			return nil, err
		}
		for i, f := range fleets {
			idle[i] = append(idle[i], ownMemory(f.cmd.Process.Pid, b.echo))
		}
		for block := range b.plan.Blocks {
			for turn := range fleets {
				i := (turn + block + round) % len(fleets)
				b.say("load: round %d of %d, block %d of %d: %s", round+1, b.plan.Rounds, block+1, b.plan.Blocks, fleets[i].name)
				trips, took, err := fleets[i].run(b.plan.Block)
				if err != nil {
					stopFleets(fleets)
					return nil, fmt.Errorf("%s: %w", fleets[i].name, err)
				}
				rates[i] = append(rates[i], float64(len(trips))/took.Seconds())
				p50s[i] = append(p50s[i], figures.Percentile(trips, 0.5))
				p99s[i] = append(p99s[i], figures.Percentile(trips, 0.99))
			}
		}
		for i, f := range fleets {
			memory[i] = append(memory[i], ownMemory(f.cmd.Process.Pid, b.echo))
			rows[i].Processes = len(serversUnder(f.cmd.Process.Pid, b.echo))
		}
		stopFleets(fleets)
	}
	for i := range rows {
		rows[i].Name, rows[i].Ours = b.gateways[i].name, b.gateways[i].command == nil
		rows[i].Rate, rows[i].P50, rows[i].P99 = figures.Midmean(rates[i]), figures.Midmean(p50s[i]), figures.Midmean(p99s[i])
		rows[i].Idle, rows[i].Loaded = figures.Median(idle[i]), figures.Median(memory[i])
	}
	return rows, nil
}

// startFleets starts every gateway and its sessions, and lets each warm up.
func (b *bench) startFleets() ([]*fleet, error) {
	var fleets []*fleet
	for _, g := range b.gateways {
		r, err := b.start(g)
		if err != nil {
			stopFleets(fleets)
			return nil, err
		}
		f := &fleet{running: r}
		fleets = append(fleets, f)
		for range connections {
			s, err := connect(r.url)
			if err != nil {
				stopFleets(fleets)
				return nil, fmt.Errorf("%s: %w", g.name, err)
			}
			f.sessions = append(f.sessions, s)
		}
		if _, _, err := f.run(b.plan.Block / 2); err != nil {
			stopFleets(fleets)
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
	}
	time.Sleep(time.Second) // collectors give memory back
	return fleets, nil
}

func stopFleets(fleets []*fleet) {
	for _, f := range fleets {
		for _, s := range f.sessions {
			s.close()
		}
		f.stop()
	}
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
	params := s.echoParams(messageSize)
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

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

//go:build unix

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/bench/rawio"
)

// bench is one run: what is compared, and where its progress goes.
type bench struct {
	binaries binaries
	env      []string // for every peer
	dir      string   // scratch directory
	plan     plan
	progress func(format string, args ...any)
}

// outliveFlags are everything on, and limits that the benchmark itself would hit off.
var outliveFlags = []string{"run", "--restart-delay", "0", "--max-restarts", "0", "--max-message", "32MiB", "--"}

// command is how a server's command is started by one of the three ways.
func (b *bench) command(way int, server []string) []string {
	switch way {
	case floor:
		return slices.Concat([]string{b.binaries.floor}, server)
	case outlive:
		return slices.Concat([]string{b.binaries.outlive}, outliveFlags, server)
	}
	return server
}

// start starts server by the given way and completes the handshake.
func (b *bench) start(way int, server []string) (*peer, error) {
	p, err := startPeer(wayNames[way], b.command(way, server), b.env, b.dir)
	if err != nil {
		return nil, err
	}
	if err := p.handshake(); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// startAll starts the echo server by each way.
func (b *bench) startAll() (peers [ways]*peer, err error) {
	for way := range peers {
		if peers[way], err = b.start(way, []string{b.binaries.echo}); err != nil {
			stopAll(peers)
			return peers, err
		}
		peers[way].load(200, 1)
		if _, err := peers[way].trips(500, 1, nil); err != nil {
			stopAll(peers)
			return peers, err
		}
	}
	return peers, nil
}

func stopAll(peers [ways]*peer) {
	for _, p := range peers {
		if p != nil {
			p.stop()
		}
	}
}

// latencies measures every scenario of the plan in rounds of fresh processes.
func (b *bench) latencies() ([]latencyRow, error) {
	gathered := make([][ways]series, len(b.plan.Scenarios))
	for round := range b.plan.Rounds {
		peers, err := b.startAll()
		if err != nil {
			return nil, err
		}
		for i, s := range b.plan.Scenarios {
			b.progress("latency and throughput: round %d of %d: %s", round+1, b.plan.Rounds, s)
			if err := b.scenario(s, peers, round, &gathered[i]); err != nil {
				stopAll(peers)
				return nil, fmt.Errorf("%s: %w", s, err)
			}
		}
		stopAll(peers)
	}
	rows := make([]latencyRow, len(gathered))
	for i := range gathered {
		rows[i].scenario = b.plan.Scenarios[i]
		for way := range ways {
			rows[i].By[way] = gathered[i][way].figure()
		}
	}
	return rows, nil
}

// scenario measures one round's blocks of one scenario, the peers taking turns.
func (b *bench) scenario(s scenario, peers [ways]*peer, round int, into *[ways]series) error {
	for _, p := range peers {
		p.load(s.Size, s.InFlight)
	}
	for block := range b.plan.blocks(s) {
		for turn := range ways {
			way := (turn + block + round) % ways
			if err := measureBlock(s, peers[way], &into[way]); err != nil {
				return err
			}
		}
	}
	return nil
}

// measureBlock measures one block through one peer.
func measureBlock(s scenario, p *peer, into *series) error {
	record := make([]float64, 0, s.calls())
	if s.Think {
		return measureThinking(s, p, into, record)
	}
	if _, err := p.trips(s.warmUp(), s.InFlight, nil); err != nil {
		return err
	}
	begin := time.Now()
	record, err := p.trips(s.calls(), s.InFlight, record)
	into.add(record, time.Since(begin).Seconds())
	return err
}

// measureThinking makes batches of InFlight calls with thinkTime between them;
// the first two batches follow another peer's turn and do not count.
func measureThinking(s scenario, p *peer, into *series, record []float64) error {
	const lead = 2
	var busy time.Duration
	for batch := range s.calls()/s.InFlight + lead {
		rawio.Sleep(thinkTime)
		begin := time.Now()
		var err error
		if record, err = p.trips(s.InFlight, s.InFlight, record); err != nil {
			return err
		}
		busy += time.Since(begin)
		if batch < lead {
			record, busy = record[:0], 0
		}
	}
	into.add(record, busy.Seconds())
	return nil
}

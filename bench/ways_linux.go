package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/bench/rawio"
)

// The three ways to reach the server, in the order in which they are reported.
const (
	direct = iota
	floor
	outlive
	ways
)

var wayNames = [ways]string{"direct", "floor", "outlive"}

// outliveFlags are everything on, and limits that the benchmark itself would hit off.
var outliveFlags = []string{"run", "--restart-delay", "0", "--max-restarts", "0", "--max-message", "32MiB", "--"}

// command is how a server's command is started by one of the three ways.
func (b *bench) command(way int, server []string) []string {
	switch way {
	case floor:
		return slices.Concat([]string{b.echo, "relay"}, server)
	case outlive:
		return slices.Concat([]string{b.outlive}, outliveFlags, server)
	}
	return server
}

// start starts server by the given way and completes the handshake.
func (b *bench) start(way int, server []string) (*peer, error) {
	p, err := b.startPeer(wayNames[way], b.command(way, server))
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
		if peers[way], err = b.start(way, []string{b.echo}); err != nil {
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

// thinkTime is the pause between two calls that stands for how agents really call: caches and cores have gone cold by then.
const thinkTime = 20 * time.Millisecond

// scenario is one kind of load.
type scenario struct {
	size     int  // bytes of one request line, about those of its answer
	inFlight int  // requests under way at the same time
	think    bool // thinkTime between one batch of inFlight requests and the next
}

func (s scenario) String() string {
	text := fmt.Sprintf("%s, %d in flight", sizeName(s.size), s.inFlight)
	if s.think {
		text += fmt.Sprintf(", %d ms between", thinkTime.Milliseconds())
	}
	return text
}

// sizeName writes a number of bytes as people say it.
func sizeName(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%d MB", bytes>>20)
	case bytes >= 1<<10:
		return fmt.Sprintf("%d KB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

// blocks is how many blocks one round has. With thinking time a block is long, and one holds enough.
func (s scenario) blocks(p plan) int {
	if s.think {
		return 1
	}
	return p.blocks
}

// calls is how many calls one block has.
func (s scenario) calls() int {
	switch {
	case s.think && s.size == 200 && s.inFlight == 1:
		return 25
	case s.think:
		return 5 * s.inFlight
	}
	alone, together := 400, 3200
	switch {
	case s.size >= 1<<20:
		alone, together = 24, 64
	case s.size >= 64<<10:
		alone, together = 100, 640
	case s.size >= 4<<10:
		alone, together = 300, 1920
	}
	if s.inFlight == 1 {
		return alone
	}
	return together
}

// warmUp is how many calls precede each block, unmeasured: after another peer's turn the caches are that peer's.
func (s scenario) warmUp() int {
	if s.think || s.size >= 1<<20 {
		return 2 * s.inFlight
	}
	return max(20, s.inFlight)
}

// figure is what one scenario came to through one peer.
type figure struct {
	p50, p99 float64 // round trip, µs
	rate     float64 // messages/s
}

// series gathers the blocks of one scenario through one peer.
type series struct {
	p50, p99 []float64 // of each block, µs
	rate     []float64 // of each block, messages/s
}

// add takes in one block: the round trips in µs and how long it all took in seconds.
func (s *series) add(trips []float64, seconds float64) {
	s.p50 = append(s.p50, figures.Percentile(trips, 0.50))
	s.p99 = append(s.p99, figures.Percentile(trips, 0.99))
	s.rate = append(s.rate, float64(len(trips))/seconds)
}

// figure reduces the blocks to the mean of their middle half.
func (s *series) figure() figure {
	return figure{p50: figures.Midmean(s.p50), p99: figures.Midmean(s.p99), rate: figures.Midmean(s.rate)}
}

// scenario measures one round's blocks of one scenario, the peers taking turns.
func (b *bench) scenario(s scenario, peers [ways]*peer, round int, into *[ways]series) error {
	for _, p := range peers {
		p.load(s.size, s.inFlight)
	}
	for block := range s.blocks(b.plan) {
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
	if s.think {
		return measureThinking(s, p, into, record)
	}
	if _, err := p.trips(s.warmUp(), s.inFlight, nil); err != nil {
		return err
	}
	begin := time.Now()
	record, err := p.trips(s.calls(), s.inFlight, record)
	into.add(record, time.Since(begin).Seconds())
	return err
}

// measureThinking makes batches of InFlight calls with thinkTime between them;
// the first two batches follow another peer's turn and do not count.
func measureThinking(s scenario, p *peer, into *series, record []float64) error {
	const lead = 2
	var busy time.Duration
	for batch := range s.calls()/s.inFlight + lead {
		rawio.Sleep(thinkTime)
		begin := time.Now()
		var err error
		if record, err = p.trips(s.inFlight, s.inFlight, record); err != nil {
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

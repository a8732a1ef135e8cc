package main

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// The three ways to reach the server, in the order in which they are reported.
const (
	direct = iota
	floor
	outlive
	ways
)

var wayNames = [ways]string{"direct", "floor", "outlive"}

// thinkTime is the pause between two calls that stands for how agents really
// call: caches and cores have gone cold by then.
const thinkTime = 20 * time.Millisecond

// scenario is one kind of load.
type scenario struct {
	Size     int  // bytes of one request line, about those of its answer
	InFlight int  // requests under way at the same time
	Think    bool // thinkTime between one batch of InFlight requests and the next
}

func (s scenario) String() string {
	text := fmt.Sprintf("%s, %d in flight", sizeName(s.Size), s.InFlight)
	if s.Think {
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

// figure is what one scenario came to through one peer.
type figure struct {
	P50, P99 float64 // round trip, µs
	Rate     float64 // messages/s
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
	return figure{P50: figures.Midmean(s.p50), P99: figures.Midmean(s.p99), Rate: figures.Midmean(s.rate)}
}

// latencyRow is one scenario by all three ways.
type latencyRow struct {
	scenario
	By [ways]figure
}

// addedP50 is what the given way adds to the median round trip, in µs.
func (r latencyRow) addedP50(way int) float64 { return r.By[way].P50 - r.By[direct].P50 }

// addedP99 is what the given way adds to the 99th percentile, in µs.
func (r latencyRow) addedP99(way int) float64 { return r.By[way].P99 - r.By[direct].P99 }

// gapRow compares, for one server, its own cold start with the gap that a
// client sees when the server is killed behind outlive.
type gapRow struct {
	Server  string
	Cold    float64 // exec → first answer after the handshake, median, ms
	Gap     float64 // SIGKILL → first answer, median, ms
	GapP90  float64 // ms
	StartBy [ways]float64
	Count   int
}

// memoryFigures are what one process holds, in bytes; NaN where the system
// cannot say.
type memoryFigures struct {
	Private float64 // written pages that no other process shares, idle
	Clean   float64 // unwritten pages of its own binary that no other process shares at the moment
	Extra   float64 // peak over idle while the long line passes
	LongMS  float64 // round trip of the long line, ms
}

// processState is what must not grow over restarts.
type processState struct {
	Descriptors, Threads int
	Private              float64 // bytes
}

// restartFigures are the outcome of many restarts of one server.
type restartFigures struct {
	Count         int
	Before, After processState
	Took          time.Duration
}

// results is everything one run found out.
type results struct {
	Machine  figures.Machine
	Quick    bool
	Only     string // the one part of Care that was measured; "": everything was
	Latency  []latencyRow
	Gaps     []gapRow
	Memory   [ways]memoryFigures
	Restarts *restartFigures
	Care     care
	Took     time.Duration
}

// row returns the row of a scenario, or nil when it was not measured.
func (r *results) row(s scenario) *latencyRow {
	for i := range r.Latency {
		if r.Latency[i].scenario == s {
			return &r.Latency[i]
		}
	}
	return nil
}

package main

import "time"

// plan says how much of `outlive run` is measured. Counts of calls are per block, chosen so that a block takes 5 to 50 ms.
type plan struct {
	rounds    int // each with processes of its own
	blocks    int // per scenario, way and round
	scenarios []scenario
	starts    int // start-ups and restart gaps per server
	longLines int
	reloads   int // planned restarts under load
	spares    int // kills with a spare, per server
	saves     int // broken ones, each followed by a mended one
	launches  int // first starts per launcher
	taps      int // pairs of blocks, watched and not
	restarts  int // between two looks at what outlive holds
}

// planFor is the measuring plan; a quick one keeps what is promised.
func planFor(quick bool) plan {
	if quick {
		return plan{
			rounds: 8, blocks: 4, starts: 12, longLines: 3, reloads: 4, spares: 8, saves: 1, launches: 1, taps: 12, restarts: 300,
			scenarios: []scenario{
				{size: 200, inFlight: 1},
				{size: 200, inFlight: 1, think: true},
				{size: 200, inFlight: 64},
				{size: 4 << 10, inFlight: 64},
				{size: 64 << 10, inFlight: 1},
				{size: 64 << 10, inFlight: 64},
			},
		}
	}
	full := plan{rounds: 6, blocks: 6, starts: 30, longLines: 8, reloads: 40, spares: 30, saves: 8, launches: 3, taps: 24, restarts: 10_000}
	for _, think := range []bool{false, true} {
		for _, size := range []int{200, 4 << 10, 64 << 10, 1 << 20} {
			for _, inFlight := range []int{1, 64} {
				full.scenarios = append(full.scenarios, scenario{size: size, inFlight: inFlight, think: think})
			}
		}
	}
	return full
}

// crowdPlan says how much of the gateways is measured.
type crowdPlan struct {
	connections []int
	rounds      int
	blocks      int
	block       time.Duration // of one gateway's turn
	sessions    []int
	growths     int // rounds of the sessions' curve; the greatest number is measured in the last one only
	together    int // gateways whose sessions are silent at the same time
	servers     []int
	lists       int // rounds of the servers' curve
	starts      int // that are followed by a kill
	rows        int // of these, so many are followed by more kills
	row         int // kills in a row, the first included
	lazy        int // servers
	lazyStarts  int
}

func crowdPlanFor(quick bool) crowdPlan {
	if quick {
		return crowdPlan{connections: []int{16}, rounds: 2, blocks: 2, block: 300 * time.Millisecond, sessions: []int{1, 50}, growths: 1, together: 8,
			servers: []int{1, 10}, lists: 1, starts: 2, rows: 1, row: 3, lazy: 100, lazyStarts: 2}
	}
	return crowdPlan{connections: []int{16, 128}, rounds: 3, blocks: 4, block: 800 * time.Millisecond, sessions: []int{1, 10, 100, 1000}, growths: 2, together: 1,
		servers: []int{1, 10, 100}, lists: 2, starts: 6, rows: 2, row: 6, lazy: 100, lazyStarts: 10}
}

//go:build unix

package main

import (
	"math"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// settleTime is how long a process is left alone before it counts as idle.
const settleTime = time.Second

// memory measures, for each way with processes of its own, what the process
// holds when idle and how much more while long lines pass.
func (b *bench) memory() (by [ways]memoryFigures, err error) {
	peers, err := b.startAll()
	if err != nil {
		return by, err
	}
	defer stopAll(peers)
	time.Sleep(settleTime)
	for way, p := range peers {
		by[way].Private, by[way].Clean = privateMemory(p.cmd.Process.Pid)
	}
	var trips [ways][]float64
	var extra [ways][]float64
	for _, p := range peers {
		p.load(longLine, 1)
	}
	for line := range b.plan.LongLines {
		b.progress("long lines: %d of %d", line+1, b.plan.LongLines)
		for way, p := range peers {
			idle := resetPeak(p.cmd.Process.Pid)
			if trips[way], err = p.trips(1, 1, trips[way]); err != nil {
				return by, err
			}
			extra[way] = append(extra[way], peak(p.cmd.Process.Pid)-idle)
		}
	}
	for way := range by {
		by[way].LongMS = figures.Median(trips[way]) / 1e3
		by[way].Extra = figures.Percentile(extra[way], 1)
		if way == direct {
			by[way].Extra = math.NaN()
		}
	}
	return by, nil
}

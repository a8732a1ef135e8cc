package main

import (
	"fmt"
	"math"
)

// promise is one figure that outlive vows to keep.
type promise struct {
	Name  string
	Got   float64
	Limit float64
	Unit  string
	Least bool // Got must be at least Limit; otherwise at most
}

// kept is false for what was not measured, which is NaN.
func (p promise) kept() bool {
	if p.Least {
		return p.Got >= p.Limit
	}
	return p.Got <= p.Limit
}

func (p promise) bound() string {
	if p.Least {
		return fmt.Sprintf("≥ %.4g%s", p.Limit, p.Unit)
	}
	return fmt.Sprintf("≤ %.4g%s", p.Limit, p.Unit)
}

const mebibyte = 1 << 20

// promises holds the run against what the project promises.
func promises(r *results) []promise {
	if r.Only != "" {
		return r.Care.promises()
	}
	small := scenario{Size: 200, InFlight: 1}
	thinking := scenario{Size: 200, InFlight: 1, Think: true}
	list := []promise{
		{Name: "added p50, " + small.String(), Got: addedRatio(r, small, latencyRow.addedP50), Limit: 1.6, Unit: " × floor"},
		{Name: "added p99, " + small.String(), Got: addedRatio(r, small, latencyRow.addedP99), Limit: 2, Unit: " × floor"},
		// After 20 ms the caches are cold for everybody: a ratio to a relay of a few lines says little, a tenth of a millisecond does.
		{Name: "added p50, " + thinking.String(), Got: addedTime(r, thinking), Limit: 150, Unit: " µs"},
	}
	for _, size := range []int{4 << 10, 64 << 10} {
		s := scenario{Size: size, InFlight: 64}
		list = append(list, promise{Name: "messages/s, " + s.String(), Got: rateRatio(r, s), Limit: 0.25, Unit: " × direct", Least: true})
	}
	list = append(list,
		promise{Name: sizeName(longLine) + " line, extra memory", Got: r.Memory[outlive].Extra / mebibyte, Limit: 40, Unit: " MB"},
		promise{Name: "private memory, idle", Got: r.Memory[outlive].Private / mebibyte, Limit: 8, Unit: " MB"})
	for _, gap := range r.Gaps {
		list = append(list, promise{Name: "restart gap over cold start, " + gap.Server, Got: gap.Gap - gap.Cold, Limit: 5, Unit: " ms"})
	}
	list = append(list, r.Care.promises()...)
	if r.Restarts != nil {
		list = append(list, restartPromises(r.Restarts)...)
	}
	return list
}

// restartPromises: nothing may grow. Memory gets the room that a garbage
// collector needs between two readings; a leak over thousands of restarts is far beyond it.
func restartPromises(r *restartFigures) []promise {
	over := fmt.Sprintf(" over %d restarts", r.Count)
	return []promise{
		{Name: "descriptors gained" + over, Got: float64(r.After.Descriptors - r.Before.Descriptors), Limit: 0},
		{Name: "threads gained" + over, Got: float64(r.After.Threads - r.Before.Threads), Limit: 2},
		{Name: "private memory gained" + over, Got: (r.After.Private - r.Before.Private) / mebibyte, Limit: 1, Unit: " MB"},
	}
}

// addedTime is what outlive adds to the median round trip, in µs; NaN if it was not measured.
func addedTime(r *results, s scenario) float64 {
	row := r.row(s)
	if row == nil {
		return math.NaN()
	}
	return row.addedP50(outlive)
}

// addedRatio is what outlive adds over what the floor adds.
func addedRatio(r *results, s scenario, added func(latencyRow, int) float64) float64 {
	row := r.row(s)
	if row == nil || added(*row, floor) <= 0 {
		return math.NaN()
	}
	return added(*row, outlive) / added(*row, floor)
}

// rateRatio is outlive's throughput over the direct one.
func rateRatio(r *results, s scenario) float64 {
	row := r.row(s)
	if row == nil {
		return math.NaN()
	}
	return row.By[outlive].Rate / row.By[direct].Rate
}

package main

import (
	"math"
	"slices"
)

// percentile returns the q-th quantile (0…1) of values by the nearest rank, or
// NaN when there are none. It leaves values as they are.
func percentile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// median returns the middle value, or the mean of the two middle ones.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// series gathers the blocks of one scenario through one peer.
type series struct {
	p50, p99 []float64 // of each block, µs
	rate     []float64 // of each block, messages/s
}

// add takes in one block: the round trips in µs and how long it all took in seconds.
func (s *series) add(trips []float64, seconds float64) {
	s.p50 = append(s.p50, percentile(trips, 0.50))
	s.p99 = append(s.p99, percentile(trips, 0.99))
	s.rate = append(s.rate, float64(len(trips))/seconds)
}

// figure reduces the blocks to the mean of their middle half.
func (s *series) figure() figure {
	return figure{P50: midmean(s.p50), P99: midmean(s.p99), Rate: midmean(s.rate)}
}

// midmean is the mean of the middle half of values. Like the median it does not
// care for disturbed blocks, which on a shared machine there always are. Unlike
// the median it does not jump when the blocks fall into two camps, as they do
// when the scheduler places two processes now on one core and now on two.
func midmean(values []float64) float64 {
	if len(values) < 3 {
		return median(values)
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	cut := (len(sorted) + 3) / 4
	middle := sorted[cut : len(sorted)-cut]
	sum := 0.0
	for _, value := range middle {
		sum += value
	}
	return sum / float64(len(middle))
}

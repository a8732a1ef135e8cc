package figures

import (
	"math"
	"slices"
)

// Percentile returns the q-th quantile (0…1) of values by the nearest rank, or
// NaN when there are none. It leaves values as they are.
func Percentile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Median returns the middle value, or the mean of the two middle ones.
func Median(values []float64) float64 {
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

// Midmean is the mean of the middle half of values. Like the median it does not
// care for disturbed blocks, which on a shared machine there always are. Unlike
// the median it does not jump when the blocks fall into two camps, as they do
// when the scheduler places two processes now on one core and now on two.
func Midmean(values []float64) float64 {
	if len(values) < 3 {
		return Median(values)
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

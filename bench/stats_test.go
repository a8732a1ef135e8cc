package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPercentileAndMedian(t *testing.T) {
	tests := []struct {
		name             string
		values           []float64
		p50, p99, middle float64
	}{
		{"one", []float64{3}, 3, 3, 3},
		{"two", []float64{4, 2}, 2, 4, 3},
		{"three, unsorted", []float64{9, 1, 5}, 5, 9, 5},
		{"ten", []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 5, 10, 5.5},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := []float64{percentile(test.values, 0.5), percentile(test.values, 0.99), median(test.values)}
			if diff := cmp.Diff([]float64{test.p50, test.p99, test.middle}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNothingMeasuredIsNoNumber(t *testing.T) {
	if got := percentile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("percentile of nothing = %v", got)
	}
	if got := (&series{}).figure(); !math.IsNaN(got.P50) || !math.IsNaN(got.Rate) {
		t.Errorf("figure of nothing = %+v", got)
	}
}

func TestOneDisturbedBlockChangesNothing(t *testing.T) {
	var s series
	for _, slow := range []float64{1, 1, 1000} {
		s.add([]float64{10 * slow, 20 * slow}, 0.5*slow)
	}
	if diff := cmp.Diff(figure{P50: 10, P99: 20, Rate: 4}, s.figure()); diff != "" {
		t.Error(diff)
	}
}

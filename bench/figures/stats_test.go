package figures

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
			got := []float64{Percentile(test.values, 0.5), Percentile(test.values, 0.99), Median(test.values)}
			if diff := cmp.Diff([]float64{test.p50, test.p99, test.middle}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMidmean(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		want   float64
	}{
		{"two", []float64{2, 4}, 3},
		{"outlier of three", []float64{900, 2, 1}, 2},
		{"four", []float64{900, 2, 4, 1}, 3},
		{"two camps", []float64{1, 1, 1, 1, 3, 3, 3, 3}, 2},
		{"outliers on both sides", []float64{-900, -900, 5, 6, 7, 8, 900, 900}, 6.5},
	}
	for _, test := range tests {
		if got := Midmean(test.values); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestNothingMeasuredIsNoNumber(t *testing.T) {
	if got := Percentile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("Percentile of nothing = %v", got)
	}
}

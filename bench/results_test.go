package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNothingMeasuredIsNoNumber(t *testing.T) {
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

package main

import (
	"math"
	"strings"
	"testing"
)

func TestRatiosAreToTheBestOther(t *testing.T) {
	r := results{Connections: connections, Lazy: &lazyFigures{}, Loads: []load{
		{Name: "outlive", Ours: true, Rate: 12000, Loaded: 5 * mebibyte},
		{Name: "slow and small", Rate: 1000, Loaded: 50 * mebibyte},
		{Name: "fast and large", Rate: 3000, Loaded: 100 * mebibyte},
	}}
	text := r.loadTable().Markdown()
	if !strings.Contains(text, "| outlive | 12\u202f000 | 4.00 × |") || !strings.Contains(text, "| 5.00 | 0.10 × |") {
		t.Errorf("ratios are not to the best of the others:\n%s", text)
	}
}

func TestNothingIsComparedWithNobody(t *testing.T) {
	r := results{Missing: []string{"a", "b"}, Lazy: &lazyFigures{}, Loads: []load{{Name: "outlive", Ours: true, Rate: 12000, Loaded: mebibyte}}}
	if text := r.section(); !strings.Contains(text, "| outlive | 12\u202f000 | – |") || !strings.Contains(text, "Not there to be measured: a; b.") {
		t.Errorf("without others the report says:\n%s", text)
	}
	if best := r.best(func(l load) float64 { return l.Rate }, math.Max); !math.IsNaN(best) {
		t.Errorf("best of nobody is %v", best)
	}
}

func TestPlotShowsEveryGateway(t *testing.T) {
	r := results{Loads: []load{{Name: "ours & fast", Ours: true, Rate: 2, P50: 1, P99: 3, Loaded: mebibyte}, {Name: "theirs", Rate: 1, P50: 2, P99: 4, Loaded: mebibyte}}}
	svg := r.plot()
	for _, want := range []string{"ours &amp; fast", "theirs", "Calls a second", "1.00 · 3.00"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the plot lacks %q", want)
		}
	}
}

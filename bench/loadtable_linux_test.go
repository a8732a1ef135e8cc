package main

import (
	"math"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// loaded is a load of which every block and round was the same.
func loaded(name string, ours bool, rate, private float64) load {
	return load{name: name, ours: ours, rates: [][]float64{{rate, rate}, {rate, rate}}, p50: [][]float64{{1}, {1}}, p99: [][]float64{{3}, {3}},
		checked: [][]float64{{rate / 2}, {rate / 2}}, loaded: []usage{{own: proc.Memory{Dirty: private}}}}
}

// The strongest of the others is the measure, for speed and for memory each: a weak peer must not make outlive look better.
func TestRatiosAreToTheBestOther(t *testing.T) {
	text := loadTable([]load{loaded("outlive", true, 12000, 5*mebibyte), loaded("slow and small", false, 1000, 50*mebibyte),
		loaded("fast and large", false, 3000, 100*mebibyte)}, 16, crowdPlan{}).Markdown()
	for _, want := range []string{"| outlive | 12\u202f000 | 12\u202f000–12\u202f000 | 4.00 × | 4.00–4.00 | 6000 | 4.00 × |", "| 5.00 | 0.10 × |",
		"to fast and large, the fastest", "to slow and small, the smallest"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}

// A round that other programs disturbed has slowed both: the ratio is taken within the round.
func TestRatiosAreTakenWithinARound(t *testing.T) {
	ours := [][]float64{{800, 800}, {80, 80}, {900, 900}}
	theirs := [][]float64{{200, 200}, {20, 20}, {150, 150}}
	if got, want := ratios(ours, theirs), (span{middle: 4, low: 4, high: 6}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := ratios(nil, theirs); !math.IsNaN(got.middle) {
		t.Errorf("the ratio of nothing is %+v", got)
	}
}

func TestNothingIsComparedWithNobody(t *testing.T) {
	text := loadTable([]load{loaded("outlive", true, 12000, mebibyte)}, 16, crowdPlan{}).Markdown()
	if want := "| outlive | 12\u202f000 | 12\u202f000–12\u202f000 | – | – | 6000 | – |"; !strings.Contains(text, want) {
		t.Errorf("the table lacks %q:\n%s", want, text)
	}
}

func TestKillsTableTellsWhoComesBack(t *testing.T) {
	text := killsTable([]kills{
		{name: "ours", starts: 2, back: 2, first: []float64{2, 4}, row: [][]float64{{300}, {700}}},
		{name: "gone", starts: 2, failed: 900, row: [][]float64{nil, nil}},
		{name: "by call", noServer: true, row: [][]float64{nil, nil}},
	}, 3).Markdown()
	for _, want := range []string{"| then: 2nd, ms | then: 3rd, ms |", "| ours | 2 | 2 | 3.00 | 2.00–4.00 | 0 | 300 | 700 | 0 |", "| gone | 2 | 0 | – | – | 900 | – | – | – |",
		"| by call | – | no server runs between calls |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}

func TestPerSessionIsTheSlope(t *testing.T) {
	g := growth{uses: map[int][]usage{1: {{own: proc.Memory{Dirty: 10 * 1024, PSS: 20 * 1024}}}, 11: {{own: proc.Memory{Dirty: 60 * 1024, PSS: 120 * 1024}}}}}
	if got, want := g.perSession([]int{1, 11}), (proc.Memory{Dirty: 5 * 1024, PSS: 10 * 1024}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := g.perSession([]int{1, 100}); !math.IsNaN(got.Dirty) {
		t.Errorf("the slope of what was not measured is %+v", got)
	}
	if got := g.perSessionApart([]int{1, 11}); !math.IsNaN(got.Dirty) {
		t.Errorf("without connections nothing was measured, and the slope is %+v", got)
	}
	g.apart = []usage{{own: proc.Memory{Dirty: 40 * 1024, PSS: 100 * 1024}}}
	if got, want := g.perSessionApart([]int{1, 11}), (proc.Memory{Dirty: 3 * 1024, PSS: 8 * 1024}); got != want {
		t.Errorf("without connections: got %+v, want %+v", got, want)
	}
}

func TestPlotShowsEveryGateway(t *testing.T) {
	svg := figures.Plot("title", loadPanels([]load{loaded("ours & fast", true, 2, mebibyte), loaded("theirs", false, 1, mebibyte)}, 16)...)
	for _, want := range []string{"ours &amp; fast", "theirs", "Calls a second, 16 sessions", "1.00 · 3.00"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the plot lacks %q", want)
		}
	}
}

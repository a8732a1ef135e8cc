package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// sample is a run that keeps every promise.
func sample() *results {
	r := &results{Machine: figures.Machine{System: "linux/amd64", Go: "go1.26", Cores: 2}, Took: time.Minute}
	for _, s := range planFor(false).Scenarios {
		row := latencyRow{scenario: s}
		for way := range row.By {
			row.By[way] = figure{P50: 10 + 10*float64(way), P99: 20 + 20*float64(way), Rate: 1e5 / float64(1+way)}
		}
		row.By[outlive] = figure{P50: 21, P99: 50, Rate: 5e4}
		r.Latency = append(r.Latency, row)
	}
	r.Gaps = []gapRow{{Server: "echo <Go>", Cold: 2, Gap: 3, GapP90: 4, Count: 40}}
	r.Memory[outlive] = memoryFigures{Private: 3 << 20, Extra: 1 << 20}
	r.Care = care{
		Reload:    &reloadFigures{Count: 40, Calls: 1000, P99: 4, Ordinary: 3, Worst: 9},
		Standby:   []standbyRow{{Server: "echo", Count: 30, Answer: 1, ByHand: deaths{[]float64{1}, []float64{2}}, Outlive: deaths{[]float64{1}, []float64{2.5}}, Announced: 2, Ordinary: 1}},
		Saves:     &saveFigures{Count: 8, Calls: 500, Start: 100, Live: 350, LiveWorst: 390},
		Launchers: []launcherRow{{Server: "npx", Count: 9, First: 1000, Restart: 200, Worst: 300}},
		Lazy:      &lazyFigures{Count: 30, Answered: 8, P90: 10, Bare: 4},
		Tap:       &tapFigures{Count: 12, Rate: 10000, P50: [2]float64{100, 104}, P99: [2]float64{200, 300}, Seen: 9000},
	}
	r.Restarts = &restartFigures{
		Count: 10000, Took: time.Minute,
		Before: processState{Descriptors: 9, Threads: 7, Private: 3e6}, After: processState{Descriptors: 9, Threads: 7, Private: 3e6},
	}
	return r
}

func broken(r *results) []string {
	var names []string
	for _, p := range promises(r) {
		if !p.kept() {
			names = append(names, p.Name)
		}
	}
	return names
}

func TestPromises(t *testing.T) {
	tests := []struct {
		name   string
		damage func(*results)
		broken string // part of the only broken promise's name
	}{
		{"all kept", func(*results) {}, ""},
		{"slow", func(r *results) { r.Latency[0].By[outlive].P50 = 28 }, "added p50, 200 B, 1 in flight"},
		{"long tail", func(r *results) { r.Latency[0].By[outlive].P99 = 61 }, "added p99"},
		{"memory", func(r *results) { r.Memory[outlive].Extra = 41 << 20 }, "extra memory"},
		{"not measured", func(r *results) { r.Memory[outlive].Private = math.NaN() }, "idle"},
		{"slow restart", func(r *results) { r.Gaps[0].Gap = 8 }, "restart gap"},
		{"failed call during a restart", func(r *results) { r.Care.Reload.Failed = 1 }, "planned restarts"},
		{"slow during a restart", func(r *results) { r.Care.Reload.P99 = 8.5 }, "while a server is replaced"},
		{"slow spare", func(r *results) { r.Care.Standby[0].Outlive.gaps[0] = 4.1 }, "crash with a spare adds, echo"},
		{"failed call during a save", func(r *results) { r.Care.Saves.Failed = 1 }, "broken saves"},
		{"slow save", func(r *results) { r.Care.Saves.Live = 401 }, "mended save"},
		{"launcher not left out", func(r *results) { r.Care.Launchers[0].Restart = 401 }, "restart, npx"},
		{"calls slower while watched", func(r *results) { r.Care.Tap.P50[1] = 106 }, "while watched"},
		{"messages that the watcher misses", func(r *results) { r.Care.Tap.LeftOut = 1 }, "left out"},
		{"slow lazy start", func(r *results) { r.Care.Lazy.Answered = 21 }, "lazy start"},
		{"descriptor leak", func(r *results) { r.Restarts.After.Descriptors = 10 }, "descriptors"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := sample()
			test.damage(r)
			got := broken(r)
			if test.broken == "" && len(got) == 0 {
				return
			}
			if len(got) != 1 || !strings.Contains(got[0], test.broken) {
				t.Errorf("broken promises %q, want only %q", got, test.broken)
			}
		})
	}
}

func TestTablesLeaveOutWhatWasNotMeasured(t *testing.T) {
	r := sample()
	all := len(tables(r))
	r.Care = care{Lazy: r.Care.Lazy}
	if got := len(tables(r)); got != all-5 {
		t.Errorf("%d tables with one part of six, %d with all", got, all)
	}
	r.Only = "lazy"
	if got := tables(r); len(got) != 2 || got[1].Title != "Lazy start, ms" {
		t.Errorf("tables of the lazy start alone: %v", got)
	}
}

func TestPlotIsWellFormedAndComplete(t *testing.T) {
	drawn := plot(sample())
	for decoder := xml.NewDecoder(strings.NewReader(drawn)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
	for _, want := range []string{"200 B, back to back", "200 B, 20 ms between calls", "64 KB, back to back", "echo &lt;Go&gt;"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("the plot lacks %q", want)
		}
	}
	if strings.Contains(drawn, "NaN") || strings.Contains(drawn, "Inf") {
		t.Error("the plot holds a figure that is none")
	}
}

func TestPlotSurvivesMissingFigures(t *testing.T) {
	r := sample()
	r.Latency[0].By[outlive] = figure{P50: math.NaN(), P99: math.NaN()}
	r.Gaps = nil
	if drawn := plot(r); strings.Contains(drawn, "NaN") {
		t.Errorf("the plot holds a figure that is none: %s", drawn)
	}
}

func TestWithMeasuredKeepsTheRest(t *testing.T) {
	page := "before\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nafter\n"
	got, err := withMeasured(page, "new\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n<!-- bench:begin -->\nnew\n<!-- bench:end -->\nafter\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := withMeasured("no markers", "new"); !errors.Is(err, errMarkers) {
		t.Errorf("a page without markers: %v", err)
	}
}

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// sample is a run of `outlive run` that keeps every promise.
type sample struct {
	latency   latencyRows
	gaps      gapRows
	memory    memoryFigures
	reloads   reloadFigures
	spares    standbyRows
	saves     saveFigures
	launchers launcherRows
	lazy      lazyFigures
	taps      tapFigures
	restarts  restartFigures
}

func newSample() *sample {
	s := &sample{
		gaps:      gapRows{{server: "echo <Go>", cold: 2, gap: 3, p90: 4, count: 40}},
		reloads:   reloadFigures{count: 40, calls: 1000, p99: 4, ordinary: 3, worst: 9},
		spares:    standbyRows{{server: "echo", count: 30, answer: 1, byHand: deaths{[]float64{1}, []float64{2}}, outlive: deaths{[]float64{1}, []float64{2.5}}}},
		saves:     saveFigures{count: 8, calls: 500, start: 100, live: 350, worst: 390},
		launchers: launcherRows{{server: "npx", count: 9, first: 1000, restart: 200, worst: 300}},
		lazy:      lazyFigures{count: 30, answered: 8, p90: 10, bare: 4},
		taps:      tapFigures{rate: 10000, p50: [2]float64{100, 104}, p99: [2]float64{200, 300}, seen: 9000},
		restarts:  restartFigures{count: 10000, before: holding{9, 7, 3e6}, after: holding{9, 7, 3e6}, took: time.Minute},
	}
	for _, scenario := range planFor(false).scenarios {
		row := latencyRow{scenario: scenario}
		for way := range row.by {
			row.by[way] = figure{p50: 10 + 10*float64(way), p99: 20 + 20*float64(way), rate: 1e5 / float64(1+way)}
		}
		row.by[outlive] = figure{p50: 21, p99: 50, rate: 5e4}
		s.latency = append(s.latency, row)
	}
	s.memory[outlive].idle = proc.Memory{Dirty: 3 << 20}
	s.memory[outlive].extra = 1 << 20
	return s
}

func (s *sample) report() *report {
	p, _ := partNamed("run")
	r := &report{part: p, machine: figures.Machine{System: "linux/amd64", Go: "go1.26", Cores: 2}, took: time.Minute}
	for _, o := range []outcome{s.latency.outcome(), s.gaps.outcome(), s.memory.outcome(), s.reloads.outcome(), s.spares.outcome(), s.saves.outcome(),
		s.launchers.outcome(), s.lazy.outcome(), s.taps.outcome(), s.restarts.outcome()} {
		r.add(o)
	}
	return r
}

func TestPromises(t *testing.T) {
	tests := []struct {
		name   string
		damage func(*sample)
		broken string // part of the only broken promise's name
	}{
		{"all kept", func(*sample) {}, ""},
		{"slow", func(s *sample) { s.latency[0].by[outlive].p50 = 28 }, "added p50, 200 B, 1 in flight"},
		{"long tail", func(s *sample) { s.latency[0].by[outlive].p99 = 61 }, "added p99"},
		{"slow after a pause", func(s *sample) { s.latency[8].by[outlive].p50 = 161 }, "20 ms between"},
		{"few messages", func(s *sample) { s.latency[3].by[outlive].rate = 2e4 }, "messages/s, 4 KB"},
		{"memory", func(s *sample) { s.memory[outlive].extra = 41 << 20 }, "extra memory"},
		{"not measured", func(s *sample) { s.memory[outlive].idle.Dirty = math.NaN() }, "idle"},
		{"slow restart", func(s *sample) { s.gaps[0].gap = 8 }, "restart gap"},
		{"failed call during a restart", func(s *sample) { s.reloads.failed = 1 }, "planned restarts"},
		{"slow during a restart", func(s *sample) { s.reloads.p99 = 8.5 }, "while a server is replaced"},
		{"slow spare", func(s *sample) { s.spares[0].outlive.gaps[0] = 4.1 }, "crash with a spare adds, echo"},
		{"failed call during a save", func(s *sample) { s.saves.failed = 1 }, "broken saves"},
		{"slow save", func(s *sample) { s.saves.live = 401 }, "mended save"},
		{"launcher not left out", func(s *sample) { s.launchers[0].restart = 401 }, "restart, npx"},
		{"calls slower while watched", func(s *sample) { s.taps.p50[1] = 106 }, "while watched"},
		{"messages that the watcher misses", func(s *sample) { s.taps.leftOut = 1 }, "left out"},
		{"slow lazy start", func(s *sample) { s.lazy.answered = 21 }, "lazy start"},
		{"descriptor leak", func(s *sample) { s.restarts.after.descriptors = 10 }, "descriptors"},
		{"memory leak", func(s *sample) { s.restarts.after.private = 5e6 }, "private memory gained"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newSample()
			test.damage(s)
			var broken []string
			for _, p := range s.report().promises {
				if !p.kept() {
					broken = append(broken, p.name)
				}
			}
			if test.broken == "" && len(broken) == 0 {
				return
			}
			if len(broken) != 1 || !strings.Contains(broken[0], test.broken) {
				t.Errorf("broken promises %q, want only %q", broken, test.broken)
			}
		})
	}
}

// What a latency promise needs and nobody measured is not kept.
func TestPromisesOfNothing(t *testing.T) {
	for _, p := range (latencyRows{}).promises() {
		if p.kept() {
			t.Errorf("%s is kept, and was not measured", p.name)
		}
	}
}

func TestPlotIsWellFormedAndComplete(t *testing.T) {
	s := newSample()
	s.latency[2].by[outlive] = figure{p50: math.NaN(), p99: math.NaN()}
	drawn := figures.Plot("title", s.report().panels...)
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

// Each part writes its own section, with the command that measures it, and leaves the rest of the page as it is.
func TestSectionsNameTheirCommand(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "BENCHMARKS.md")
	if err := os.WriteFile(page, []byte("# Page\n\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nwords\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts() {
		if p.title == "" {
			continue
		}
		r := report{part: p, failures: []string{"x: why"}, missing: []string{"somebody"}}
		r.add(outcome{tables: []figures.Table{{Title: "Of " + p.name, Rows: [][]string{{"a", "b"}}}}})
		if err := r.write(dir); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"old", "words", "`go run ./bench run`", "`go run ./bench monitor`", "### Of gateway", "Failed, so its cells are empty: x: why.",
		"Not there to be measured: somebody."} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

func TestNothingMeasuredIsNoNumber(t *testing.T) {
	if got := (&series{}).figure(); !math.IsNaN(got.p50) || !math.IsNaN(got.rate) {
		t.Errorf("figure of nothing = %+v", got)
	}
}

func TestOneDisturbedBlockChangesNothing(t *testing.T) {
	var s series
	for _, slow := range []float64{1, 1, 1000} {
		s.add([]float64{10 * slow, 20 * slow}, 0.5*slow)
	}
	if diff := cmp.Diff(figure{p50: 10, p99: 20, rate: 4}, s.figure(), cmp.AllowUnexported(figure{})); diff != "" {
		t.Error(diff)
	}
}

// A part, its measurements and its flags are checked before anything is built.
func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{{"nothing"}, {"run", "-only", "nothing"}, {"run", "word"}, {"run", "-server", "name"}, {"monitor", "-server", "a=b"},
		{"gateway", "-peer", "a=b"}} {
		if err := dispatch(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	p, err := partNamed("run")
	if err != nil {
		t.Fatal(err)
	}
	opts, err := parseFlags(p, []string{"-only", "lazy,taps", "-server", "Python SDK=python3 s.py", "-check"})
	if err != nil || opts.whole() || !opts.check || len(opts.servers) != 1 || strings.Join(opts.servers[0].command, " ") != "python3 s.py" {
		t.Errorf("got %+v, %v", opts, err)
	}
}

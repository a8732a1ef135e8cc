package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// The load: so many sessions, with messages of so many bytes.
const (
	connections = 16
	messageSize = 200
)

const (
	comesBack  = 10 * time.Second     // how long a gateway has to serve a session again whose server was killed
	retryEvery = 5 * time.Millisecond // the pause after a call that failed
)

// load is what one gateway does with 16 sessions that call without a pause.
type load struct {
	Name         string
	Ours         bool
	Rate         float64 // calls/s
	P50, P99     float64 // round trip, ms
	Idle, Loaded float64 // memory that is the gateway's own, bytes: with all sessions open, and after the load
	Processes    int     // of the server
}

// gap is how one gateway takes the death of a session's server.
type gap struct {
	Name     string
	Ours     bool
	Kills    int
	Gap, P90 float64 // from SIGKILL to the next good answer in the same session, ms, of those that came back
	Failed   int     // calls that got an error, or no answer
	Lost     int     // kills after which the session got no good answer any more
}

// lazyFigures are of one gateway of many servers that are not started before they are called.
type lazyFigures struct {
	Servers, Starts, Tools int
	Open, Hello, List      float64 // since exec, ms: it listens, initialize is answered, tools/list is answered
	Called                 float64 // first call of a server, its start included, ms
	Private                float64 // bytes
	Before, After          int     // processes of servers before and after that call
}

// results is everything one run found out.
type results struct {
	Machine     figures.Machine
	Missing     []string
	Connections int
	Loads       []load
	Gaps        []gap
	Lazy        *lazyFigures
	Took        time.Duration
}

const mebibyte = 1 << 20

// best is the strongest of the others by a figure, NaN without any.
func (r results) best(of func(load) float64, better func(a, b float64) float64) float64 {
	best := math.NaN()
	for _, l := range r.Loads {
		if l.Ours {
			continue
		}
		if value := of(l); math.IsNaN(best) {
			best = value
		} else {
			best = better(best, value)
		}
	}
	return best
}

func (r results) tables() []figures.Table {
	return []figures.Table{r.loadTable(), r.gapTable(), r.lazyTable()}
}

func (r results) loadTable() figures.Table {
	rate := r.best(func(l load) float64 { return l.Rate }, math.Max)
	memory := r.best(func(l load) float64 { return l.Loaded }, math.Min)
	t := figures.Table{
		Title: fmt.Sprintf("Gateways: %d sessions that call without a pause", r.Connections),
		Note: fmt.Sprintf("Calls of %d B to one Go server over Streamable HTTP (2025-11-25), one connection for each session. Memory is what the gateway and "+
			"its helpers have written and share with nobody, servers not counted. The ratios compare with the best of the others.", messageSize),
		Rows: [][]string{{"gateway", "calls/s", "÷ best other", "p50, ms", "p99, ms", "idle, MB", "after load, MB", "÷ best other", "server processes"}},
	}
	for _, l := range r.Loads {
		t.Rows = append(t.Rows, []string{
			l.Name, figures.Number(l.Rate), figures.Ratio(l.Rate, rate), figures.Number(l.P50), figures.Number(l.P99),
			figures.Number(l.Idle / mebibyte), figures.Number(l.Loaded / mebibyte), figures.Ratio(l.Loaded, memory), fmt.Sprint(l.Processes),
		})
	}
	return t
}

func (r results) gapTable() figures.Table {
	t := figures.Table{
		Title: "Gateways: the server is killed",
		Note: fmt.Sprintf("From SIGKILL of the server to the next good answer in the same session, asked for at once and, after an error, every %d ms "+
			"for %d s. Failed calls are what the client sees meanwhile.", retryEvery.Milliseconds(), int(comesBack.Seconds())),
		Rows: [][]string{{"gateway", "kills", "came back", "gap p50, ms", "gap p90, ms", "failed calls"}},
	}
	for _, g := range r.Gaps {
		t.Rows = append(t.Rows, []string{
			g.Name, fmt.Sprint(g.Kills), fmt.Sprint(g.Kills - g.Lost), figures.Number(g.Gap), figures.Number(g.P90), fmt.Sprint(g.Failed),
		})
	}
	return t
}

func (r results) lazyTable() figures.Table {
	l := r.Lazy
	return figures.Table{
		Title: fmt.Sprintf("Gateways: %d lazy servers", l.Servers),
		Note: fmt.Sprintf("outlive with %d servers that start with their first call; their tools are known from an earlier run. Times since exec, medians of %d starts.",
			l.Servers, l.Starts),
		Rows: [][]string{
			{"", "listens, ms", "initialize answered, ms", "tools/list answered, ms", "tools", "memory, MB", "servers running", "first call, ms", "servers running then"},
			{"outlive", figures.Number(l.Open), figures.Number(l.Hello), figures.Number(l.List), fmt.Sprint(l.Tools),
				figures.Number(l.Private / mebibyte), fmt.Sprint(l.Before), figures.Number(l.Called), fmt.Sprint(l.After)},
		},
	}
}

// terminal is the report as text.
func (r results) terminal() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s; measured in %s\n", r.Machine, r.Took.Round(time.Second))
	for _, t := range r.tables() {
		out.WriteString(t.Plain())
	}
	fmt.Fprintf(&out, "\n%s", r.absent())
	return out.String()
}

// absent says who was not measured.
func (r results) absent() string {
	if len(r.Missing) == 0 {
		return ""
	}
	return "Not there to be measured: " + strings.Join(r.Missing, "; ") + ".\n"
}

// write writes the plot and the measured part of the page.
func (r results) write(docs string) error {
	if err := os.WriteFile(filepath.Join(docs, "gateway.svg"), []byte(r.plot()), 0o644); err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	return figures.WriteSection(filepath.Join(docs, "BENCHMARKS.md"), "gateway", r.section())
}

// section is the measured part of the page.
func (r results) section() string {
	var out strings.Builder
	out.WriteString("## Gateways\n\n![Calls a second and memory of gateways](gateway.svg)\n\n")
	fmt.Fprintf(&out, "Measured on %s, in %s, by `go run ./bench/gateway -peers DIR`; `bench/gateway/peers.sh DIR` installs the others. "+
		"All gateways and the client share the machine and take turns in one run, with new processes in each round; "+
		"on another machine the figures differ, the ratios are what should stay. %s\n", r.Machine, r.Took.Round(time.Second), r.absent())
	for _, t := range r.tables() {
		out.WriteString(t.Markdown() + "\n")
	}
	return out.String()
}

// plot draws the load of all gateways.
func (r results) plot() string {
	rates := figures.Panel{Title: "Calls a second, 16 sessions"}
	trips := figures.Panel{Title: "Round trip, ms: p50, and p99 in the paler part"}
	memory := figures.Panel{Title: "Memory of the gateway itself after the load, MB"}
	for _, l := range r.Loads {
		colour := figures.OtherColour
		if l.Ours {
			colour = figures.OutliveColour
		}
		add := func(p *figures.Panel, b figures.Bar) {
			b.Colour = colour
			p.Groups = append(p.Groups, figures.Group{Label: l.Name, Bars: []figures.Bar{b}})
		}
		add(&rates, figures.Bar{Value: l.Rate, Text: figures.Number(l.Rate)})
		add(&trips, figures.Bar{Value: l.P50, Reach: l.P99, Text: figures.Number(l.P50) + " · " + figures.Number(l.P99)})
		add(&memory, figures.Bar{Value: l.Loaded / mebibyte, Text: figures.Number(l.Loaded / mebibyte)})
	}
	return figures.Plot("Gateways side by side", rates, trips, memory)
}

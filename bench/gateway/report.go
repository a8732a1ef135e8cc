package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// messageSize is how many bytes a call carries, and so its answer.
const messageSize = 200

const mebibyte = 1 << 20

func (r results) tables() []figures.Table {
	all := []figures.Table{r.settingsTable()}
	for _, n := range r.Plan.Connections {
		if len(r.Loads[n]) > 0 {
			all = append(all, r.loadTable(n))
		}
	}
	if len(r.Kills) > 0 {
		all = append(all, r.killsTable())
	}
	if len(r.Checks) > 0 {
		all = append(all, r.checksTable())
	}
	if len(r.Growth) > 0 {
		all = append(all, r.growthTable(), r.processTable())
	}
	if len(r.Backends) > 0 {
		all = append(all, r.backendsTable())
	}
	if r.Lazy != nil {
		all = append(all, r.lazyTable())
	}
	return all
}

func (r results) settingsTable() figures.Table {
	t := figures.Table{
		Title: "Gateways: what is measured, with which settings",
		Note:  "All else is each program's default. The peers write no log line for each call, as outlive writes none.",
		Rows:  [][]string{{"gateway", "version", "settings"}},
	}
	for _, g := range r.Gateways {
		t.Rows = append(t.Rows, []string{g.Name, g.Version, g.Settings})
	}
	return t
}

func (r results) loadTable(connections int) figures.Table {
	loads := r.Loads[connections]
	fastest := bestOther(loads, func(a, b load) bool { return a.rate() > b.rate() })
	leanest := bestOther(loads, func(a, b load) bool { return medianUsage(a.Loaded).Own.Private < medianUsage(b.Loaded).Own.Private })
	t := figures.Table{
		Title: fmt.Sprintf("Gateways: %d sessions that call without a pause", connections),
		Note: fmt.Sprintf("Calls of %d B to one Go server over Streamable HTTP (2025-11-25), one connection for each session, %d rounds of %d blocks of %s. "+
			"Middle: the mean over the middle half of the blocks; half of the blocks lie within the range behind it. The ratio of calls/s is to %s, the fastest of the others, "+
			"in the same round: the middle, the least and the greatest of the rounds. The same by net/http: taken with a second client, which "+
			"shares no code with the first and decodes every answer; it takes more of the processors itself, which brings the ratios closer together. Memory is what the gateway and its helpers have written and share with nobody; "+
			"its ratio is to %s, the smallest of the others after the load.", messageSize, r.Plan.Rounds, r.Plan.Blocks, r.Plan.Block, nameOf(fastest), nameOf(leanest)),
		Rows: [][]string{{"gateway", "calls/s", "half of the blocks", "ratio", "of rounds", "by net/http", "ratio", "p50, ms", "p99, ms",
			"idle, MB", "after load, MB", "ratio", "server processes"}},
	}
	for _, l := range loads {
		use := medianUsage(l.Loaded)
		row := []string{l.Name, figures.Number(l.rate()), between(figures.Percentile(flat(l.Rates), 0.25), figures.Percentile(flat(l.Rates), 0.75))}
		row = append(row, ratioCells(l.Rates, fastest, func(l load) [][]float64 { return l.Rates })...)
		row = append(row, figures.Number(figures.Median(flat(l.CheckRates))), ratioCells(l.CheckRates, fastest, func(l load) [][]float64 { return l.CheckRates })[0],
			figures.Number(figures.Midmean(flat(l.P50))), figures.Number(figures.Midmean(flat(l.P99))),
			megabytes(medianUsage(l.Idle).Own.Private), megabytes(use.Own.Private))
		if leanest == nil {
			row = append(row, "–")
		} else {
			row = append(row, figures.Ratio(use.Own.Private, medianUsage(leanest.Loaded).Own.Private))
		}
		t.Rows = append(t.Rows, append(row, fmt.Sprint(use.Processes)))
	}
	return t
}

// ratioCells are the middle ratio to another's figures and its range over the rounds.
func ratioCells(values [][]float64, other *load, of func(load) [][]float64) []string {
	if other == nil {
		return []string{"–", "–"}
	}
	s := ratios(values, of(*other))
	if math.IsNaN(s.Middle) {
		return []string{"–", "–"}
	}
	return []string{fmt.Sprintf("%.2f ×", s.Middle), fmt.Sprintf("%.2f–%.2f", s.Low, s.High)}
}

func nameOf(l *load) string {
	if l == nil {
		return "nobody"
	}
	return l.Name
}

func between(low, high float64) string {
	if math.IsNaN(low) || math.IsNaN(high) {
		return "–"
	}
	return figures.Number(low) + "–" + figures.Number(high)
}

func megabytes(bytes float64) string { return figures.Number(bytes / mebibyte) }

func (r results) killsTable() figures.Table {
	t := figures.Table{
		Title: "Gateways: the server is killed",
		Note: fmt.Sprintf("From SIGKILL of all server processes to the next good answer in the same session, asked for at once and, after an error, every %d ms "+
			"for %d s. Failed calls are what the client sees meanwhile. First: the first kill after a start. Then: further kills of the same server, each as soon as it "+
			"serves again; here outlive's default delays between crashes count (0, 250 ms, 500 ms, 1 s, …, each up to half as long again; after more than ten crashes in "+
			"ten minutes it gives up for a minute and answers with an error). The calls are of a tool that declares itself read-only: outlive sends such a call again when "+
			"its server dies, and would answer others with an error that says that the outcome is unknown.",
			retryEvery.Milliseconds(), int(comesBack.Seconds())),
		Rows: [][]string{{"gateway", "starts", "came back", "gap p50, ms", "least–greatest", "failed calls"}},
	}
	for at := range r.Plan.Row - 1 {
		t.Rows[0] = append(t.Rows[0], fmt.Sprintf("then: %s, ms", ordinal(at+2)))
	}
	t.Rows[0] = append(t.Rows[0], "failed calls then")
	for _, k := range r.Kills {
		row := []string{k.Name, fmt.Sprint(k.Starts), fmt.Sprint(k.Back), figures.Number(figures.Median(k.First)),
			between(figures.Percentile(k.First, 0), figures.Percentile(k.First, 1)), fmt.Sprint(k.Failed)}
		if k.NoServer {
			row = []string{k.Name, "–", "no server runs between calls", "–", "–", "–"}
		}
		for _, waits := range k.Row {
			row = append(row, figures.Number(figures.Median(waits)))
		}
		then := "–"
		if k.Back > 0 {
			then = fmt.Sprint(k.RowFailed)
		}
		t.Rows = append(t.Rows, append(row, then))
	}
	return t
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "2nd"
	case 3:
		return "3rd"
	}
	return fmt.Sprintf("%dth", n)
}

func (r results) checksTable() figures.Table {
	t := figures.Table{
		Title: "Gateways: seen by the Python SDK's client",
		Note: fmt.Sprintf("One session of the client of %s, which calls without a pause; its own work is part of every figure. Then all server processes are killed once. "+
			"Longest: from one good answer to the next, around the kill.", r.CheckedWith),
		Rows: [][]string{{"gateway", "calls/s", "p50, ms", "failed calls around a kill", "longest wait, ms"}},
	}
	for _, c := range r.Checks {
		longest := figures.Number(c.Longest)
		if c.Longest < 0 {
			longest = "never came back"
		}
		failed := fmt.Sprintf("%d of %d", c.Failed, c.Calls)
		if c.NoServer {
			failed, longest = "no server runs between calls", "–"
		}
		t.Rows = append(t.Rows, []string{c.Name, figures.Number(c.Rate), figures.Number(c.P50), failed, longest})
	}
	return t
}

func (r results) growthTable() figures.Table {
	counts := r.Plan.Sessions
	t := figures.Table{
		Title: "Gateways: own memory with more and more sessions, MB",
		Note: fmt.Sprintf("outlive with `"+crowdLimits+"`: by default it admits 256 sessions. One server; each session has listed the tools, has called once and keeps its connection; then all are silent. What the gateway and its helpers have written and "+
			"share with nobody; medians. KB for each further session: between %d and %d sessions; PSS also counts a share of the pages of the binary. "+
			"Without connection: the clients of the %d have closed theirs, and one has asked again.", counts[0], counts[len(counts)-1], counts[len(counts)-1]),
		Rows: [][]string{{"gateway"}},
	}
	for _, n := range counts {
		t.Rows[0] = append(t.Rows[0], plural(n, "session"))
	}
	t.Rows[0] = append(t.Rows[0], "KB for each further session", "the same as PSS", "KB without connection")
	for _, g := range r.Growth {
		row := []string{g.Name}
		for _, n := range counts {
			row = append(row, megabytes(medianUsage(g.Uses[n]).Own.Private))
		}
		per := g.perSession(counts)
		t.Rows = append(t.Rows, append(row, figures.Number(per.Private/1024), figures.Number(per.PSS/1024), figures.Number(g.perSessionApart(counts).Private/1024)))
	}
	return t
}

func (r results) processTable() figures.Table {
	t := figures.Table{
		Title: "Gateways: server processes with more and more sessions",
		Note: "Of one server, in the same run. Behind each number: what these processes take together (PSS), MB. This server is a small Go program; " +
			"server-everything (TypeScript) takes about 38 MB, a small server with the Python SDK about 60.",
		Rows: [][]string{{"gateway"}},
	}
	for _, n := range r.Plan.Sessions {
		t.Rows[0] = append(t.Rows[0], plural(n, "session"))
	}
	for _, g := range r.Growth {
		row := []string{g.Name}
		for _, n := range r.Plan.Sessions {
			cell := "–"
			if use := medianUsage(g.Uses[n]); len(g.Uses[n]) > 0 {
				cell = fmt.Sprintf("%s (%s)", count(use.Processes), megabytes(use.Servers))
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return count(n) + " " + what
}

func count(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return figures.Number(float64(n))
}

func (r results) backendsTable() figures.Table {
	t := figures.Table{
		Title: "Gateways: more and more servers behind one",
		Note: fmt.Sprintf("One session; only gateways that can have several servers. All tools: from exec until tools/list has the tools of all servers, at the first start in an empty "+
			"directory and at the next one there, when outlive knows the lists already and starts the servers beside. Again: tools/list once more. Memory and processes: after one "+
			"call of each server, as far as %d s allow. Medians of %d.", int(callingTime.Seconds()), r.Plan.Lists),
		Rows: [][]string{{"gateway", "servers", "all tools: first start, ms", "next start, ms", "again, ms", "own MB", "own PSS, MB", "server processes"}},
	}
	for _, b := range r.Backends {
		use := medianUsage(b.Uses)
		processes := "–"
		if len(b.Uses) > 0 {
			processes = fmt.Sprint(use.Processes)
		}
		t.Rows = append(t.Rows, []string{b.Name, fmt.Sprint(b.Servers), figures.Number(figures.Median(b.First)), figures.Number(figures.Median(b.Next)),
			figures.Number(figures.Median(b.Warm)), megabytes(use.Own.Private), megabytes(use.Own.PSS), processes})
	}
	return t
}

func (r results) lazyTable() figures.Table {
	l := r.Lazy
	return figures.Table{
		Title: fmt.Sprintf("Gateways: %d lazy servers", l.Servers),
		Note: fmt.Sprintf("outlive with %d servers that start with their first call (`lazy: true`); their tools are known from an earlier run. Times since exec, medians of %d starts.",
			l.Servers, l.Starts),
		Rows: [][]string{
			{"", "listens, ms", "initialize answered, ms", "tools/list answered, ms", "tools", "memory, MB", "servers running", "first call, ms", "servers running then"},
			{"outlive", figures.Number(l.Open), figures.Number(l.Hello), figures.Number(l.List), fmt.Sprint(l.Tools),
				megabytes(l.Private), fmt.Sprint(l.Before), figures.Number(l.Called), fmt.Sprint(l.After)},
		},
	}
}

// terminal is the report as text.
func (r results) terminal() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s; %s; measured in %s\n", r.Machine, r.Busy, r.Took.Round(time.Second))
	for _, t := range r.tables() {
		out.WriteString(t.Plain())
	}
	fmt.Fprintf(&out, "\n%s", r.absent())
	return out.String()
}

// absent says who and what was not measured.
func (r results) absent() string {
	var out strings.Builder
	if len(r.Missing) > 0 {
		fmt.Fprintf(&out, "Not there to be measured: %s.\n", strings.Join(r.Missing, "; "))
	}
	if len(r.Failures) > 0 {
		fmt.Fprintf(&out, "Failed, so its cells are empty: %s.\n", strings.Join(r.Failures, "; "))
	}
	return out.String()
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
	fmt.Fprintf(&out, "Measured on %s, in %s, by `go run ./bench/gateway -peers DIR`; `bench/gateway/peers.sh DIR` installs the others. %s. "+
		"All gateways and the client share the machine and take turns in one run, with new processes in each round; "+
		"on another machine the figures differ, the ratios are what should stay. %s\n\n", r.Machine, r.Took.Round(time.Second), r.Busy,
		strings.ReplaceAll(r.absent(), "\n", " "))
	for _, t := range r.tables() {
		out.WriteString(t.Markdown() + "\n")
	}
	return out.String()
}

// plot draws the load of all gateways.
func (r results) plot() string {
	connections := slices.Min(r.Plan.Connections)
	rates := figures.Panel{Title: fmt.Sprintf("Calls a second, %d sessions", connections)}
	trips := figures.Panel{Title: "Round trip, ms: p50, and p99 in the paler part"}
	memory := figures.Panel{Title: "Memory of the gateway itself after the load, MB"}
	for _, l := range r.Loads[connections] {
		colour := figures.OtherColour
		if l.Ours {
			colour = figures.OutliveColour
		}
		add := func(p *figures.Panel, b figures.Bar) {
			b.Colour = colour
			p.Groups = append(p.Groups, figures.Group{Label: l.Name, Bars: []figures.Bar{b}})
		}
		p50, p99, own := figures.Midmean(flat(l.P50)), figures.Midmean(flat(l.P99)), medianUsage(l.Loaded).Own.Private/mebibyte
		add(&rates, figures.Bar{Value: l.rate(), Text: figures.Number(l.rate())})
		add(&trips, figures.Bar{Value: p50, Reach: p99, Text: figures.Number(p50) + " · " + figures.Number(p99)})
		add(&memory, figures.Bar{Value: own, Text: figures.Number(own)})
	}
	return figures.Plot("Gateways side by side", rates, trips, memory)
}

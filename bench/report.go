package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// tables are the whole report, for the terminal and for the page alike.
func tables(r *results) []figures.Table {
	if r.Only != "" {
		return append([]figures.Table{promiseTable(r)}, r.Care.tables()...)
	}
	list := []figures.Table{promiseTable(r), latencyTable(r), rateTable(r), gapTable(r), startTable(r)}
	list = append(list, r.Care.tables()...)
	list = append(list, memoryTable(r))
	if r.Restarts != nil {
		list = append(list, restartTable(r.Restarts))
	}
	return list
}

func promiseTable(r *results) figures.Table {
	t := figures.Table{Title: "What is promised", Rows: [][]string{{"figure", "measured", "promised", "kept"}}}
	for _, p := range promises(r) {
		kept := "yes"
		if !p.kept() {
			kept = "**no**"
		}
		t.Rows = append(t.Rows, []string{p.Name, figures.Number(p.Got) + p.Unit, p.bound(), kept})
	}
	return t
}

func latencyTable(r *results) figures.Table {
	t := figures.Table{
		Title: "Latency, µs",
		Note: "The round trip of one call, and what each relay adds to it. With more than one in flight a call also waits for " +
			"those before it, so there the difference follows the throughput.",
		Rows: [][]string{{"scenario", "direct p50", "p99", "floor adds p50", "p99", "outlive adds p50", "p99", "ratio p50", "p99"}},
	}
	for _, row := range r.Latency {
		f50, f99, o50, o99 := row.addedP50(floor), row.addedP99(floor), row.addedP50(outlive), row.addedP99(outlive)
		t.Rows = append(t.Rows, []string{
			row.String(), figures.Number(row.By[direct].P50), figures.Number(row.By[direct].P99),
			figures.Number(f50), figures.Number(f99), figures.Number(o50), figures.Number(o99), figures.Ratio(o50, f50), figures.Ratio(o99, f99),
		})
	}
	return t
}

func rateTable(r *results) figures.Table {
	t := figures.Table{
		Title: "Throughput, messages/s",
		Rows:  [][]string{{"scenario", "direct", "floor", "outlive", "outlive ÷ direct", "outlive ÷ floor"}},
	}
	for _, row := range r.Latency {
		if row.Think || row.InFlight == 1 {
			continue
		}
		by := row.By
		t.Rows = append(t.Rows, []string{
			row.String(), figures.Number(by[direct].Rate), figures.Number(by[floor].Rate), figures.Number(by[outlive].Rate),
			figures.Ratio(by[outlive].Rate, by[direct].Rate), figures.Ratio(by[outlive].Rate, by[floor].Rate),
		})
	}
	return t
}

func gapTable(r *results) figures.Table {
	t := figures.Table{
		Title: "Restart gap, ms",
		Note: "From SIGKILL of the server to the answer of a call that waits for it, and the server's own cold start: " +
			"from exec to the answer of the same call, handshake included. Medians.",
		Rows: [][]string{{"server", "cold start", "gap", "gap p90", "gap − cold start", "restarts"}},
	}
	for _, g := range r.Gaps {
		t.Rows = append(t.Rows, []string{
			g.Server, figures.Number(g.Cold), figures.Number(g.Gap), figures.Number(g.GapP90), figures.Number(g.Gap - g.Cold), fmt.Sprint(g.Count),
		})
	}
	return t
}

func startTable(r *results) figures.Table {
	t := figures.Table{
		Title: "Start-up, ms",
		Note:  "From exec to the answer of initialize. Medians.",
		Rows:  [][]string{{"server", "direct", "floor", "outlive", "outlive adds"}},
	}
	for _, g := range r.Gaps {
		by := g.StartBy
		t.Rows = append(t.Rows, []string{
			g.Server, figures.Number(by[direct]), figures.Number(by[floor]), figures.Number(by[outlive]), figures.Number(by[outlive] - by[direct]),
		})
	}
	return t
}

func memoryTable(r *results) figures.Table {
	size := sizeName(longLine)
	t := figures.Table{
		Title: "Memory and long lines",
		Note: "Private: pages that the process has written and shares with nobody. Pages of its binary: in memory, unwritten, mapped by no other " +
			"process at the moment; a second instance shares them. Extra: highest resident size while the line passes, over the size before.",
		Rows: [][]string{{"", "private, idle, MB", "pages of its binary, MB", "extra at a " + size + " line, MB", size + " line there and back, ms"}},
	}
	for way, m := range r.Memory {
		name := wayNames[way]
		if way == direct {
			name = "direct (the server itself)"
		}
		t.Rows = append(t.Rows, []string{
			name, figures.Number(m.Private / mebibyte), figures.Number(m.Clean / mebibyte), figures.Number(m.Extra / mebibyte), figures.Number(m.LongMS),
		})
	}
	return t
}

func restartTable(r *restartFigures) figures.Table {
	return figures.Table{
		Title: fmt.Sprintf("What outlive holds before and after %s restarts", figures.Number(float64(r.Count))),
		Note:  fmt.Sprintf("The server was killed with SIGKILL each time; %s ms a restart.", figures.Number(milliseconds(r.Took)/float64(r.Count))),
		Rows: [][]string{
			{"", "descriptors", "threads", "private memory, MB"},
			{"before", fmt.Sprint(r.Before.Descriptors), fmt.Sprint(r.Before.Threads), figures.Number(r.Before.Private / mebibyte)},
			{"after", fmt.Sprint(r.After.Descriptors), fmt.Sprint(r.After.Threads), figures.Number(r.After.Private / mebibyte)},
		},
	}
}

// terminalReport is the report as text.
func terminalReport(r *results) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s; measured in %s\n", r.Machine, r.Took.Round(time.Second))
	for _, t := range tables(r) {
		out.WriteString(strings.ReplaceAll(t.Plain(), "**", ""))
	}
	return out.String()
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

package main

import (
	"fmt"
	"strings"
	"time"
)

// tables are the whole report, for the terminal and for the page alike.
func tables(r *results) []table {
	if r.Only != "" {
		return append([]table{promiseTable(r)}, r.Care.tables()...)
	}
	list := []table{promiseTable(r), latencyTable(r), rateTable(r), gapTable(r), startTable(r)}
	list = append(list, r.Care.tables()...)
	list = append(list, memoryTable(r))
	if r.Restarts != nil {
		list = append(list, restartTable(r.Restarts))
	}
	return list
}

func promiseTable(r *results) table {
	t := table{Title: "What is promised", Rows: [][]string{{"figure", "measured", "promised", "kept"}}}
	for _, p := range promises(r) {
		kept := "yes"
		if !p.kept() {
			kept = "**no**"
		}
		t.Rows = append(t.Rows, []string{p.Name, number(p.Got) + p.Unit, p.bound(), kept})
	}
	return t
}

func latencyTable(r *results) table {
	t := table{
		Title: "Latency, µs",
		Note: "The round trip of one call, and what each relay adds to it. With more than one in flight a call also waits for " +
			"those before it, so there the difference follows the throughput.",
		Rows: [][]string{{"scenario", "direct p50", "p99", "floor adds p50", "p99", "outlive adds p50", "p99", "ratio p50", "p99"}},
	}
	for _, row := range r.Latency {
		f50, f99, o50, o99 := row.addedP50(floor), row.addedP99(floor), row.addedP50(outlive), row.addedP99(outlive)
		t.Rows = append(t.Rows, []string{
			row.String(), number(row.By[direct].P50), number(row.By[direct].P99),
			number(f50), number(f99), number(o50), number(o99), ratio(o50, f50), ratio(o99, f99),
		})
	}
	return t
}

func rateTable(r *results) table {
	t := table{
		Title: "Throughput, messages/s",
		Rows:  [][]string{{"scenario", "direct", "floor", "outlive", "outlive ÷ direct", "outlive ÷ floor"}},
	}
	for _, row := range r.Latency {
		if row.Think || row.InFlight == 1 {
			continue
		}
		by := row.By
		t.Rows = append(t.Rows, []string{
			row.String(), number(by[direct].Rate), number(by[floor].Rate), number(by[outlive].Rate),
			ratio(by[outlive].Rate, by[direct].Rate), ratio(by[outlive].Rate, by[floor].Rate),
		})
	}
	return t
}

func gapTable(r *results) table {
	t := table{
		Title: "Restart gap, ms",
		Note: "From SIGKILL of the server to the answer of a call that waits for it, and the server's own cold start: " +
			"from exec to the answer of the same call, handshake included. Medians.",
		Rows: [][]string{{"server", "cold start", "gap", "gap p90", "gap − cold start", "restarts"}},
	}
	for _, g := range r.Gaps {
		t.Rows = append(t.Rows, []string{g.Server, number(g.Cold), number(g.Gap), number(g.GapP90), number(g.Gap - g.Cold), fmt.Sprint(g.Count)})
	}
	return t
}

func startTable(r *results) table {
	t := table{
		Title: "Start-up, ms",
		Note:  "From exec to the answer of initialize. Medians.",
		Rows:  [][]string{{"server", "direct", "floor", "outlive", "outlive adds"}},
	}
	for _, g := range r.Gaps {
		by := g.StartBy
		t.Rows = append(t.Rows, []string{g.Server, number(by[direct]), number(by[floor]), number(by[outlive]), number(by[outlive] - by[direct])})
	}
	return t
}

func memoryTable(r *results) table {
	size := sizeName(longLine)
	t := table{
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
			name, number(m.Private / mebibyte), number(m.Clean / mebibyte), number(m.Extra / mebibyte), number(m.LongMS),
		})
	}
	return t
}

func restartTable(r *restartFigures) table {
	return table{
		Title: fmt.Sprintf("What outlive holds before and after %s restarts", number(float64(r.Count))),
		Note:  fmt.Sprintf("The server was killed with SIGKILL each time; %s ms a restart.", number(milliseconds(r.Took)/float64(r.Count))),
		Rows: [][]string{
			{"", "descriptors", "threads", "private memory, MB"},
			{"before", fmt.Sprint(r.Before.Descriptors), fmt.Sprint(r.Before.Threads), number(r.Before.Private / mebibyte)},
			{"after", fmt.Sprint(r.After.Descriptors), fmt.Sprint(r.After.Threads), number(r.After.Private / mebibyte)},
		},
	}
}

// terminalReport is the report as text.
func terminalReport(r *results) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s; measured in %s\n", r.Machine, r.Took.Round(time.Second))
	for _, t := range tables(r) {
		out.WriteString(strings.ReplaceAll(t.plain(), "**", ""))
	}
	return out.String()
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

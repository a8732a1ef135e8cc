package main

import (
	"fmt"
	"math"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// latencyRow is one scenario by all three ways.
type latencyRow struct {
	scenario
	by [ways]figure
}

// addedP50 is what the given way adds to the median round trip, in µs.
func (r latencyRow) addedP50(way int) float64 { return r.by[way].p50 - r.by[direct].p50 }

// addedP99 is what the given way adds to the 99th percentile, in µs.
func (r latencyRow) addedP99(way int) float64 { return r.by[way].p99 - r.by[direct].p99 }

// latencyRows are all scenarios that were measured.
type latencyRows []latencyRow

// latencies measures every scenario of the plan in rounds of fresh processes.
func (b *bench) latencies() (outcome, error) {
	gathered := make([][ways]series, len(b.plan.scenarios))
	for round := range b.plan.rounds {
		peers, err := b.startAll()
		if err != nil {
			return outcome{}, err
		}
		for i, s := range b.plan.scenarios {
			b.say("latency and throughput: round %d of %d: %s", round+1, b.plan.rounds, s)
			if err := b.scenario(s, peers, round, &gathered[i]); err != nil {
				stopAll(peers)
				return outcome{}, fmt.Errorf("%s: %w", s, err)
			}
		}
		stopAll(peers)
	}
	rows := make(latencyRows, len(gathered))
	for i := range gathered {
		rows[i].scenario = b.plan.scenarios[i]
		for way := range ways {
			rows[i].by[way] = gathered[i][way].figure()
		}
	}
	return rows.outcome(), nil
}

func (rows latencyRows) outcome() outcome {
	return outcome{promises: rows.promises(), tables: []figures.Table{rows.table(), rows.rates()}, panels: []figures.Panel{rows.panel()}}
}

// of is the row of a scenario; one that was not measured has no numbers.
func (rows latencyRows) of(s scenario) latencyRow {
	for _, r := range rows {
		if r.scenario == s {
			return r
		}
	}
	none := latencyRow{scenario: s}
	for way := range none.by {
		none.by[way] = figure{math.NaN(), math.NaN(), math.NaN()}
	}
	return none
}

func (rows latencyRows) promises() []promise {
	small, thinking := rows.of(scenario{size: 200, inFlight: 1}), rows.of(scenario{size: 200, inFlight: 1, think: true})
	list := []promise{
		{name: "added p50, " + small.String(), got: over(small.addedP50(outlive), small.addedP50(floor)), limit: 1.6, unit: " × floor"},
		{name: "added p99, " + small.String(), got: over(small.addedP99(outlive), small.addedP99(floor)), limit: 2, unit: " × floor"},
		// After 20 ms the caches are cold for everybody: a ratio to a relay of a few lines says little, a tenth of a millisecond does.
		{name: "added p50, " + thinking.String(), got: thinking.addedP50(outlive), limit: 150, unit: " µs"},
	}
	for _, size := range []int{4 << 10, 64 << 10} {
		r := rows.of(scenario{size: size, inFlight: 64})
		list = append(list, promise{name: "messages/s, " + r.String(), got: r.by[outlive].rate / r.by[direct].rate, limit: 0.25, unit: " × direct", least: true})
	}
	return list
}

// over is a ratio, and no number where the floor adds nothing.
func over(added, floor float64) float64 {
	if !(floor > 0) {
		return math.NaN()
	}
	return added / floor
}

func (rows latencyRows) table() figures.Table {
	t := figures.Table{
		Title: "Latency, µs",
		Note: "The round trip of one call, and what each relay adds to it. With more than one in flight a call also waits for " +
			"those before it, so there the difference follows the throughput.",
		Rows: [][]string{{"scenario", "direct p50", "p99", "floor adds p50", "p99", "outlive adds p50", "p99", "ratio p50", "p99"}},
	}
	for _, row := range rows {
		f50, f99, o50, o99 := row.addedP50(floor), row.addedP99(floor), row.addedP50(outlive), row.addedP99(outlive)
		t.Add(row.String(), row.by[direct].p50, row.by[direct].p99, f50, f99, o50, o99, figures.Ratio(o50, f50), figures.Ratio(o99, f99))
	}
	return t
}

func (rows latencyRows) rates() figures.Table {
	t := figures.Table{Title: "Throughput, messages/s", Rows: [][]string{{"scenario", "direct", "floor", "outlive", "outlive ÷ direct", "outlive ÷ floor"}}}
	for _, row := range rows {
		if row.think || row.inFlight == 1 {
			continue
		}
		d, f, o := row.by[direct].rate, row.by[floor].rate, row.by[outlive].rate
		t.Add(row.String(), d, f, o, figures.Ratio(o, d), figures.Ratio(o, f))
	}
	return t
}

// panel shows the scenarios with one call under way: there the relay alone decides.
func (rows latencyRows) panel() figures.Panel {
	p := figures.Panel{
		Title: "Added latency, µs: p50, and p99 in the paler part",
		Legend: []figures.Bar{
			{Colour: figures.OtherColour, Text: "plain byte relay (floor)"},
			{Colour: figures.OutliveColour, Text: "outlive, everything on"},
		},
	}
	for _, row := range rows {
		// A line of 1 MB would stretch the scale until nothing else can be seen.
		if row.inFlight != 1 || row.size >= 1<<20 {
			continue
		}
		label := sizeName(row.size) + ", back to back"
		if row.think {
			label = fmt.Sprintf("%s, %d ms between calls", sizeName(row.size), thinkTime.Milliseconds())
		}
		group := figures.Group{Label: label}
		for way := floor; way <= outlive; way++ {
			colour := figures.OtherColour
			if way == outlive {
				colour = figures.OutliveColour
			}
			p50, p99 := row.addedP50(way), row.addedP99(way)
			group.Bars = append(group.Bars, figures.Bar{Colour: colour, Value: p50, Reach: p99, Text: figures.Number(p50) + " · " + figures.Number(p99)})
		}
		p.Groups = append(p.Groups, group)
	}
	return p
}

// runNote stands before the tables of `outlive run`.
func runNote(*bench) string {
	return "`direct` has no relay in between; `floor` is `bench/echo relay`, one thread that copies bytes and knows nothing of messages (a ratio " +
		"below 1 says that outlive added less than it); `outlive` is `outlive run` with everything on. All three take turns in one run, against the " +
		"same server (`bench/echo`), with new processes in each round; figures are means over the middle half of the blocks. On another machine " +
		"the figures differ; the ratios are what should stay. `-server 'Python SDK=python3 server.py'` measures the restarts of another server, too, and " +
		"`-launcher 'npx server-everything=npx -y @modelcontextprotocol/server-everything'` those of one behind a launcher. Leave the machine alone meanwhile: " +
		"with a busy core the spread grows and p99 means little."
}

package main

import (
	"fmt"
	"math"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// messageSize is how many bytes a call of a gateway carries, and so its answer.
const messageSize = 200

// usage is what a gateway takes: memory of its own and of its helpers, and its servers.
type usage struct {
	own       proc.Memory
	processes int     // of servers
	servers   float64 // their PSS, bytes
}

// look tells what a gateway and its servers take at this moment.
func look(pid int, server string) usage {
	u := usage{own: proc.MemoryOf(pid)}
	for _, child := range proc.Descendants(pid) {
		m := proc.MemoryOf(child)
		switch {
		case proc.Runs(child, server):
			u.processes++
			u.servers += m.PSS
		case m.PSS > 0: // it may have ended meanwhile
			u.own.Dirty += m.Dirty
			u.own.PSS += m.PSS
		}
	}
	return u
}

// medianUsage is the middle of every figure by itself.
func medianUsage(all []usage) usage {
	var dirty, pss, servers, processes []float64
	for _, u := range all {
		dirty, pss = append(dirty, u.own.Dirty), append(pss, u.own.PSS)
		servers, processes = append(servers, u.servers), append(processes, float64(u.processes))
	}
	out := usage{own: proc.Memory{Dirty: figures.Median(dirty), PSS: figures.Median(pss)}, servers: figures.Median(servers)}
	if middle := figures.Median(processes); !math.IsNaN(middle) {
		out.processes = int(math.Round(middle))
	}
	return out
}

// rate is the middle of all blocks, calls/s.
func (l load) rate() float64 { return figures.Midmean(flat(l.rates)) }

// own is the gateway's own memory after the load, bytes.
func (l load) own() float64 { return medianUsage(l.loaded).own.Dirty }

func flat(rounds [][]float64) (all []float64) {
	for _, round := range rounds {
		all = append(all, round...)
	}
	return all
}

// span is a middle value and the least and the greatest one.
type span struct{ middle, low, high float64 }

func spanOf(values []float64) span {
	return span{middle: figures.Median(values), low: figures.Percentile(values, 0), high: figures.Percentile(values, 1)}
}

// ratios are of a to b, taken in each round by itself: what disturbs a round disturbs both.
func ratios(a, b [][]float64) span {
	var all []float64
	for round := range min(len(a), len(b)) {
		all = append(all, figures.Midmean(a[round])/figures.Midmean(b[round]))
	}
	return spanOf(all)
}

// bestOther is the others' load that is better than the rest by a figure, nil without others.
func bestOther(loads []load, better func(a, b load) bool) *load {
	var best *load
	for i, l := range loads {
		if !l.ours && (best == nil || better(l, *best)) {
			best = &loads[i]
		}
	}
	return best
}

func loadTable(loads []load, connections int, p crowdPlan) figures.Table {
	fastest := bestOther(loads, func(a, b load) bool { return a.rate() > b.rate() })
	leanest := bestOther(loads, func(a, b load) bool { return a.own() < b.own() })
	t := figures.Table{
		Title: fmt.Sprintf("Gateways: %d sessions that call without a pause", connections),
		Note: fmt.Sprintf("Calls of %d B to one Go server over Streamable HTTP (2025-11-25), one connection for each session, %d rounds of %d blocks of %s. "+
			"Middle: the mean over the middle half of the blocks; half of the blocks lie within the range behind it. The ratio of calls/s is to %s, the fastest of the others, "+
			"in the same round: the middle, the least and the greatest of the rounds. The same by net/http: taken with a second client, which "+
			"shares no code with the first and decodes every answer; it takes more of the processors itself, which brings the ratios closer together. Memory is what the gateway and its helpers have written and share with nobody; "+
			"its ratio is to %s, the smallest of the others after the load.", messageSize, p.rounds, p.blocks, p.block, nameOf(fastest), nameOf(leanest)),
		Rows: [][]string{{"gateway", "calls/s", "half of the blocks", "ratio", "of rounds", "by net/http", "ratio", "p50, ms", "p99, ms",
			"idle, MB", "after load, MB", "ratio", "server processes"}},
	}
	for _, l := range loads {
		memory := "–"
		if leanest != nil {
			memory = figures.Ratio(l.own(), leanest.own())
		}
		ratio, of := ratioCells(fastest, l, func(l load) [][]float64 { return l.rates })
		checked, _ := ratioCells(fastest, l, func(l load) [][]float64 { return l.checked })
		t.Add(l.name, l.rate(), between(figures.Percentile(flat(l.rates), 0.25), figures.Percentile(flat(l.rates), 0.75)), ratio, of,
			figures.Median(flat(l.checked)), checked, figures.Midmean(flat(l.p50)), figures.Midmean(flat(l.p99)),
			medianUsage(l.idle).own.Dirty/mebibyte, l.own()/mebibyte, memory, medianUsage(l.loaded).processes)
	}
	return t
}

// ratioCells are the middle ratio to another's figures and its range over the rounds.
func ratioCells(other *load, l load, of func(load) [][]float64) (middle, span string) {
	if other == nil {
		return "–", "–"
	}
	s := ratios(of(l), of(*other))
	if math.IsNaN(s.middle) {
		return "–", "–"
	}
	return fmt.Sprintf("%.2f ×", s.middle), fmt.Sprintf("%.2f–%.2f", s.low, s.high)
}

func nameOf(l *load) string {
	if l == nil {
		return "nobody"
	}
	return l.name
}

func between(low, high float64) string {
	if math.IsNaN(low) || math.IsNaN(high) {
		return "–"
	}
	return figures.Number(low) + "–" + figures.Number(high)
}

// loadPanels draw the load of all gateways.
func loadPanels(loads []load, connections int) []figures.Panel {
	rates := figures.Panel{Title: fmt.Sprintf("Calls a second, %d sessions", connections)}
	trips := figures.Panel{Title: "Round trip, ms: p50, and p99 in the paler part"}
	memory := figures.Panel{Title: "Memory of the gateway itself after the load, MB"}
	for _, l := range loads {
		colour := figures.OtherColour
		if l.ours {
			colour = figures.OutliveColour
		}
		add := func(p *figures.Panel, b figures.Bar) {
			b.Colour = colour
			p.Groups = append(p.Groups, figures.Group{Label: l.name, Bars: []figures.Bar{b}})
		}
		p50, p99, own := figures.Midmean(flat(l.p50)), figures.Midmean(flat(l.p99)), l.own()/mebibyte
		add(&rates, figures.Bar{Value: l.rate(), Text: figures.Number(l.rate())})
		add(&trips, figures.Bar{Value: p50, Reach: p99, Text: figures.Number(p50) + " · " + figures.Number(p99)})
		add(&memory, figures.Bar{Value: own, Text: figures.Number(own)})
	}
	return []figures.Panel{rates, trips, memory}
}

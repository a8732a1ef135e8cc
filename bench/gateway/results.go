package main

import (
	"math"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// crowdLimits are outlive's settings for the curve over sessions, which its defaults end at 256.
const crowdLimits = "limits: {sessions: 1000, processes: 1000, connections: 2000}"

const (
	comesBack   = 10 * time.Second     // how long a gateway has to serve a session again whose server was killed
	retryEvery  = 5 * time.Millisecond // the pause after a call that failed
	callingTime = 20 * time.Second     // how long servers are called one after the other
)

// memory is what a program holds, in bytes: the pages that it has written and shares with nobody, and its proportional share
// of all pages (PSS), those of its binary included.
type memory struct{ Private, PSS float64 }

// usage is what a gateway takes: memory of its own and of its helpers, and its servers.
type usage struct {
	Own       memory
	Processes int     // of servers
	Servers   float64 // their PSS, bytes
}

// load is what one gateway does with so many sessions that call without a pause. Samples are by round, then by block.
type load struct {
	Name            string
	Ours            bool
	Rates, P50, P99 [][]float64 // calls/s, ms, ms
	CheckRates      [][]float64 // calls/s, counted by the second client
	Idle, Loaded    []usage     // by round: with all sessions open, and after the load
}

// rate is the middle of all blocks, calls/s.
func (l load) rate() float64 { return figures.Midmean(flat(l.Rates)) }

func flat(rounds [][]float64) (all []float64) {
	for _, round := range rounds {
		all = append(all, round...)
	}
	return all
}

// span is a middle value and the least and the greatest one.
type span struct{ Middle, Low, High float64 }

func spanOf(values []float64) span {
	return span{Middle: figures.Median(values), Low: figures.Percentile(values, 0), High: figures.Percentile(values, 1)}
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
		if !l.Ours && (best == nil || better(l, *best)) {
			best = &loads[i]
		}
	}
	return best
}

// medianUsage is the middle of every figure by itself.
func medianUsage(all []usage) usage {
	var private, pss, servers, processes []float64
	for _, u := range all {
		private, pss = append(private, u.Own.Private), append(pss, u.Own.PSS)
		servers, processes = append(servers, u.Servers), append(processes, float64(u.Processes))
	}
	out := usage{Own: memory{Private: figures.Median(private), PSS: figures.Median(pss)}, Servers: figures.Median(servers)}
	if middle := figures.Median(processes); !math.IsNaN(middle) {
		out.Processes = int(math.Round(middle))
	}
	return out
}

// growth is what one gateway takes with more and more sessions.
type growth struct {
	Name string
	Ours bool
	Uses map[int][]usage // by the number of sessions; one for each round
	// Apart is what the most sessions take when all but one have no connection.
	Apart []usage
}

// perSession is what each further session costs the gateway itself, bytes: between the fewest and the most that were measured.
func (g growth) perSession(counts []int) memory {
	return g.slope(counts, g.Uses[counts[len(counts)-1]])
}

// perSessionApart is the same of sessions without a connection.
func (g growth) perSessionApart(counts []int) memory { return g.slope(counts, g.Apart) }

// slope is what each session beyond the fewest takes when the most take so much.
func (g growth) slope(counts []int, most []usage) memory {
	few, many := counts[0], counts[len(counts)-1]
	if many == few || len(g.Uses[few]) == 0 || len(most) == 0 {
		return memory{Private: math.NaN(), PSS: math.NaN()}
	}
	a, b, n := medianUsage(g.Uses[few]).Own, medianUsage(most).Own, float64(many-few)
	return memory{Private: (b.Private - a.Private) / n, PSS: (b.PSS - a.PSS) / n}
}

// backends is what one gateway of so many servers does, with one session.
type backends struct {
	Name        string
	Servers     int
	First, Next []float64 // from exec until all tools are listed, ms: at the first start, and at the next one in the same directory
	Warm        []float64 // tools/list once more, ms
	Uses        []usage   // after one call of each server
}

// kills is how one gateway takes the death of a session's server.
type kills struct {
	Name      string
	Starts    int
	NoServer  bool        // there is none between calls
	Back      int         // of the first kills after a start: the session was served again
	First     []float64   // from the first SIGKILL to the next good answer, ms
	Failed    int         // calls that failed until then
	Row       [][]float64 // the kills right after the first, by their place, ms
	RowFailed int         // calls that failed between these
	RowLost   int         // sessions that were lost in the row
}

// check is what a client that others have written sees.
type check struct {
	Name          string
	Rate          float64 // calls/s of one session
	P50           float64 // ms
	Calls, Failed int     // while a server is killed
	Longest       float64 // from one good answer to the next, around the kill, ms
	NoServer      bool
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
	Busy        string // what else the machine did
	Gateways    []gatewayNote
	Missing     []string
	Failures    []string // what could not be measured, and why
	Plan        plan
	Loads       map[int][]load // by the number of connections
	Growth      []growth
	Backends    []backends
	Kills       []kills
	Checks      []check
	CheckedWith string
	Lazy        *lazyFigures
	Took        time.Duration
}

// gatewayNote is what a reader must know of a gateway's settings.
type gatewayNote struct{ Name, Version, Settings string }

// plan says how much is measured.
type plan struct {
	Connections []int
	Rounds      int
	Blocks      int
	Block       time.Duration // of one gateway's turn
	Sessions    []int
	Growths     int // rounds of the sessions' curve; the greatest number is measured in the last one only
	Servers     []int
	Lists       int // rounds of the backends' curve
	Starts      int // that are followed by a kill
	Rows        int // of these, so many are followed by more kills
	Row         int // kills in a row, the first included
	Checks      bool
	Lazy        int // servers
	LazyStarts  int
}

func planFor(quick bool) plan {
	if quick {
		return plan{Connections: []int{16}, Rounds: 2, Blocks: 2, Block: 300 * time.Millisecond, Sessions: []int{1, 50}, Growths: 1,
			Servers: []int{1, 10}, Lists: 1, Starts: 2, Rows: 1, Row: 3, Checks: false, Lazy: 100, LazyStarts: 2}
	}
	return plan{Connections: []int{16, 128}, Rounds: 3, Blocks: 4, Block: 800 * time.Millisecond, Sessions: []int{1, 10, 100, 1000}, Growths: 2,
		Servers: []int{1, 10, 100}, Lists: 2, Starts: 6, Rows: 2, Row: 6, Checks: true, Lazy: 100, LazyStarts: 10}
}

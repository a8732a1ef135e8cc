package main

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

const (
	// crowdLimits are outlive's settings for the curve over sessions, which its defaults end at 256.
	crowdLimits = "limits: {sessions: 1000, processes: 1000, connections: 2000}"
	// silent is how long sessions say nothing before memory is looked at. outlive gives memory back after three seconds, at
	// most once in ten.
	silent      = 12 * time.Second
	callingTime = 20 * time.Second // how long servers are called one after the other
)

// growth is what one gateway takes with more and more sessions.
type growth struct {
	name string
	uses map[int][]usage // by the number of sessions; one for each round
	// apart is what the most sessions take when all but one have no connection.
	apart []usage
}

// perSession is what each further session costs the gateway itself, bytes: between the fewest and the most that were measured.
func (g growth) perSession(counts []int) proc.Memory {
	return g.slope(counts, g.uses[counts[len(counts)-1]])
}

// perSessionApart is the same of sessions without a connection.
func (g growth) perSessionApart(counts []int) proc.Memory { return g.slope(counts, g.apart) }

// slope is what each session beyond the fewest takes when the most take so much.
func (g growth) slope(counts []int, most []usage) proc.Memory {
	few, many := counts[0], counts[len(counts)-1]
	if many == few || len(g.uses[few]) == 0 || len(most) == 0 {
		return proc.Memory{Dirty: math.NaN(), PSS: math.NaN()}
	}
	a, b, n := medianUsage(g.uses[few]).own, medianUsage(most).own, float64(many-few)
	return proc.Memory{Dirty: (b.Dirty - a.Dirty) / n, PSS: (b.PSS - a.PSS) / n}
}

// sessionCurves measures what each gateway takes with more and more sessions, each of which has called once and keeps its
// connection, and what the most of them take when their clients have closed the connections. Gateways that are silent at the same time
// take no memory from each other.
func (b *bench) sessionCurves() (outcome, error) {
	rows := make([]growth, len(b.measuredGateways))
	for i, g := range b.measuredGateways {
		rows[i] = growth{name: g.name, uses: map[int][]usage{}}
	}
	for round := range b.crowd.growths {
		counts := b.crowd.sessions
		if last := round == b.crowd.growths-1; !last {
			counts = counts[:len(counts)-1]
		}
		slots := make(chan struct{}, b.crowd.together)
		var all sync.WaitGroup
		for i, g := range b.measuredGateways {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				if err := b.growSessions(g, counts, &rows[i]); err != nil {
					b.fail("sessions: %s: %v", g.name, err)
				}
			})
		}
		all.Wait()
	}
	return outcome{tables: []figures.Table{growthTable(rows, b.crowd.sessions), processTable(rows, b.crowd.sessions)}}, nil
}

func (b *bench) growSessions(g gateway, counts []int, row *growth) error {
	g.crowd = true
	r, err := b.startGateway(g, 1)
	if err != nil {
		return err
	}
	f := &fleet{running: r}
	defer f.close()
	for _, n := range counts {
		b.say("%d sessions: %s", n, g.name)
		if err := f.open(n); err != nil {
			return err
		}
		time.Sleep(silent) // collectors give memory back
		row.uses[n] = append(row.uses[n], look(r.pid(), b.echo))
	}
	if n := len(f.sessions); n == slices.Max(b.crowd.sessions) {
		for _, s := range f.sessions {
			s.close()
		}
		if _, err := f.sessions[0].ask("tools/list", "{}", patience); err != nil { // memory is given back after traffic
			return err
		}
		time.Sleep(silent)
		row.apart = append(row.apart, look(r.pid(), b.echo))
	}
	return nil
}

func growthTable(rows []growth, counts []int) figures.Table {
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
	for _, g := range rows {
		row := []any{g.name}
		for _, n := range counts {
			row = append(row, medianUsage(g.uses[n]).own.Dirty/mebibyte)
		}
		per := g.perSession(counts)
		t.Add(append(row, per.Dirty/1024, per.PSS/1024, g.perSessionApart(counts).Dirty/1024)...)
	}
	return t
}

func processTable(rows []growth, counts []int) figures.Table {
	t := figures.Table{
		Title: "Gateways: server processes with more and more sessions",
		Note: "Of one server, in the same run. Behind each number: what these processes take together (PSS), MB. This server is a small Go program; " +
			"server-everything (TypeScript) takes about 38 MB, a small server with the Python SDK about 60.",
		Rows: [][]string{{"gateway"}},
	}
	for _, n := range counts {
		t.Rows[0] = append(t.Rows[0], plural(n, "session"))
	}
	for _, g := range rows {
		row := []string{g.name}
		for _, n := range counts {
			cell := "–"
			if use := medianUsage(g.uses[n]); len(g.uses[n]) > 0 {
				cell = fmt.Sprintf("%s (%s)", count(use.processes), figures.Number(use.servers/mebibyte))
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

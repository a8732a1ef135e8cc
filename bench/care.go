package main

import (
	"fmt"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// loadInFlight is how many calls are under way while a server is replaced.
const loadInFlight = 64

// reloadFigures are the outcome of many planned restarts under load.
type reloadFigures struct {
	Count, Calls, Failed int
	P99                  float64 // of calls while the server is replaced, ms
	Ordinary             float64 // of as many calls under the same load without, ms
	Worst                float64 // ms
}

// standbyRow is, for one server, what a crash costs when a spare stands by. Times in ms.
type standbyRow struct {
	Server    string
	Count     int
	Answer    float64 // one answer after a rest, started directly, median
	ByHand    deaths  // one of two started directly is killed, the other is asked when it has ended
	Outlive   deaths  // the one that serves is killed, and outlive asked at once
	Announced float64 // p99 of calls during announced restarts
	Beside    float64 // p99 of calls while the same server is started directly, which outlive has no part in
	Ordinary  float64 // p99 of as many calls without either
}

// added is what the crash costs a client beside what nobody can change: that this server dies, and that the other answers.
func (s standbyRow) added() float64 { return s.Outlive.after() - s.ByHand.after() }

// deaths are the times of killed servers, each from its SIGKILL, in ms.
type deaths struct {
	dying []float64 // until the system says that this very process has ended
	gaps  []float64 // until another answers
}

func (d *deaths) add(dying, gap float64) {
	d.dying, d.gaps = append(d.dying, dying), append(d.gaps, gap)
}

// after is the median of what the answer took from the death on.
func (d deaths) after() float64 {
	var after []float64
	for i, gap := range d.gaps {
		after = append(after, gap-d.dying[i])
	}
	return figures.Median(after)
}

// saveFigures are the outcome of saves that broke a watched server, each mended by the next. Times in ms.
type saveFigures struct {
	Count, Calls, Failed int
	Start                float64 // the server's own: exec → first answer, median
	Live                 float64 // the mending save → first answer of what it saved, median
	LiveWorst            float64
}

// launcherRow compares the first start of a launcher's server with the restarts. Times in ms.
type launcherRow struct {
	Server         string
	Count          int
	First          float64 // exec of outlive → first answer, median
	Restart, Worst float64 // SIGKILL → next answer
}

// lazyFigures are starts that memory answers. Times in ms.
type lazyFigures struct {
	Count         int
	Answered, P90 float64 // exec of outlive → the tools are listed
	Bare          float64 // outlive --version, the whole process, median
}

// tapFigures are calls at 10,000 messages a second, without and with somebody who watches the messages. Times in µs.
type tapFigures struct {
	Count         int     // pairs of blocks
	Rate          float64 // messages/s
	P50, P99      [2]float64
	Seen, LeftOut int // messages
}

// care is what outlive does for servers beyond starting them again.
type care struct {
	Reload    *reloadFigures
	Standby   []standbyRow
	Saves     *saveFigures
	Launchers []launcherRow
	Lazy      *lazyFigures
	Tap       *tapFigures
}

// promises holds it against what the project promises.
func (c *care) promises() []promise {
	var list []promise
	if r := c.Reload; r != nil {
		list = append(list,
			promise{Name: fmt.Sprintf("calls failed over %d planned restarts", r.Count), Got: float64(r.Failed), Limit: 0},
			promise{Name: "added p99 while a server is replaced", Got: r.P99 - r.Ordinary, Limit: 5, Unit: " ms"})
	}
	for _, s := range c.Standby {
		list = append(list, promise{Name: "crash with a spare adds, " + s.Server, Got: s.added(), Limit: 2, Unit: " ms"})
	}
	if s := c.Saves; s != nil {
		list = append(list,
			promise{Name: fmt.Sprintf("calls failed over %d broken saves", s.Count), Got: float64(s.Failed), Limit: 0},
			promise{Name: "mended save is live, over the server's start", Got: s.Live - s.Start, Limit: 300, Unit: " ms"})
	}
	for _, l := range c.Launchers {
		list = append(list, promise{Name: "restart, " + l.Server, Got: l.Restart / l.First, Limit: 0.4, Unit: " × first start"})
	}
	if l := c.Lazy; l != nil {
		list = append(list, promise{Name: "lazy start: tools listed", Got: l.Answered, Limit: 20, Unit: " ms"})
	}
	if t := c.Tap; t != nil {
		list = append(list,
			promise{Name: "call while watched, 10,000 messages/s", Got: t.P50[1] / t.P50[0], Limit: 1.05, Unit: " × unwatched"},
			promise{Name: "messages left out of it", Got: float64(t.LeftOut), Limit: 0})
	}
	return list
}

// tables are its part of the report.
func (c *care) tables() []figures.Table {
	var list []figures.Table
	for _, t := range []figures.Table{c.reloadTable(), c.standbyTable(), c.saveTable(), c.launcherTable(), c.lazyTable(), c.tapTable()} {
		if len(t.Rows) > 1 {
			list = append(list, t)
		}
	}
	return list
}

func (c *care) reloadTable() figures.Table {
	t := figures.Table{
		Title: "Planned restarts under load, ms",
		Note: fmt.Sprintf("SIGHUP to outlive with %d calls of 200 B in flight to the echo server; blocks with a restart and as long ones "+
			"without take turns.", loadInFlight),
		Rows: [][]string{{"", "restarts", "calls", "failed", "p99 without", "p99 meanwhile", "added", "longest wait"}},
	}
	if r := c.Reload; r != nil {
		t.Rows = append(t.Rows, []string{"echo (Go)", fmt.Sprint(r.Count), figures.Number(float64(r.Calls)), fmt.Sprint(r.Failed),
			figures.Number(r.Ordinary), figures.Number(r.P99), figures.Number(r.P99 - r.Ordinary), figures.Number(r.Worst)})
	}
	return t
}

func (c *care) standbyTable() figures.Table {
	t := figures.Table{
		Title: "Crash with a spare, ms",
		Note: "`--standby 1`, and two servers that the benchmark holds by hand, take turns. One is killed and asked at once; by hand, the other is " +
			"asked when the first has ended. Dying: from SIGKILL until the system says that this very process has ended; nobody can know sooner. After it: from " +
			"then to the answer of the other. Added: the difference of these; it may be up to 0.2 ms too small, since behind outlive more threads wake at a " +
			"death and the benchmark may hear of it that much later. Gap: from SIGKILL to that answer. Answer: what tools/list takes after a " +
			"rest, by hand. Medians. Announced: p99 of calls one after the other while `restart_server` brings up new code; beside a start: while the benchmark starts the same " +
			"server itself; ordinary: of as many calls without either.",
		Rows: [][]string{{"server", "kills", "answer", "by hand: dying", "after it", "outlive: dying", "after it", "added", "gap", "gap p90",
			"announced p99", "beside a start p99", "ordinary p99"}},
	}
	for _, s := range c.Standby {
		t.Rows = append(t.Rows, []string{s.Server, fmt.Sprint(s.Count), figures.Number(s.Answer),
			figures.Number(figures.Median(s.ByHand.dying)), figures.Number(s.ByHand.after()),
			figures.Number(figures.Median(s.Outlive.dying)), figures.Number(s.Outlive.after()), figures.Number(s.added()),
			figures.Number(figures.Median(s.Outlive.gaps)), figures.Number(figures.Percentile(s.Outlive.gaps, 0.9)),
			figures.Number(s.Announced), figures.Number(s.Beside), figures.Number(s.Ordinary)})
	}
	return t
}

func (c *care) saveTable() figures.Table {
	t := figures.Table{
		Title: "Saves of a watched server, ms",
		Note: "`--watch`, a Python server, calls all the while. Each save with a syntax error is followed by one that mends it. " +
			"Live: from the mending save to the first answer of what it saved; 200 of them outlive waits for further saves.",
		Rows: [][]string{{"", "broken saves", "calls", "failed", "own start", "live", "longest", "live − own start"}},
	}
	if s := c.Saves; s != nil {
		t.Rows = append(t.Rows, []string{"Python", fmt.Sprint(s.Count), figures.Number(float64(s.Calls)), fmt.Sprint(s.Failed),
			figures.Number(s.Start), figures.Number(s.Live), figures.Number(s.LiveWorst), figures.Number(s.Live - s.Start)})
	}
	return t
}

func (c *care) launcherTable() figures.Table {
	t := figures.Table{
		Title: "Servers behind a launcher, ms",
		Note:  "First: from exec of outlive to the first answer. Restart: from SIGKILL of the server to the next answer; the launcher is left out.",
		Rows:  [][]string{{"command", "first start", "restart", "longest", "restart ÷ first", "restarts"}},
	}
	for _, l := range c.Launchers {
		t.Rows = append(t.Rows, []string{l.Server, figures.Number(l.First), figures.Number(l.Restart), figures.Number(l.Worst),
			figures.Ratio(l.Restart, l.First), fmt.Sprint(l.Count)})
	}
	return t
}

func (c *care) lazyTable() figures.Table {
	t := figures.Table{
		Title: "Lazy start, ms",
		Note: "`--lazy`, second run of a command whose server needs a second to start: from exec of outlive to the answer of tools/list, handshake " +
			"included, without a server. Bare: `outlive --version` from exec to exit.",
		Rows: [][]string{{"", "answered", "p90", "bare", "starts"}},
	}
	if l := c.Lazy; l != nil {
		t.Rows = append(t.Rows, []string{"outlive", figures.Number(l.Answered), figures.Number(l.P90), figures.Number(l.Bare), fmt.Sprint(l.Count)})
	}
	return t
}

func (c *care) tapTable() figures.Table {
	t := figures.Table{
		Title: "Calls that somebody watches, µs",
		Note: "`outlive tap` beside calls of 200 B to the echo server, one after the other at a fixed pace; blocks with it and without take turns at one " +
			"outlive. Medians and p99 of the round trip.",
		Rows: [][]string{{"", "messages/s", "p50 unwatched", "p50 watched", "ratio", "p99 unwatched", "p99 watched", "messages shown", "left out"}},
	}
	if f := c.Tap; f != nil {
		t.Rows = append(t.Rows, []string{"outlive", figures.Number(f.Rate), figures.Number(f.P50[0]), figures.Number(f.P50[1]), figures.Ratio(f.P50[1], f.P50[0]),
			figures.Number(f.P99[0]), figures.Number(f.P99[1]), figures.Number(float64(f.Seen)), fmt.Sprint(f.LeftOut)})
	}
	return t
}

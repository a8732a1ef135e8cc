package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	stormClients  = 8
	stormBackends = 10
)

// TestGatewayStorm: eight clients, ten backends with default settings, a kill a second. No client sees an error but the
// unknown outcome of a call that was running and may not be repeated; nothing runs twice; nothing is left behind, dead
// processes included; and a killed server's next call is answered as soon as a new one is up: the median gap is below
// 50 ms, or on a busy machine below what two starts of the same server without outlive and eight ordinary calls take, both
// measured meanwhile. E2E_STORM says how long, see stormTime.
func TestGatewayStorm(t *testing.T) {
	needOutlive(t)
	lasts := stormTime(t)
	w := newWorkspace(t)
	orphansAreOurs(t)
	srv := servers()["go"]
	var backends []backend
	for i := range stormBackends {
		backends = append(backends, backend{name: fmt.Sprintf("s%d", i), server: srv})
	}
	g := w.listen(t, w.gatewayFile(t, nil, backends...))
	var callers []*caller
	for i := range stormClients {
		s := w.join(t, gatewayClients()[[]string{"go", "go-legacy"}[i%2]], g.url)
		if names := s.toolNames(t); !slices.Contains(names, "s0_bump") || !slices.Contains(names, fmt.Sprintf("s%d_bump", stormBackends-1)) {
			t.Fatalf("client %d: tools are %v", i, names)
		}
		callers = append(callers, &caller{session: s, number: i, backends: stormBackends, prefix: "s%d_"})
	}
	alone, started, starts := newWorkspace(t), time.Time{}, []time.Duration(nil)
	gaps := storm(t, callers, lasts, func(client, backend int) string {
		if client%2 == 0 {
			return fmt.Sprint("shared ", backend) // modern clients share one process of each server
		}
		return fmt.Sprint(client, " ", backend)
	}, func() {
		if len(starts) == 0 || time.Since(started) > 5*time.Second {
			started = time.Now()
			starts = append(starts, startTime(t, alone, srv))
		}
	})
	var ordinary []time.Duration
	for _, c := range callers {
		ordinary = append(ordinary, c.ordinary...)
	}
	cold, usual := median(starts), median(ordinary)
	t.Logf("the server alone answers %v after its start, an ordinary call takes %v (medians of %d and %d)", cold, usual, len(starts), len(ordinary))
	if gap, most := reportStorm(t, w, callers, gaps, 0), max(50*time.Millisecond, 2*cold+8*usual); gap > most {
		t.Errorf("the median gap after a kill is %v, want below %v", gap, most)
	}
	for _, c := range callers {
		c.depart(t)
	}
	g.stop(t)
	noZombies(t)
}

// TestGatewayOneStorm: the same of a gateway whose one server stands on the command line, but for the gap: the same few processes are
// killed again and again, so that their next start is delayed.
func TestGatewayOneStorm(t *testing.T) {
	needOutlive(t)
	lasts := stormTime(t)
	w := newWorkspace(t)
	orphansAreOurs(t)
	g := w.listenOne(t, servers()["go"])
	var callers []*caller
	for i := range stormClients {
		s := w.join(t, gatewayClients()[[]string{"go", "go-legacy"}[i%2]], g.url)
		if names := s.toolNames(t); !slices.Contains(names, "bump") {
			t.Fatalf("client %d: tools are %v", i, names)
		}
		callers = append(callers, &caller{session: s, number: i, backends: 1})
	}
	gaps := storm(t, callers, lasts, func(client, _ int) string {
		if client%2 == 0 {
			return "shared" // modern clients share one process
		}
		return fmt.Sprint(client)
	}, func() {})
	reportStorm(t, w, callers, gaps, 0)
	for _, c := range callers {
		c.depart(t)
	}
	g.stop(t)
	noZombies(t)
}

// startTime is how long a server takes from its start to the first call it has answered.
func startTime(t *testing.T, w *workspace, srv server) time.Duration {
	t.Helper()
	begin := time.Now()
	c := connectRaw(t, w, srv.argv)
	c.pid(t)
	took := time.Since(begin)
	c.leave(t)
	_ = c.cmd.Wait() // nobody is left to become a zombie
	return took
}

// reportStorm judges what the clients saw, and returns the median gap after a kill. others is how many kills there were whose gap was not
// measured.
func reportStorm(t *testing.T, w *workspace, callers []*caller, gaps []time.Duration, others int) (gap time.Duration) {
	t.Helper()
	ran := map[string]int{}
	for _, line := range w.traces() {
		ran[line]++
	}
	calls, unknown, held, slowest := 0, 0, 0, time.Duration(0)
	for _, c := range callers {
		calls += c.calls
		held, slowest = held+c.held, max(slowest, c.slowest)
		unknown += len(c.unknown)
		for _, p := range c.problems {
			t.Errorf("client %d: %s", c.number, p)
		}
		for _, value := range c.bumped {
			if n := ran["bump "+value]; n != 1 {
				t.Errorf("client %d: call %s was answered and ran %d times", c.number, value, n)
			}
		}
		for _, value := range c.unknown {
			if n := ran["bump "+value]; n > 1 {
				t.Errorf("client %d: call %s of unknown outcome ran %d times", c.number, value, n)
			}
		}
	}
	gap = median(gaps)
	t.Logf("%d kills, %d calls, %d of unknown outcome, %d held by their server, gap after a kill: median %v, worst %v, slowest call %v",
		len(gaps), calls, unknown, held, gap, slices.Max(gaps), slowest)
	if held > 0 {
		t.Errorf("%d calls of %d lay in their server, which collects no garbage: this has another cause", held, calls)
	}
	// Each kill can hit a call of every client of that process, and in a process of its own a client has one call at a time.
	if most := (len(gaps) + others) * stormClients; unknown > most {
		t.Errorf("%d calls of unknown outcome with %d kills", unknown, len(gaps)+others)
	}
	if calls < 50*len(gaps) {
		t.Errorf("only %d calls: that is no load", calls)
	}
	return gap
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// caller is one client that calls all the time.
type caller struct {
	*session
	number   int
	backends int
	prefix   string // of the tools, with the number of the backend
	calls    int
	bumped   []string // calls with an effect that were answered
	unknown  []string // and those of unknown outcome
	problems []string
	held     int             // calls that lay in their server, see answer
	ordinary []time.Duration // of calls before a kill
	shown    sync.Once
	answers  atomic.Int64  // so far
	patience time.Duration // how long a call may be without an answer. 0: stuckAfter
	slowest  time.Duration // the longest that one took, apart from those of strike
}

// run calls one backend after the other, by turns with an effect and without one.
func (c *caller) run(stop <-chan struct{}, chance *rand.Rand) {
	begin := time.Now()
	for n := 0; ; n++ {
		c.slowest = max(c.slowest, time.Since(begin)) // the call before
		select {
		case <-stop:
			return
		case <-time.After(8 * time.Millisecond):
		}
		begin = time.Now()
		c.calls++
		backend := chance.IntN(c.backends)
		c.answers.Add(1) // of the call before
		if n%2 == 0 {
			text := fmt.Sprintf("client %d call %d", c.number, n)
			if r := c.ask(backend, "echo", map[string]any{"text": text}); r.text() != text || r.tool().IsError {
				c.problems = append(c.problems, fmt.Sprintf("echo: %s, want %q", r, text))
			}
			continue
		}
		value := fmt.Sprintf("%d/%d", c.number, n)
		switch r := c.ask(backend, "bump", map[string]any{"value": value}); {
		case r.Error == nil && !r.tool().IsError && strings.HasPrefix(r.text(), "bump "+value+" "):
			c.bumped = append(c.bumped, value)
		case r.Error == nil && r.tool().IsError && strings.Contains(r.text(), unknownOutcome):
			c.unknown = append(c.unknown, value)
		default:
			c.problems = append(c.problems, fmt.Sprintf("bump: %s", r))
		}
	}
}

// tool is the name by which the client knows a tool of a backend.
func (c *caller) tool(backend int, name string) string {
	if c.prefix == "" {
		return name
	}
	return fmt.Sprintf(c.prefix, backend) + name
}

// ask calls a tool of one backend and waits for the answer.
func (c *caller) ask(backend int, tool string, args map[string]any) reply {
	at := time.Now()
	n, ch := c.begin(step{"op": "call", "tool": c.tool(backend, tool), "args": args})
	r, answered := c.answer(n, ch)
	if !answered {
		for pid, line := range c.processes(tools.outlive + " ") {
			if c.isMine(line) {
				_ = syscall.Kill(pid, syscall.SIGQUIT) // it says on stderr what it is doing, and ends
			}
		}
		c.show(at, fmt.Sprintf("client %d, step %d: no answer", c.number, n))
		return reply{Error: &failure{Message: "no answer"}}
	}
	if r.Error != nil {
		c.show(at, fmt.Sprintf("client %d, step %d: %s", c.number, n, r))
	}
	return r
}

// show logs what everybody wrote from shortly before a call on, for the first call of the client that went wrong: at the end
// of a long storm that is far back in the files.
func (c *caller) show(call time.Time, what string) {
	c.shown.Do(func() {
		c.t.Log(what)
		for _, name := range []string{"stderr.log", "trace", "client.log", fmt.Sprintf("state/outlive/audit/storm%d.jsonl", c.number)} {
			c.t.Logf("client %d: %s from 50 ms before that call on:\n%s", c.number, name, c.since(name, call.Add(-50*time.Millisecond), 200))
		}
	})
}

// strike kills the process that serves this client at one backend and returns how long its next call there took.
func (c *caller) strike(t *testing.T, backend int) time.Duration {
	t.Helper()
	var before int
	var begin time.Time
	for hit := false; !hit; { // one that was replaced may have ended before it can be killed: then its successor is
		asked := time.Now()
		pid, err := strconv.Atoi(c.ask(backend, "pid", nil).text())
		if err != nil {
			t.Fatalf("client %d: pid of s%d: %v", c.number, backend, err)
		}
		before, begin = pid, time.Now()
		c.ordinary = append(c.ordinary, begin.Sub(asked))
		hit = syscall.Kill(pid, syscall.SIGKILL) == nil
	}
	if !eventually(func() bool { return dead(before) }) {
		t.Fatalf("server %d survives SIGKILL", before)
	}
	r := c.ask(backend, "pid", nil)
	gap := time.Since(begin)
	if after, err := strconv.Atoi(r.text()); err != nil || after == before {
		t.Errorf("client %d: after the kill of %d s%d answered %s", c.number, before, backend, r)
	}
	return gap
}

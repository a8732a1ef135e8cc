package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// allPairs are the sessions of the matrix: every client with every server, and the single modes that add something.
func allPairs() [][2]string {
	var all [][2]string
	for _, c := range []string{"go", "ts1", "ts2-auto", "py-auto"} {
		for _, s := range []string{"py", "ts", "ts2", "go"} {
			all = append(all, [2]string{c, s})
		}
	}
	return append(all,
		[2]string{"py-legacy", "py"}, [2]string{"ts2-legacy", "go"}, [2]string{"go-legacy", "py"}, [2]string{"go", "go-legacy"},
		[2]string{"ts2-modern", "py"}, [2]string{"ts2-modern", "go"}, [2]string{"py-modern", "ts2"},
		[2]string{"ts2-modern", "ts2-modern"}, [2]string{"ts2-auto", "ts2-modern"}, [2]string{"py-auto", "ts2-modern"}, [2]string{"go", "ts2-modern"},
	)
}

// endings are the trials of a session that end its server's process, of which each takes a start of it.
var endings = []string{
	"killed between calls", "killed just before a call", "killed during a call that may not be repeated", "killed during the first call of a process",
	"killed during look", "killed during idem", "killed before it read the call", "killed during progress", "killed after a cancellation",
	"killed while the user is asked", "exit 42", "marker on stderr", "restart_server",
}

// runEnding is run for one of the endings. The door has those that a session's line in its table names, or all if it names none; the full
// run has a third of them as well, another one from pair to pair, and a hunt all of each.
func (s *session) runEnding(t *testing.T, name string, part func(t *testing.T)) {
	t.Helper()
	at := slices.Index(endings, name)
	if at < 0 {
		t.Fatalf("%q is not in the list of endings", name)
	}
	pair := [2]string{s.client, s.server.name}
	table, err := doorCells()
	if err != nil {
		t.Fatal(err)
	}
	turn := full() && (slices.Index(allPairs(), pair)+at)%3 == 0
	if tierOf() == "hunt" || turn || slices.Contains(table.endings[pair], name) {
		s.run(t, name, part)
	}
}

// pairs are those that this run tries: all, or at the door those of its table (testdata/door-cells.txt).
func pairs(t *testing.T) [][2]string {
	t.Helper()
	if full() {
		return allPairs()
	}
	table, err := doorCells()
	if err != nil {
		t.Fatal(err)
	}
	return table.pairs
}

// TestMatrix runs one long session per pair of client and server, each on one connection that must never break.
func TestMatrix(t *testing.T) {
	besideOthers(t)
	for _, p := range pairs(t) {
		c, srv := clients()[p[0]], servers()[p[1]]
		t.Run(c.name+"×"+srv.name, func(t *testing.T) {
			t.Parallel()
			s, hello := connect(t, c, srv)
			if hello.Error != nil {
				t.Fatalf("connect: %s", hello)
			}
			s.checkEra(t, c)
			s.everyday(t)
			if !direct() {
				s.underFire(t)
			}
			s.asks(t)
			if !direct() {
				s.restarts(t)
			}
			s.leave(t)
		})
	}
}

// checkEra: the era must be what client and server would have agreed upon without outlive, but for one client: what the
// TypeScript SDK asks first is the same whether it could fall back or not, so it is bridged to a legacy server.
func (s *session) checkEra(t *testing.T, c client) {
	t.Helper()
	want := "legacy"
	if s.server.modern && c.modes != "legacy" || c.name == "ts2-auto" && !direct() {
		want = "modern"
	}
	if s.hello.Era != want {
		if !full() && want == "modern" && s.server.legacy && c.modes == "auto" {
			t.Logf("the server was so slow that it was taken for one of the legacy era: %s", s.hello.Version)
			return
		}
		t.Errorf("era %s (%s), want %s", s.hello.Era, s.hello.Version, want)
	}
}

const item = "test://item"

// everyday is what a session does while nothing goes wrong.
func (s *session) everyday(t *testing.T) {
	s.run(t, "list", func(t *testing.T) {
		names := s.toolNames(t)
		for _, want := range []string{"echo", "bump", "look", "idem", "slow"} {
			if !slices.Contains(names, want) {
				t.Errorf("tool %s is missing from %v", want, names)
			}
		}
		if want := []string{"restart_server", "verify_server_restarted", "server_status"}; !direct() && !slices.Equal(names[max(0, len(names)-3):], want) {
			t.Errorf("the list ends with %v, want %v", names[max(0, len(names)-3):], want)
		}
		s.do(t, step{"op": "resources"})
		s.do(t, step{"op": "prompts"})
	})
	s.run(t, "call", func(t *testing.T) {
		const odd = "héllo \"wörld\" ✅ \u2028 \\u0041 \t"
		if got := s.call(t, "echo", map[string]any{"text": odd}).text(); got != odd {
			t.Errorf("echo: %q, want %q", got, odd)
		}
		big := strings.Repeat("0123456789abcdef", 1<<14)
		if got := s.call(t, "echo", map[string]any{"text": big}).text(); got != big {
			t.Errorf("echo of %d bytes: got %d bytes", len(big), len(got))
		}
		s.call(t, "bump", map[string]any{"value": "plain"})
	})
	s.run(t, "progress", func(t *testing.T) {
		r := s.do(t, step{"op": "call", "tool": "slow", "args": map[string]any{"value": "p", "steps": 4, "ms": 30}, "progress": true})
		if r.text() == "" || !slices.Equal(r.Progress, []float64{1, 2, 3, 4}) {
			t.Errorf("progress %v of %s", r.Progress, r)
		}
	})
	s.run(t, "cancel", func(t *testing.T) {
		n, ch := s.begin(step{"op": "call", "tool": "slow", "args": map[string]any{"value": "c", "steps": 200, "ms": 50}})
		s.awaitTrace(t, "slow c", 1)
		s.do(t, step{"op": "cancel", "target": n})
		if r := s.await(t, "cancelled call", ch); r.Error == nil {
			t.Errorf("the cancelled call was answered: %s", r)
		}
		s.awaitTrace(t, "slow-cancelled c", 1)
	})
	s.run(t, "subscribe", func(t *testing.T) {
		s.do(t, step{"op": "subscribe", "uri": item})
		if !s.modern() {
			s.do(t, step{"op": "level", "level": "info"})
		}
		if s.modern() && s.client == "go" {
			s.awaitListening(t)
		}
		s.touch(t)
	})
}

// awaitListening: the Go SDK's client does not wait for the acknowledgement of its subscriptions/listen, so that a
// call may overtake it inside the server. Updates count from the first one that came.
func (s *session) awaitListening(t *testing.T) {
	t.Helper()
	from := s.mark()
	told := func() bool {
		return slices.ContainsFunc(s.seen(from), notification("notifications/resources/updated", item))
	}
	if !eventually(func() bool {
		s.call(t, "touch", map[string]any{"uri": item})
		return within(500*time.Millisecond, told)
	}) {
		t.Errorf("subscribed, and never told of an update; the client saw %v", s.seen(from))
	}
}

func (s *session) toolNames(t *testing.T) []string {
	t.Helper()
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(s.do(t, step{"op": "list"}).Result, &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// touch makes the server tell its subscribers, and waits until the client was told.
func (s *session) touch(t *testing.T) {
	t.Helper()
	from := s.mark()
	s.call(t, "touch", map[string]any{"uri": item})
	s.awaitEvent(t, from, "resource update", notification("notifications/resources/updated", item))
}

// serverPID asks the server for its process id.
func (s *session) serverPID(t *testing.T) int {
	t.Helper()
	pid, err := strconv.Atoi(s.call(t, "pid", nil).text())
	if err != nil {
		t.Fatalf("pid: %v", err)
	}
	return pid
}

// underFire: the server is killed between calls and during calls.
func (s *session) underFire(t *testing.T) {
	s.runEnding(t, "killed between calls", func(t *testing.T) {
		from, subscribed := s.mark(), s.count("subscribe "+item)
		killed(t, s.serverPID(t))
		s.call(t, "bump", map[string]any{"value": "between"})
		if n := s.count("bump between"); n != 1 {
			t.Errorf("a call after the kill ran %d times, want once", n)
		}
		if !s.modern() {
			s.awaitEvent(t, from, "update after the restart", notification("notifications/resources/updated", item))
			s.awaitTrace(t, "subscribe "+item, subscribed+1)
			s.awaitTrace(t, "level info", 2)
		}
		s.touch(t)
	})
	s.runEnding(t, "killed just before a call", func(t *testing.T) {
		old := s.serverPID(t)
		kill(t, old)
		if now := s.serverPID(t); now == old {
			t.Errorf("the dead server %d has answered", old)
		}
	})
	s.runEnding(t, "killed during a call that may not be repeated", func(t *testing.T) {
		_, ch := s.begin(step{"op": "call", "tool": "bump", "args": map[string]any{"value": "during", "ms": 60000}})
		s.awaitTrace(t, "bump during", 1)
		kill(t, s.currentPID(t, "bump during"))
		s.wantUnknown(t, s.await(t, "bump", ch))
		s.call(t, "bump", map[string]any{"value": "after"})
		if n := s.count("bump during"); n != 1 {
			t.Errorf("the call ran %d times, want once", n)
		}
	})
	s.runEnding(t, "killed during the first call of a process", func(t *testing.T) {
		killed(t, s.serverPID(t))
		_, ch := s.begin(step{"op": "call", "tool": "bump", "args": map[string]any{"value": "first", "ms": 60000}})
		s.awaitTrace(t, "bump first", 1)
		kill(t, s.currentPID(t, "bump first"))
		s.wantUnknown(t, s.await(t, "bump", ch))
		if n := s.count("bump first"); n != 1 {
			t.Errorf("the call ran %d times, want once", n)
		}
	})
	for _, tool := range []string{"look", "idem"} {
		s.runEnding(t, "killed during "+tool, func(t *testing.T) {
			_, ch := s.begin(step{"op": "call", "tool": tool, "args": map[string]any{"value": "x", "ms": 700}})
			s.awaitTrace(t, tool+" x", 1)
			old := s.currentPID(t, tool+" x")
			kill(t, old)
			r := s.await(t, tool, ch)
			if r.Error != nil || r.tool().IsError || !strings.HasPrefix(r.text(), tool+" x ") || strings.HasSuffix(r.text(), fmt.Sprint(" ", old)) {
				t.Errorf("the call that may be repeated: %s", r)
			}
			if n := s.count(tool + " x"); n != 2 {
				t.Errorf("ran %d times, want twice", n)
			}
		})
	}
	s.runEnding(t, "killed before it read the call", s.undelivered)
	s.runEnding(t, "killed during progress", s.progressUnderFire)
	s.runEnding(t, "killed after a cancellation", func(t *testing.T) {
		n, ch := s.begin(step{"op": "call", "tool": "look", "args": map[string]any{"value": "gone", "ms": 60000}})
		s.awaitTrace(t, "look gone", 1)
		s.do(t, step{"op": "cancel", "target": n})
		if r := s.await(t, "cancelled call", ch); r.Error == nil {
			t.Errorf("the cancelled call was answered: %s", r)
		}
		s.call(t, "echo", map[string]any{"text": "the cancellation was read before this"})
		kill(t, s.currentPID(t, "look gone"))
		s.call(t, "echo", map[string]any{"text": "up again"})
		if n := s.count("look gone"); n != 1 {
			t.Errorf("a cancelled call ran %d times, want once", n)
		}
	})
}

// undelivered: a call that the dead server provably never read is run by the next one, whatever it does.
func (s *session) undelivered(t *testing.T) {
	pid := s.serverPID(t)
	var ch <-chan reply
	s.freeze(t, pid, func() {
		_, ch = s.begin(step{"op": "call", "tool": "bump", "args": map[string]any{"value": "unread"}})
	})
	kill(t, pid)
	r := s.await(t, "undelivered bump", ch)
	if r.Error != nil || r.tool().IsError {
		t.Errorf("a call that was never delivered: %s", r)
	}
	if n := s.count("bump unread"); n != 1 {
		t.Errorf("ran %d times, want once", n)
	}
}

// progressUnderFire: progress goes on growing over a kill.
func (s *session) progressUnderFire(t *testing.T) {
	from := s.mark()
	n, ch := s.begin(step{"op": "call", "tool": "slow", "args": map[string]any{"value": "f", "steps": 5, "ms": 60}, "progress": true})
	s.awaitEvent(t, from, "progress", func(e event) bool { return e.Event == "progress" && e.N == n && e.Progress == 2 })
	kill(t, s.currentPID(t, "slow f"))
	r := s.await(t, "slow", ch)
	if r.Error != nil || r.tool().IsError {
		t.Fatalf("slow: %s", r)
	}
	for i := 1; i < len(r.Progress); i++ {
		if r.Progress[i] <= r.Progress[i-1] {
			t.Fatalf("progress went back: %v", r.Progress)
		}
	}
	if len(r.Progress) == 0 || r.Progress[len(r.Progress)-1] != 5 {
		t.Errorf("progress ends early: %v", r.Progress)
	}
}

// currentPID is the process that wrote the trace line last.
func (s *session) currentPID(t *testing.T, line string) int {
	t.Helper()
	pid := 0
	for _, l := range s.rawTraces() {
		if head, rest, ok := strings.Cut(l, " "); ok && rest == line {
			pid, _ = strconv.Atoi(head)
		}
	}
	if pid == 0 {
		t.Fatalf("no process has written %q", line)
	}
	return pid
}

// wantUnknown checks the answer of a call whose outcome nobody knows: a tool result that the model can read.
func (s *session) wantUnknown(t *testing.T, r reply) {
	t.Helper()
	if r.Error != nil || !r.tool().IsError {
		t.Errorf("a call with unknown outcome must be answered by an isError result, got %s", r)
		return
	}
	for _, want := range []string{"may or may not have taken effect", "NOT repeated"} {
		if !strings.Contains(r.text(), want) {
			t.Errorf("text %q lacks %q", r.text(), want)
		}
	}
	if !strings.Contains(string(r.Result), `server_restarted`) {
		t.Errorf("no outcome in _meta: %s", r)
	}
}

// leave closes the connection: without an error before, with nothing left behind, and fast, which the door does not judge.
func (s *session) leave(t *testing.T) {
	s.run(t, "leave", func(t *testing.T) {
		s.do(t, step{"op": "unsubscribe", "uri": item})
		stuck := make(chan string, 1) // who is still there, and what it waits for
		late := time.AfterFunc(1500*time.Millisecond, func() { stuck <- s.describeFrom(tools.outlive + " ") })
		r := s.do(t, step{"op": "close"})
		var took struct{ MS int }
		_ = json.Unmarshal(r.Result, &took)
		if inTime := late.Stop(); full() && took.MS > 2500 && !inTime {
			t.Errorf("closing took %d ms; after 1500 there were\n%s", took.MS, <-stuck)
		} else if full() && took.MS > 2500 {
			t.Errorf("closing took %d ms, by the client's own clock alone", took.MS)
		}
		select {
		case <-s.driver.exited():
		case <-time.After(patience):
			t.Error("the client did not end")
		}
		s.noneLeft(t)
		for _, e := range s.seen(0) {
			if direct() && strings.Contains(e.Message, "unknown message ID") {
				continue // the Go SDK's server answers cancelled requests; outlive drops that
			}
			if e.Event == "error" || e.Event == "closed" || e.Event == "subscription-ended" || e.Method == "notifications/tools/list_changed" {
				t.Errorf("the client noticed: %s", e)
			}
		}
	})
}

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

// trial is one thing that a user of a connection would miss if it did not work.
type trial struct {
	name string
	run  func(*testing.T, *session)
}

// trialsOf are the trials of a cell in their order. The server is killed twice on the way.
func trialsOf(c cell) []trial {
	v := vocabularyOf(c.server.key)
	all := []trial{
		{"list", v.list}, {"call", v.callEcho}, {"error", v.fails}, {"progress", v.progresses}, {"cancellation", v.cancels},
		{"subscription", v.subscribes}, {"elicitation", v.elicits}, {"sampling", v.samples},
	}
	if direct() {
		return all
	}
	return append(all,
		trial{"killed between calls", v.killedBetween}, trial{"subscription after the kill", v.updates},
		trial{"elicitation after the kill", v.elicits}, trial{"sampling after the kill", v.samples},
		trial{"killed during a read-only call", v.killedDuring}, trial{"error after the kills", v.fails},
	)
}

// trialNames are the names of all trials, in their order.
func trialNames() []string {
	var names []string
	for _, c := range trialsOf(cell{}) {
		names = append(names, c.name)
	}
	return names
}

// impossible is the reason why a trial cannot be made with this client and server, or "".
func impossible(c cell, era, trial string) string {
	return ""
}

// vocabulary is how a server's tools are called.
type vocabulary struct {
	everything    bool // the reference server, which traces nothing
	uri           string
	echo, echoArg string
	echoed        string // before what was said
	slow          string
	quick, long   map[string]any // arguments of slow: a few steps, and many
	elicit        string
	sample        string
}

func vocabularyOf(server string) vocabulary {
	if server == "everything" {
		return vocabulary{
			everything: true, uri: document, echo: "echo", echoArg: "message", echoed: "Echo: ", slow: "trigger-long-running-operation",
			quick: map[string]any{"duration": 0.4, "steps": 4}, long: map[string]any{"duration": 4, "steps": 80},
			elicit: "trigger-elicitation-request", sample: "trigger-sampling-request",
		}
	}
	return vocabulary{
		uri: item, echo: "echo", echoArg: "text", slow: "slow",
		quick: map[string]any{"value": "quick", "steps": 4, "ms": 30}, long: map[string]any{"value": "long", "steps": 1200, "ms": 50},
		elicit: "elicit", sample: "sample",
	}
}

// list: tools, resources and prompts, and one resource read. The reference server adds tools after the handshake.
func (v vocabulary) list(t *testing.T, s *session) {
	var names []string
	want := []string{v.echo, v.slow, v.elicit, v.sample}
	if !eventually(func() bool {
		names = s.toolNames(t)
		return !slices.ContainsFunc(want, func(name string) bool { return !slices.Contains(names, name) })
	}) {
		t.Errorf("tools are %v, want %v among them", names, want)
	}
	if r := s.do(t, step{"op": "resources"}); !strings.Contains(string(r.Result), v.uri) {
		t.Errorf("resources lack %s: %s", v.uri, r)
	}
	if r := s.do(t, step{"op": "prompts"}); !strings.Contains(string(r.Result), `"arguments"`) {
		t.Errorf("prompts: %s", r)
	}
	var got struct{ Contents []struct{ URI, Text string } }
	r := s.do(t, step{"op": "read", "uri": v.uri})
	if err := json.Unmarshal(r.Result, &got); err != nil || len(got.Contents) != 1 || got.Contents[0].URI != v.uri || got.Contents[0].Text == "" {
		t.Errorf("read %s: %s (%v)", v.uri, r, err)
	}
}

// callEcho: text goes there and back unharmed.
func (v vocabulary) callEcho(t *testing.T, s *session) {
	for _, text := range []string{"héllo \"wörld\" ✅ \u2028 \\u0041 \t", strings.Repeat("0123456789abcdef", 1<<12)} {
		if got := s.call(t, v.echo, map[string]any{v.echoArg: text}).text(); got != v.echoed+text {
			t.Errorf("%s: %.80q of %d bytes, want %.80q of %d", v.echo, got, len(got), text, len(text))
		}
	}
}

// fails: a failed tool is a result that says so, an unknown resource an error with the code of the client's era.
func (v vocabulary) fails(t *testing.T, s *session) {
	tool, args, want := "fail", map[string]any{}, "failed on purpose"
	if v.everything {
		tool, args, want = "get-sum", map[string]any{"a": "no number"}, "nvalid"
	}
	_, ch := s.begin(step{"op": "call", "tool": tool, "args": args})
	if r := s.await(t, tool, ch); r.Error != nil || !r.tool().IsError || !strings.Contains(r.text(), want) {
		t.Errorf("%s: %s, want isError and %q", tool, r, want)
	}
	_, ch = s.begin(step{"op": "read", "uri": "test://missing"})
	r := s.await(t, "read of what is not there", ch)
	codes := []int{-32602}
	if !s.modern() {
		codes = append(codes, -32002) // the code of resources that are not found until 2025-11-25
	}
	if r.Error == nil || !slices.Contains(codes, r.Error.Code) {
		t.Errorf("read of what is not there: %s, want an error with a code of %v", r, codes)
	}
}

// progresses: every step is told, in order, before the answer.
func (v vocabulary) progresses(t *testing.T, s *session) {
	r := s.do(t, step{"op": "call", "tool": v.slow, "args": v.quick, "progress": true})
	want := []float64{1, 2, 3, 4}
	if v.everything && len(r.Progress) == 3 {
		want = want[:3] // some clients handle the answer before the progress that came just before it
	}
	if r.tool().IsError || !slices.Equal(r.Progress, want) {
		t.Errorf("progress %v of %s", r.Progress, r)
	}
}

// cancels: the server's work ends, the client's call ends with an error, and the connection goes on.
func (v vocabulary) cancels(t *testing.T, s *session) {
	from := s.mark()
	n, ch := s.begin(step{"op": "call", "tool": v.slow, "args": v.long, "progress": true})
	s.awaitEvent(t, from, "progress", func(e event) bool { return e.Event == "progress" && e.N == n })
	s.do(t, step{"op": "cancel", "target": n})
	if r := s.await(t, "cancelled call", ch); r.Error == nil {
		t.Errorf("the cancelled call was answered: %s", r)
	}
	if !v.everything { // which works on to its end
		s.awaitTrace(t, "slow-cancelled long", 1)
	}
	s.call(t, v.echo, map[string]any{v.echoArg: "still there"})
}

// subscribes: from the answer on, updates of the resource are told.
func (v vocabulary) subscribes(t *testing.T, s *session) {
	s.do(t, step{"op": "subscribe", "uri": v.uri})
	v.updates(t, s)
}

// updates: the server changes the resource, and the client is told.
func (v vocabulary) updates(t *testing.T, s *session) {
	from := s.mark()
	told := func() bool {
		return slices.ContainsFunc(s.seen(from), notification("notifications/resources/updated", v.uri))
	}
	tool, again := "touch", 500*time.Millisecond
	if v.everything {
		tool, again = "toggle-subscriber-updates", patience // it goes on by itself, every 5 s
	}
	touch := func() bool {
		s.call(t, tool, map[string]any{})
		return within(again, told)
	}
	if s.modern() && !v.everything {
		// A call may overtake a listen inside the server: the Go SDK's client does not wait for its acknowledgement, and a
		// new process acknowledges to outlive only. So updates count from the first one that came.
		if eventually(touch) {
			return
		}
	} else if touch() {
		return
	}
	s.broken.Store(true)
	t.Errorf("subscribed to %s and never told of an update; the client saw %v", v.uri, s.seen(from))
}

// elicits: the server asks the user, and works with the answer.
func (v vocabulary) elicits(t *testing.T, s *session) {
	from := s.mark()
	r := s.call(t, v.elicit, map[string]any{"question": "q"})
	if !v.everything && r.text() != "elicited yes" || v.everything && !strings.Contains(string(r.Result), "accept") {
		t.Errorf("%s: %s", v.elicit, r)
	}
	s.awaitEvent(t, from, "the question", asked("elicitation/create"))
}

// samples: the server asks the client's model, and works with the answer.
func (v vocabulary) samples(t *testing.T, s *session) {
	from, args := s.mark(), map[string]any{"text": "q"}
	if v.everything {
		args = map[string]any{"prompt": "q", "maxTokens": 10}
	}
	if r := s.call(t, v.sample, args); !strings.Contains(string(r.Result), "fixed reply") {
		t.Errorf("%s: %s", v.sample, r)
	}
	s.awaitEvent(t, from, "the question", asked("sampling/createMessage"))
}

// pid is the process that serves the client now.
func (v vocabulary) pid(t *testing.T, s *session) int {
	t.Helper()
	if v.everything {
		return s.everythingPID(t)
	}
	return s.serverPID(t)
}

// killedBetween: the next call after a kill is answered by another process, and runs once.
func (v vocabulary) killedBetween(t *testing.T, s *session) {
	from, old := s.mark(), v.pid(t, s)
	killed(t, old)
	if got := s.call(t, v.echo, map[string]any{v.echoArg: "up again"}).text(); got != v.echoed+"up again" {
		t.Errorf("%s: %q", v.echo, got)
	}
	if now := v.pid(t, s); now == old {
		t.Errorf("the dead server %d has answered", old)
	}
	if !s.modern() {
		// What changed meanwhile the client cannot know, so it is told to look again.
		s.awaitEvent(t, from, "update after the restart", notification("notifications/resources/updated", v.uri))
	}
}

// killedDuring: a call that changes nothing is made again, and its progress only grows.
func (v vocabulary) killedDuring(t *testing.T, s *session) {
	from, args := s.mark(), map[string]any{"value": "again", "steps": 5, "ms": 80}
	if v.everything {
		args = map[string]any{"duration": 0.8, "steps": 8}
	}
	old := v.pid(t, s)
	n, ch := s.begin(step{"op": "call", "tool": v.slow, "args": args, "progress": true})
	s.awaitEvent(t, from, "progress", func(e event) bool { return e.Event == "progress" && e.N == n && e.Progress >= 2 })
	kill(t, old)
	r := s.await(t, v.slow, ch)
	if r.Error != nil || r.tool().IsError {
		t.Errorf("a read-only call over a kill: %s", r)
	}
	for i := 1; i < len(r.Progress); i++ {
		if r.Progress[i] <= r.Progress[i-1] {
			t.Errorf("progress went back: %v", r.Progress)
		}
	}
	if v.everything {
		return
	}
	if pid, err := strconv.Atoi(strings.TrimPrefix(r.text(), "slow again ")); err != nil || pid == old {
		t.Errorf("answered by %s, want another process than %d", r, old)
	}
	if n := s.count("slow again"); n != 2 {
		t.Errorf("ran %d times, want twice", n)
	}
	if n := s.count(fmt.Sprint("slow-step again/", 5)); n != 1 {
		t.Errorf("came to its end %d times, want once", n)
	}
}

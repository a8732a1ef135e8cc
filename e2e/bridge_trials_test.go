package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// trial is one thing that a user of a connection would miss if it did not work.
type trial struct {
	name  string
	means string // for the document
	run   func(*testing.T, *session)
}

// trialsOf are the trials of a cell in their order. The server is killed three times on the way, but not without outlive. g is the
// gateway, if any.
func trialsOf(c cell, g *gateway) []trial {
	leave := trial{"leave", "the client closes: it has seen no error, no end of a subscription and no change of a list that did not change; " +
		"nothing is left of outlive and the server", func(t *testing.T, s *session) { c.shut(t, s, g) }}
	v := vocabularyOf(c)
	if direct() {
		return append(v.everydayTrials(), leave)
	}
	return append(append(v.everydayTrials(), v.killTrials()...), leave)
}

// everydayTrials are those with one process of the server.
func (v vocabulary) everydayTrials() []trial {
	return []trial{
		{"list", "tools, resources and prompts are listed, a resource is read", v.list},
		{"call", "a tool is called with text of many scripts and with 64 KiB", v.callEcho},
		{"error", "a failed tool is a result with `isError`, an unknown resource an error with the code of the client's era", v.fails},
		{"progress", "every step of a long call is told before its answer", v.progresses},
		{"cancellation", "a cancelled call ends at the client and at the server, and the connection goes on", v.cancels},
		{"subscription", "updates of a resource are told to who subscribed", v.subscribes},
		{"log messages", "a tool's log messages come at the level that the client has asked for, which is in force for a connection or for a call", v.logs},
		{"elicitation", "the server asks the user in the middle of a call, and works with the answer", v.elicits},
		{"sampling", "the server asks the client's model in the middle of a call, and works with the answer", v.samples},
	}
}

// killTrials are those in which it is killed, and those after that.
func (v vocabulary) killTrials() []trial {
	return []trial{
		{"killed between calls", "SIGKILL of the server; the next call is answered by another process", v.killedBetween},
		{"subscription after the kill", "the subscription holds in the new process", v.updates},
		{"log messages after the kill", "the level holds in the new process", v.told},
		{"elicitation after the kill", "as above, in the new process", v.elicits},
		{"sampling after the kill", "as above, in the new process", v.samples},
		{"killed during a read-only call", "SIGKILL while a tool with `readOnlyHint` runs: it is called again, its progress never goes back, one answer", v.killedDuring},
		{"killed while the user is asked", "SIGKILL while a question is open: a server of 2026-07-28 gets the answer in its new process; with a legacy one " +
			"the call is lost, and its result says that its outcome is unknown", func(t *testing.T, s *session) { v.killedAsking(t, s, v.server.era) }},
		{"error after the kills", "as above, in the fourth process", v.fails},
	}
}

// trialNames are the names of all trials, in their order.
func trialNames() []string {
	var names []string
	for _, one := range append(vocabulary{}.everydayTrials(), vocabulary{}.killTrials()...) {
		names = append(names, one.name)
	}
	return append(names, "leave")
}

// vocabulary is how the tools of a cell's server are called.
type vocabulary struct {
	cell
	everything    bool // the reference server, which traces nothing
	uri           string
	echo, echoArg string
	echoed        string // before what was said
	slow          string
	quick, long   map[string]any // arguments of slow: a few steps, and many
	elicit        string
	sample        string
}

func vocabularyOf(c cell) vocabulary {
	if c.server.key == "everything" {
		return vocabulary{
			cell: c, everything: true, uri: document, echo: "echo", echoArg: "message", echoed: "Echo: ", slow: "trigger-long-running-operation",
			quick: map[string]any{"duration": 0.4, "steps": 4}, long: map[string]any{"duration": 4, "steps": 80},
			elicit: "trigger-elicitation-request", sample: "trigger-sampling-request",
		}
	}
	return vocabulary{
		cell: c, uri: item, echo: "echo", echoArg: "text", slow: "slow",
		quick: map[string]any{"value": "quick", "steps": 4, "ms": 30}, long: map[string]any{"value": "long", "steps": 1200, "ms": 50},
		elicit: "elicit", sample: "sample",
	}
}

// list: tools, resources and prompts, and one resource read. Some servers add tools after the handshake.
func (v vocabulary) list(t *testing.T, s *session) {
	var names []string
	want := []string{v.echo, v.slow, v.elicit, v.sample} // the reference server has the last two for clients that can be asked
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
	from := s.mark()
	r := s.do(t, step{"op": "call", "tool": v.slow, "args": v.quick, "progress": true})
	progress := r.Progress
	for _, e := range s.seen(from) { // a client that takes the answer first says of the last progress that it has come
		if strings.Contains(e.Message, `unknown token`) && strings.Contains(e.Message, `"progress":4,`) {
			progress = append(progress, 4)
		}
	}
	told := slices.Equal(progress, []float64{1, 2, 3, 4})
	if v.everything {
		// It asks for the roots by itself some time after its start. In the modern era that question interrupts a call, and
		// of the progress meanwhile only the last can be told. And some clients handle the answer before the last progress.
		told = len(r.Progress) >= 2 && rises(r.Progress)
	}
	if r.tool().IsError || !told {
		t.Errorf("progress %v of %s", r.Progress, r)
	}
}

func rises(progress []float64) bool {
	for i := 1; i < len(progress); i++ {
		if progress[i] <= progress[i-1] {
			return false
		}
	}
	return true
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
	s.subscribed = true
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

// logs: log messages come once the client has asked for them.
func (v vocabulary) logs(t *testing.T, s *session) {
	if !s.modern() {
		s.do(t, step{"op": "level", "level": "debug"})
	}
	v.told(t, s)
}

// told: a call that logs is told of. In the modern era each request asks for log messages by itself.
func (v vocabulary) told(t *testing.T, s *session) {
	tool, args, part := "log", map[string]any{"text": "for the log"}, "for the log"
	if v.everything {
		tool, args, part = "toggle-simulated-logging", map[string]any{}, "evel" // one message of any level, at once
	}
	call := func() {
		meta := map[string]any{"io.modelcontextprotocol/logLevel": "debug"}
		if d, ok := s.driver.(*goDriver); ok && s.modern() {
			if _, err := d.cs.CallTool(t.Context(), &mcp.CallToolParams{Meta: meta, Name: tool, Arguments: args}); err != nil {
				t.Errorf("%s: %v", tool, err)
			}
			return
		}
		order := step{"op": "call", "tool": tool, "args": args}
		if s.modern() {
			order["meta"] = meta // the Python SDK's client asks with every request
		}
		s.do(t, order)
	}
	// Just after a call was cancelled, what a shared server logs may be that one's, and is not handed on. The reference server
	// logs when it is switched on, so every other call. Everywhere else one call is enough: it begins when the level is in force.
	from, again := s.mark(), patience
	if v.lane == "http" && s.modern() {
		again = 500 * time.Millisecond
	}
	heard := func() bool { return slices.ContainsFunc(s.seen(from), notification("notifications/message", part)) }
	if !eventually(func() bool { call(); return within(again, heard) }) {
		t.Errorf("asked for log messages and told of none; the client saw %v", s.seen(from))
	}
	if v.everything {
		s.call(t, tool, args) // stop it
	}
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

// killedAsking: a question of a modern server was the end of a request, so that its answer goes to the new process. A
// legacy server waits for it in the middle of the call, which dies with the server.
func (v vocabulary) killedAsking(t *testing.T, s *session, era string) {
	if era == "dual" {
		if era = s.hello.Era; s.takenForLegacy(t) {
			era = "legacy"
		}
	}
	v.elicits(t, s) // the TypeScript SDK 1.x client hears of no withdrawal of the request with the id 0, a process's first
	from := s.mark()
	s.do(t, step{"op": "hold"})
	_, ch := s.begin(step{"op": "call", "tool": v.elicit, "args": map[string]any{"question": "held"}})
	s.awaitEvent(t, from, "the question", asked("elicitation/create"))
	killed(t, v.pid(t, s))
	if era == "legacy" && !s.modern() {
		s.wantUnknown(t, s.await(t, v.elicit, ch)) // at once: nobody waits for the answer any more
		s.awaitEvent(t, from, "withdrawal of the question", func(e event) bool { return e.Event == "withdrawn" })
		s.do(t, step{"op": "release"})
		return
	}
	s.do(t, step{"op": "release"})
	r := s.await(t, v.elicit, ch)
	if era == "legacy" {
		s.wantUnknown(t, r)
	} else if r.Error != nil || r.text() != "elicited yes" {
		t.Errorf("an answer after a restart: %s", r)
	}
}

// killedDuring: a call that changes nothing is made again, and its progress only grows.
func (v vocabulary) killedDuring(t *testing.T, s *session) {
	const steps = 20 // it is killed long before the last one, also where progress is seen late
	from, args := s.mark(), map[string]any{"value": "again", "steps": steps, "ms": 80}
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
	if !rises(r.Progress) {
		t.Errorf("progress went back: %v", r.Progress)
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
	if n := s.count(fmt.Sprint("slow-step again/", steps)); n != 1 {
		t.Errorf("came to its end %d times, want once", n)
	}
}

package backend

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// laneCheck holds a backend to what its lanes allow: whatever could have gone ahead must be handed on by the backend as it
// is, before anything else. Every test of this package that says a line goes through it.
type laneCheck struct{}

// lanesAllowed counts the lines that could have gone ahead in any test.
var lanesAllowed atomic.Int64

// call is asked before each line of the client; done after it, with the first line the server got, "" for none.
func (laneCheck) call(b *Backend, line []byte) (done func(first string)) {
	var l Lane
	b.Lane(&l)
	if line = bytes.TrimSuffix(line, newline); !l.Call(line) {
		return func(string) {}
	}
	lanesAllowed.Add(1)
	want, p := string(line), b.process
	return func(first string) {
		mustBe("call", first, want)
		// The answer may come before the backend has seen the call: what it says now it must have said then.
		var after Lane
		b.Lane(&after)
		if b.process == p && !p.draining && !bytes.Equal(after.id, l.id) {
			panic(fmt.Sprintf("after the call %s the answer to %q may pass, not to %q", want, after.id, l.id))
		}
	}
}

// answer is asked before each line of process gen; done after it, with the first line the client got.
func (laneCheck) answer(b *Backend, gen int, line []byte) (done func(first string)) {
	var l Lane
	b.Lane(&l)
	if line = bytes.TrimSuffix(line, newline); gen != b.process.gen || !l.Answer(line) {
		return func(string) {}
	}
	lanesAllowed.Add(1)
	want := string(line)
	return func(first string) { mustBe("answer", first, want) }
}

var newline = []byte("\n")

func mustBe(what, got, want string) {
	if got != want {
		panic(fmt.Sprintf("a %s could have gone ahead, and the backend makes something else of it:\n%s\nbecame\n%s", what, want, got))
	}
}

// firstOf returns the first line behind the first n, without the mark of its process.
func firstOf(lines []string, n int) string {
	if len(lines) <= n {
		return ""
	}
	if _, line, marked := strings.Cut(lines[n], " "); marked && strings.HasPrefix(lines[n], "@") {
		return line
	}
	return lines[n]
}

// firstLine keeps the first line that goes one way while something is done.
type firstLine struct {
	watching bool
	line     string
}

func (f *firstLine) watch(do func(), done func(first string)) {
	outer := *f
	*f = firstLine{watching: true}
	do()
	first := f.line
	*f = outer
	done(first)
}

func (f *firstLine) saw(line string) {
	if f.watching {
		*f = firstLine{line: line}
	}
}

func TestLane(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"work","arguments":{"n":1}}}`
	const answer = `{"result":{"content":[]},"jsonrpc":"2.0","id":7}`
	for _, c := range []struct {
		name         string
		opts         Options
		before       func(w *fakeWorld)
		line         string
		call, answer bool // may go ahead
	}{
		{name: "a plain call", line: call, call: true},
		{name: "its answer", before: func(w *fakeWorld) { w.client(call) }, line: answer, answer: true},
		{name: "another id", before: func(w *fakeWorld) { w.client(call) }, line: strings.Replace(answer, ":7", ":8", 1)},
		{name: "an error", before: func(w *fakeWorld) { w.client(call) }, line: `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`},
		{name: "a list", line: `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`},
		{name: "a tool of outlive's", line: strings.Replace(call, "work", "server_status", 1)},
		{name: "the same without tools", opts: Options{NoTools: true}, line: strings.Replace(call, "work", "server_status", 1), call: true},
		{name: "a second call", before: func(w *fakeWorld) { w.client(call) }, line: strings.Replace(call, ":7", ":8", 1)},
		{name: "the answer to one of two", before: func(w *fakeWorld) {
			w.client(call)
			w.client(strings.Replace(call, ":7", ":8", 1))
		}, line: answer},
		{name: "the last answer of two", before: func(w *fakeWorld) {
			w.client(strings.Replace(call, ":7", ":8", 1))
			w.client(call)
			w.server(strings.Replace(answer, ":7", ":8", 1))
		}, line: answer, answer: true},
		{name: "nobody serves", before: func(w *fakeWorld) { w.exit(1) }, line: call},
		{name: "the answer to a call withdrawn", before: func(w *fakeWorld) {
			w.client(call)
			w.client(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		}, line: answer},
		{name: "a pipe that is full", before: func(w *fakeWorld) { w.backlog = slowServer }, line: call},
		{name: "half a message in several lines", before: func(w *fakeWorld) { w.client(call); w.server("{") }, line: answer},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := served(t, c.opts)
			if c.before != nil {
				c.before(w)
			}
			var l Lane
			w.b.Lane(&l)
			if got := l.Call([]byte(c.line)); got != c.call {
				t.Errorf("Call = %v, want %v", got, c.call)
			}
			w.b.Lane(&l)
			if got := l.Answer([]byte(c.line)); got != c.answer {
				t.Errorf("Answer = %v, want %v", got, c.answer)
			}
		})
	}
}

// served is a world whose legacy client and server have shaken hands.
func served(t *testing.T, opts Options) *fakeWorld {
	t.Helper()
	w := newWorld(opts)
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	w.server(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`)
	w.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

// A call and its answer may both go ahead before the backend has seen either.
func TestLaneOfACallLetsItsAnswerThrough(t *testing.T) {
	w := served(t, Options{})
	var l Lane
	w.b.Lane(&l)
	call := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"work"}}`)
	answer := []byte(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	if l.Answer(answer) {
		t.Error("an answer may pass that nobody waits for")
	}
	if !l.Call(call) || l.Call(call) {
		t.Error("a call may pass once")
	}
	if !l.Answer(answer) || l.Answer(answer) {
		t.Error("its answer may pass once")
	}
}

func BenchmarkLane(b *testing.B) {
	w := newWorld(Options{})
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	w.server(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`)
	call := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"work","arguments":{"n":1}}}`)
	var l Lane
	b.ReportAllocs()
	for b.Loop() {
		w.b.Lane(&l)
		if !l.Call(call) {
			b.Fatal("refused")
		}
	}
}

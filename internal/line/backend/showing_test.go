package backend

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// watchedWorld is a backend whose messages are watched.
func watchedWorld(opts Options, bodies bool) (*fakeWorld, *tap.Reader) {
	opts.Name, opts.Command, opts.Tap = "srv", []string{"srv"}, &tap.Tap{}
	return newWorld(opts), opts.Tap.Open(tap.Options{Bodies: bodies})
}

// shownLines is what a reader has seen since the last call, each message in short: who, to whom, what, and what came of it.
func shownLines(t *testing.T, r *tap.Reader) (lines []string) {
	t.Helper()
	var b tap.Batch
	if n := r.Take(&b); n > 0 {
		t.Errorf("%d messages left out", n)
	}
	for i := range b.Messages {
		m, err := tap.Parse(b.Messages[i].AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		words := []string{fmt.Sprintf("%s>%s", m.From, m.To), string(m.Kind), m.Method}
		for _, word := range []string{m.Target, string(m.ID)} {
			if word != "" {
				words = append(words, word)
			}
		}
		if m.Note != "" {
			words = append(words, "("+m.Note+")")
		}
		if c := m.Call; c != nil {
			words = append(words, fmt.Sprintf("= %s after %v ms, %d sent", c.Outcome, c.DurationMS, c.Sends))
			if c.HeldMS > 0 {
				words = append(words, fmt.Sprintf("held %v ms", c.HeldMS))
			}
			if c.Code != 0 {
				words = append(words, fmt.Sprint(c.Code))
			}
			words = append(words, c.Reason)
		}
		lines = append(lines, strings.TrimSpace(strings.Join(words, " ")))
	}
	return lines
}

func wantShown(t *testing.T, r *tap.Reader, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, shownLines(t, r)); diff != "" {
		t.Error(diff)
	}
}

const (
	sayInitialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"tester","version":"1"}}}`
	initializeDone = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`
	sayInitialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func handshakeOf(w *fakeWorld) {
	w.b.Open(w.now)
	w.client(sayInitialize)
	w.server(initializeDone)
	w.client(sayInitialized)
}

// Whoever watches sees each message once, with what became of it.
func TestMessagesAreShown(t *testing.T) {
	w, r := watchedWorld(Options{}, false)
	handshakeOf(w)
	wantShown(t, r,
		"client>server request initialize 0",
		"server>client result initialize 0 (changed) = ok after 0 ms, 1 sent",
		"client>server notification notifications/initialized",
	)
	w.client(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{},"_meta":{"progressToken":5}}}`)
	w.now = w.now.Add(2500 * time.Microsecond)
	w.server(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}`)
	w.server(`{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}`)
	w.client(`{"jsonrpc":"2.0","id":"a","method":"resources/read","params":{"uri":"file:///x"}}`)
	w.server(`{"jsonrpc":"2.0","id":"a","error":{"code":-32002,"message":"no such resource"}}`)
	w.server(`{"jsonrpc":"2.0","id":9,"method":"roots/list"}`)
	w.client(`{"jsonrpc":"2.0","id":9,"result":{"roots":[]}}`)
	w.server(`{"jsonrpc":"2.0","id":77,"result":{}}`)
	w.client(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}`)
	w.client(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	w.client(`{"id":3,"method":"ping"}`)
	wantShown(t, r,
		"client>server request tools/call echo 1",
		"server>client notification notifications/progress",
		"server>client result tools/call echo 1 = tool_error after 2.5 ms, 1 sent",
		"client>server request resources/read file:///x \"a\"",
		"server>client error resources/read file:///x \"a\" = error after 0 ms, 1 sent -32002",
		"server>client request roots/list 9",
		"client>server result  9",
		"server>outlive result  77 (dropped)",
		"client>server request tools/call slow 2",
		"client>server notification notifications/cancelled 2 = cancelled after 0 ms, 1 sent",
		"client>outlive invalid  (not a message)",
		"outlive>client error  3",
	)
}

// A crash: what waits, what is sent again, what is lost, and what outlive says itself.
func TestWhatOutliveDoesIsShown(t *testing.T) {
	w, r := watchedWorld(Options{}, false)
	handshakeOf(w)
	shownLines(t, r)
	w.client(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write"}}`)
	w.client(`{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`)
	w.exit(139)
	w.client(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo"}}`)
	w.now = w.now.Add(2 * time.Second)
	w.tick(0)
	got := shownLines(t, r)
	want := []string{
		"client>server request tools/call write 1",
		"client>server request prompts/list 2",
		"outlive>client result tools/call write 1 = unknown after 0 ms, 1 sent server_restarted",
		`outlive>server request initialize 1500000001`,
		"client>outlive request tools/call echo 3 (held)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	w.server(`{"jsonrpc":"2.0","id":1500000001,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`)
	w.now = w.now.Add(time.Second)
	w.server(`{"jsonrpc":"2.0","id":2,"result":{"prompts":[]}}`)
	w.server(`{"jsonrpc":"2.0","id":3,"result":{"content":[]}}`)
	wantShown(t, r,
		`server>outlive result initialize 1500000001`,
		"outlive>server notification notifications/initialized",
		"outlive>server request prompts/list 2 (sent again)",
		"outlive>server request tools/call echo 3 (sent late)",
		"server>client result prompts/list 2 = ok after 3000 ms, 2 sent",
		"server>client result tools/call echo 3 = ok after 3000 ms, 1 sent held 2000 ms",
	)
	w.client(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	w.exit(139)
	w.client(`{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	wantShown(t, r,
		"client>server request ping 4",
		"client>outlive request ping 5",
		"outlive>client result ping 5 = ok after 0 ms, 0 sent",
	)
}

// A modern client says with each request who it is; what traces need is shown with the end of each call.
func TestModernCallsAreShown(t *testing.T) {
	w, r := watchedWorld(Options{}, false)
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"modern","version":"2"},"io.modelcontextprotocol/clientCapabilities":{},"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}`)
	for range 3 {
		for _, line := range w.takeServer() {
			id := line[strings.Index(line, `"id":`)+5:]
			w.server(`{"jsonrpc":"2.0","id":` + id[:strings.IndexAny(id, ",}")] + `,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
		}
	}
	var b tap.Batch
	r.Take(&b)
	last, err := tap.Parse(b.Messages[len(b.Messages)-1].AppendJSON(nil))
	if err != nil {
		t.Fatal(err)
	}
	if last.Call == nil || last.Client != "modern" || last.Server != "srv" || last.Call.Version != "2026-07-28" ||
		last.Call.Traceparent != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" || last.Call.Started != epoch {
		t.Errorf("%s", b.Messages[len(b.Messages)-1].AppendJSON(nil))
	}
}

// Watching costs a call no allocation either, once there is room for its messages.
func TestShowingAllocatesNothing(t *testing.T) {
	b, w := readyBackend()
	b.opts.Tap = &tap.Tap{}
	request, answer := exchange(benchIDs[0], 200)
	r := b.opts.Tap.Open(tap.Options{})
	var batch tap.Batch
	relay := func() {
		b.ClientLine(w.now, request)
		b.ServerLine(w.now, 0, answer, true)
		r.Take(&batch)
	}
	if got := testing.AllocsPerRun(200, relay); got != 0 {
		t.Errorf("%v allocations for a call and its answer", got)
	}
	r.Close()
	if b.opts.Tap.On() {
		t.Error("still watched")
	}
}

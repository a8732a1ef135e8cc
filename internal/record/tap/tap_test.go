package tap

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 23, 12, 0, 0, 123456000, time.UTC)

// A reader that takes nothing gets the first ones and the number of those that are missing; then it goes on.
func TestASlowReaderIsToldWhatItMissed(t *testing.T) {
	var tp Tap
	r := tp.Open(Options{})
	defer r.Close()
	say := func(id int) { tp.Put(&Message{ID: fmt.Append(nil, id)}) }
	for id := range readerMessages + 12 {
		say(id)
	}
	var b Batch
	if lost := r.Take(&b); lost != 12 || len(b.Messages) != readerMessages {
		t.Fatalf("%d messages and %d left out", len(b.Messages), lost)
	}
	for id, m := range b.Messages {
		if string(m.ID) != fmt.Sprint(id) {
			t.Fatalf("message %d is %s", id, m.ID)
		}
	}
	say(7)
	if lost := r.Take(&b); lost != 0 || len(b.Messages) != 1 || string(b.Messages[0].ID) != "7" {
		t.Fatalf("%d messages and %d left out after that", len(b.Messages), lost)
	}
}

// Bodies are bounded by their bytes; one that is longer than all of the room is still shown where nothing waits.
func TestBodiesAreBounded(t *testing.T) {
	var tp Tap
	with, without := tp.Open(Options{Bodies: true}), tp.Open(Options{})
	defer with.Close()
	defer without.Close()
	body := []byte(`"` + strings.Repeat("x", readerBytes) + `"`)
	for range 3 {
		tp.Put(&Message{Body: body})
	}
	var b Batch
	if lost := with.Take(&b); lost != 2 || len(b.Messages) != 1 || len(b.Messages[0].Body) != len(body) {
		t.Errorf("%d messages and %d left out", len(b.Messages), lost)
	}
	if lost := without.Take(&b); lost != 0 || len(b.Messages) != 3 || b.Messages[0].Body != nil {
		t.Errorf("without bodies: %d messages and %d left out", len(b.Messages), lost)
	}
}

// A message is the caller's again after Put, and nobody watches after the last Close. Several may watch different servers.
func TestReadersAreApart(t *testing.T) {
	var none *Tap
	if none.On() || none.Connect() != 0 {
		t.Error("a tap that nobody can watch is watched")
	}
	var tp Tap
	if tp.On() {
		t.Error("watched at once")
	}
	one, all := tp.Open(Options{Server: "one"}), tp.Open(Options{})
	id := []byte(`1`)
	for _, server := range []string{"one", "two"} {
		tp.Put(&Message{Server: server, ID: id})
		id[0]++
	}
	var a, b Batch
	one.Take(&a)
	all.Take(&b)
	if len(a.Messages) != 1 || string(a.Messages[0].ID) != "1" || len(b.Messages) != 2 || string(b.Messages[1].ID) != "2" {
		t.Errorf("%v, %v", a.Messages, b.Messages)
	}
	one.Close()
	one.Close()
	if !tp.On() {
		t.Error("not watched while one reader is left")
	}
	all.Close()
	if tp.On() {
		t.Error("watched by nobody")
	}
}

// Several loops, and readers that come and go.
func TestManyGoroutines(t *testing.T) {
	var tp Tap
	const each, writers = 2000, 4
	counting := tp.Open(Options{})
	defer counting.Close()
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			for i := range each {
				tp.Put(&Message{Server: fmt.Sprint(n), ID: fmt.Append(nil, i), Method: []byte(`"ping"`)})
			}
		})
		all.Go(func() {
			for range 100 {
				r := tp.Open(Options{Bodies: true})
				var b Batch
				r.Take(&b)
				r.Close()
			}
		})
	}
	all.Wait()
	var b Batch
	if lost := counting.Take(&b); lost+len(b.Messages) != each*writers {
		t.Errorf("%d messages and %d left out", len(b.Messages), lost)
	}
}

func TestMessagesAreReadBackAsTheyWere(t *testing.T) {
	m := Message{
		At: noon, Server: "srv", Client: `a "client" é`, Connection: 3, From: Server, To: Client, Kind: Error, Method: []byte(`"tools/call"`),
		Target: []byte(`"echo"`), ID: []byte(`"x-1"`), Size: 42, Generation: 2, Note: NoteChanged, Ends: true,
		Call: Call{
			Started: noon.Add(-time.Second), Took: 1500250 * time.Microsecond, Held: time.Millisecond, Sends: 2, Outcome: Failed, Code: []byte(`-32602`),
			Reason: "r", Version: "2025-11-25", Traceparent: []byte(`"00-x-y-01"`),
		},
		Body: []byte(`{"token":"abc","n":12345678901234567890}`),
	}
	want := Record{
		Timestamp: noon, Server: "srv", Client: `a "client" é`, Connection: 3, From: Server, To: Client, Kind: Error, Method: "tools/call", Target: "echo",
		ID: json.RawMessage(`"x-1"`), Size: 42, Generation: 2, Note: NoteChanged,
		Call: &CallRecord{
			Started: noon.Add(-time.Second), DurationMS: 1500.25, HeldMS: 1, Sends: 2, Outcome: Failed, Code: -32602, Reason: "r",
			Version: "2025-11-25", Traceparent: "00-x-y-01",
		},
		Body: json.RawMessage(`{"token":"[redacted]","n":12345678901234567890}`),
	}
	got, err := Parse(m.AppendJSON(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// What a client says may be no string where one is expected.
	odd := Message{Method: []byte(`"tools/call"`), Target: []byte(`{"a":1}`), Ends: true, Call: Call{Traceparent: []byte(`7`)}, Body: []byte("no JSON \xff, password=hunter2")}
	if got, err = Parse(odd.AppendJSON(nil)); err != nil || got.Target != "" || got.Call.Traceparent != "" {
		t.Errorf("%s: %v", odd.AppendJSON(nil), err)
	}
	var body string
	if err := json.Unmarshal(got.Body, &body); err != nil || body != "no JSON \ufffd, password=[redacted]" {
		t.Errorf("body %s: %v", got.Body, err)
	}
	for _, code := range []string{`"ENOENT"`, `-32000.0`, `1e3`, `null`, `{}`, `12345678901234567890`} { // nor does a server always say a whole number
		odd := Message{Kind: Error, Ends: true, Call: Call{Outcome: Failed, Code: []byte(code)}}
		if got, err := Parse(odd.AppendJSON(nil)); err != nil || got.Call.Code != 0 || got.Call.Outcome != Failed {
			t.Errorf("%s: %v", odd.AppendJSON(nil), err)
		}
	}
	if got, err = Parse(AppendLeftOut(nil, noon, 12)); err != nil || got.LeftOut != 12 || !got.Bad() {
		t.Errorf("%v, %v", got, err)
	}
}

func BenchmarkPut(b *testing.B) {
	var tp Tap
	r := tp.Open(Options{})
	defer r.Close()
	m := Message{Server: "srv", Client: "c", From: Client, To: Server, Kind: Request, Method: []byte(`"tools/call"`), Target: []byte(`"echo"`), ID: []byte(`7`)}
	var batch Batch
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		tp.Put(&m)
		if n%500 == 0 {
			r.Take(&batch)
		}
	}
}

// A record is given to others: what it is about and its id are shown without secrets.
func TestSecretsInTargetAndID(t *testing.T) {
	m := Message{Kind: Request, Method: []byte(`"resources/read"`), Target: []byte(`"https://ada:hunter2@host/x?token=abc123def"`), ID: []byte(`"https://ada:hunter2@host"`)}
	line := string(m.AppendJSON(nil))
	if strings.Contains(line, "hunter2") || strings.Contains(line, "abc123def") || !strings.Contains(line, "https://ada:[redacted]@host/x") {
		t.Error(line)
	}
}

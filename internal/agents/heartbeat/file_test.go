package heartbeat

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

var night = time.Date(2026, 11, 21, 2, 0, 0, 123456000, time.UTC)

func ptr[T any](v T) *T { return &v }

func TestWriteAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hb")
	want := Observation{
		Agent: "shop", Wall: night, Kind: Beat, State: Working, Note: "phase 3: the till", Phase: ptr(0),
		Progress: Progress{Done: 4, Total: 9}, PID: 4242, Start: 1<<63 + 7, Next: 10 * time.Minute,
	}
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "shop.json"))
	if err != nil {
		t.Fatal(err)
	}
	form := `{"v":1,"t":"2026-11-21T02:00:00.123456Z","state":"working","phase":0,"progress":{"done":4,"total":9},"note":"phase 3: the till","pid":4242,"start":"9223372036854775815","next":"10m0s"}` + "\n"
	if diff := cmp.Diff(form, string(text)); diff != "" {
		t.Error(diff)
	}
	got, err := ReadFile(filepath.Join(dir, "shop.json"))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	half := filepath.Join(dir, "half.json")
	if err := os.WriteFile(half, []byte(form[:40]), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(half); !errors.Is(err, ErrNoBeat) || !strings.Contains(err.Error(), "half.json") {
		t.Errorf("half a file: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"shop", "a", "A-1_b.c", strings.Repeat("x", 64), "console", "con1"} {
		if err := ValidName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "a b", "-x", ".hidden", "a.", strings.Repeat("x", 65), "con", "NUL", "com1.x", "Lpt9", "é", "a\x00b", "a\n"} {
		if ValidName(name) == nil {
			t.Errorf("%q is taken", name)
		}
		if err := Write(t.TempDir(), Observation{Agent: name, Wall: night}); err == nil {
			t.Errorf("%q is written", name)
		}
	}
}

// Of any file, only valid values are used.
func TestParse(t *testing.T) {
	at := time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)
	own := Observation{Agent: "a", Kind: Beat, Wall: at}
	with := func(o Observation, change func(*Observation)) Observation { change(&o); return o }
	for _, tc := range []struct {
		name, text string
		want       Observation
	}{
		{"time only", `{"v":1,"t":"2026-11-21T02:00:00Z"}`, own},
		{"a later version", `{"v":7,"t":"2026-11-21T02:00:00Z","state":"idle","more":{"a":[1]}}`, with(own, func(o *Observation) { o.State = Idle })},
		{"seconds", `{"t":1795226400}`, own},
		{"milliseconds in quotes", `{"t":"1795226400000"}`, own},
		{"another zone", `{"t":"2026-11-21T03:00:00+01:00"}`, own},
		{"nonsense beside the time", `{"t":"2026-11-21T02:00:00Z","state":"dancing","phase":-1,"progress":7,"note":[],"pid":-4,"start":"x","next":"soon"}`, own},
		{"start without a process", `{"t":"2026-11-21T02:00:00Z","start":"5"}`, own},
		{"start as a number", `{"t":"2026-11-21T02:00:00Z","pid":4,"start":5}`, with(own, func(o *Observation) { o.PID, o.Start = 4, 5 })},
		{"too long a promise", `{"t":"2026-11-21T02:00:00Z","next":"1000h"}`, with(own, func(o *Observation) { o.Next = LongestPromise })},
		{"a promise of the past", `{"t":"2026-11-21T02:00:00Z","next":"-5m"}`, own},
		{"a note that a terminal obeys", `{"t":"2026-11-21T02:00:00Z","note":"a\u001b[2Jb\nc"}`, with(own, func(o *Observation) { o.Note = "a [2Jb" })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Parse("a", []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, text := range []string{"", "{", "null", "[]", "7", `{}`, `{"t":""}`, `{"t":"soon"}`, `{"t":0}`, `{"t":1e300}`, `{"t":null,"state":"working"}`,
		`{"t":"2026-11-21T02:00:00Z"} {}`, `{"t":"0001-01-01T00:00:00Z"}`, `{"status":"running","ts":1795226400}`, `{"timestamp":"2026-11-21T02:00:00Z"}`, strings.Repeat(" ", FileLimit+1)} {
		if got, err := Parse("a", []byte(text)); !errors.Is(err, ErrNoBeat) {
			t.Errorf("%.60q is %+v, %v", text, got, err)
		}
	}
}

// A reader that looks while a writer writes sees a whole sign, always.
func TestNeverHalfASign(t *testing.T) {
	dir := t.TempDir()
	o := Observation{Agent: "a", Wall: night, Note: strings.Repeat("x", NoteLimit)}
	if err := Write(dir, o); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 200 {
				if err := Write(dir, o); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for reads := 0; ; reads++ {
		if found, err := ReadFile(filepath.Join(dir, "a.json")); err != nil || len(found.Note) != NoteLimit {
			t.Fatalf("after %d reads: %v, %v", reads, found, err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// What is written is read back as it was.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		want := Observation{
			Agent: "a", Kind: Beat,
			Wall:     time.UnixMicro(rapid.Int64Range(1e15, 4e15).Draw(rt, "wall")).UTC(),
			State:    rapid.SampledFrom([]State{"", Working, Waiting, Idle, Stuck, Exiting, Done}).Draw(rt, "state"),
			Note:     oneLine(rapid.String().Draw(rt, "note")),
			Progress: Progress{Done: rapid.IntRange(0, 1e6).Draw(rt, "done"), Total: rapid.IntRange(0, 1e6).Draw(rt, "total")},
			PID:      rapid.IntRange(1, 1<<22).Draw(rt, "pid"),
			Start:    rapid.Uint64().Draw(rt, "start"),
			Next:     time.Duration(rapid.Int64Range(0, int64(LongestPromise)).Draw(rt, "next")),
		}
		if rapid.Bool().Draw(rt, "phase") {
			want.Phase = ptr(rapid.IntRange(0, 99).Draw(rt, "number"))
		}
		if err := Write(dir, want); err != nil {
			rt.Fatal(err)
		}
		got, err := ReadFile(filepath.Join(dir, "a.json"))
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"v":1,"t":"2026-11-21T02:00:00Z","state":"working","phase":3,"progress":{"done":4,"total":9},"note":"n","pid":1,"start":"2","next":"10m"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := Parse("a", text)
		if err != nil {
			if !errors.Is(err, ErrNoBeat) {
				t.Fatal(err)
			}
			return
		}
		checkBounds(t, o)
		if y := o.Wall.Year(); y < 1999 || y > 2201 || o.Wall.IsZero() {
			t.Fatalf("a time nobody has: %v", o.Wall)
		}
	})
}

// checkBounds checks what must hold for every observation.
func checkBounds(t *testing.T, o Observation) {
	t.Helper()
	if len(o.Note) > NoteLimit || strings.ContainsAny(o.Note, "\n\x1b\x00") {
		t.Fatalf("note %q", o.Note)
	}
	if o.Next < 0 || o.Next > LongestPromise || o.PID < 0 || o.Progress.Done < 0 || o.Phase != nil && *o.Phase < 0 || o.Exit != nil && (*o.Exit < 0 || *o.Exit > 255) {
		t.Fatalf("out of bounds: %+v", o)
	}
	if o.Agent == "" || o.Kind == "" {
		t.Fatalf("half an observation: %+v", o)
	}
}

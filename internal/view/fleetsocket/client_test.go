package fleetsocket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/view/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// member is one that answers as h does.
func member(t *testing.T, h http.HandlerFunc) Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "fs") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l, err := control.ListenAt(path)
	if err != nil {
		t.Fatal(err)
	}
	s := http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done; _ = os.RemoveAll(dir) })
	return Client{Path: path}
}

// says writes lines, and ends.
func says(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range lines {
			fmt.Fprintln(w, line)
		}
	}
}

// dies writes lines, and is killed.
func dies(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		says(lines...)(w, r)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// text is v as JSON.
func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// endingOf is the ending that an error is.
func endingOf(t *testing.T, err error, word string) *Ending {
	t.Helper()
	var e *Ending
	if !errors.As(err, &e) || e.Word != word {
		t.Fatalf("the error is %v, want %s", err, word)
	}
	return e
}

// Where no member listens everything says so, and what to do.
func TestNoMember(t *testing.T) {
	c := Client{Path: filepath.Join(t.TempDir(), "s")}
	ctx := t.Context()
	_, status := c.Status(ctx)
	_, run := c.Run(ctx, Command{}, nil, nil)
	for what, err := range map[string]error{
		"status": status, "run": run, "leave": c.Leave(ctx), "follow": c.Follow(ctx, "b", "", nil),
	} {
		if e := endingOf(t, err, NoMember); !strings.Contains(e.Error(), "outlive fleet join") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What a member refuses is said as it says it.
func TestRefused(t *testing.T) {
	c := member(t, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "bad request: "+r.Method+" "+r.URL.Path, http.StatusBadRequest)
	})
	ctx := t.Context()
	_, run := c.Run(ctx, Command{}, nil, nil)
	for err, want := range map[error]string{
		run: "POST /v1/run", c.Leave(ctx): "POST /v1/leave", c.Follow(ctx, "b", "", nil): "GET /v1/follow",
	} {
		if err == nil || !strings.Contains(err.Error(), "the member of this machine: bad request: "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A status is read as it was written, members that are not known passed over.
func TestStatus(t *testing.T) {
	want := Status{
		Host: "a", Connected: true, Since: time.Now().UTC().Truncate(time.Second), Hosts: []Host{{Name: "b", State: Silent, How: Gone}},
		Cases: []Case{{Kind: "silent", Subject: "b", How: Gone, By: "a", State: Told}},
	}
	got, err := member(t, says(strings.Replace(text(t, want), "{", `{"later":{"x":1},`, 1))).Status(t.Context())
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for _, broken := range []string{"", "{", "[]"} {
		if _, err := member(t, says(broken)).Status(t.Context()); err == nil {
			t.Errorf("%q is a status", broken)
		}
	}
}

// The lines of a machine are handed on byte for byte, also long ones; its end is the error, with where to go on.
func TestFollow(t *testing.T) {
	long := `{"state":"` + strings.Repeat("x", 3<<20) + `"}`
	end := Ending{Word: Silent, Why: "nothing is heard", From: time.Now().UTC().Truncate(time.Second), Position: "i:7"}
	var asked string
	c := member(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("host") + " " + r.URL.Query().Get("after")
		says(`{"a":1}`, long, string(EndedLine(&end)))(w, r)
	})
	var got []string
	err := c.Follow(t.Context(), "b&c=d", "i:5", func(line []byte) { got = append(got, string(line)) })
	if d := cmp.Diff(&end, endingOf(t, err, Silent)); d != "" {
		t.Error(d)
	}
	if len(got) != 2 || got[0] != `{"a":1}` || got[1] != long || asked != "b&c=d i:5" {
		t.Errorf("%d lines, asked for %q", len(got), asked)
	}
	for what, h := range map[string]http.HandlerFunc{"it ends": says(`{"a":1}`), "it is killed": dies(`{"a":1}`), "a broken end": says(`{"ended":7}`)} {
		err := member(t, h).Follow(t.Context(), "b", "", func([]byte) {})
		if e := endingOf(t, err, NoMember); e.Position != "" {
			t.Errorf("%s: %+v", what, e)
		}
	}
	got = nil
	err = member(t, dies(string(PositionLine("i:5")), `{"a":1}`, string(PositionLine("i:6")))).Follow(t.Context(), "b", "", func(line []byte) { got = append(got, string(line)) })
	if e := endingOf(t, err, NoMember); e.Position != "i:6" || len(got) != 1 {
		t.Errorf("of a member that is killed: %+v after %q", e, got)
	}
}

// hangs answers nothing more after its first lines.
func hangs(begun chan<- struct{}, lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice that who asks has gone
		says(lines...)(w, r)
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
	}
}

// Who asks no more is let go, with its own reason.
func TestCancelled(t *testing.T) {
	why := errors.New("enough")
	for what, ask := range map[string]func(context.Context, Client) error{
		"follow": func(ctx context.Context, c Client) error { return c.Follow(ctx, "b", "", func([]byte) {}) },
		"run": func(ctx context.Context, c Client) error {
			_, err := c.Run(ctx, Command{}, &bytes.Buffer{}, &bytes.Buffer{})
			return err
		},
	} {
		begun := make(chan struct{})
		c := member(t, hangs(begun, `{"out":""}`))
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { <-begun; cancel(why) }()
		if err := ask(ctx, c); !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What a command writes is handed on, both streams, and how it has ended.
func TestRun(t *testing.T) {
	three := 3
	frames := []string{text(t, Frame{Out: []byte("outlive v1\n")}), text(t, Frame{Out: []byte("\x00\xff"), Err: []byte("no")}), text(t, Frame{Exit: &three})}
	var asked Command
	c := member(t, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&asked)
		says(frames...)(w, r)
	})
	var out, errs bytes.Buffer
	want := Command{Host: "b", Args: []string{"restart", "x y"}}
	exit, err := c.Run(t.Context(), want, &out, &errs)
	if err != nil || exit != 3 || out.String() != "outlive v1\n\x00\xff" || errs.String() != "no" {
		t.Errorf("exit status %d, %v, %q, %q", exit, err, out.String(), errs.String())
	}
	if d := cmp.Diff(want, asked); d != "" {
		t.Error(d)
	}
	for word, h := range map[string]http.HandlerFunc{
		NoAnswer: says(frames[0], text(t, Frame{Ended: &Ending{Word: NoAnswer, Why: "no answer"}})),
		NoMember: says(frames[0]), // its end is missing
	} {
		_, err := member(t, h).Run(t.Context(), want, &out, &errs)
		endingOf(t, err, word)
	}
	if _, err := member(t, dies(frames[0])).Run(t.Context(), want, &out, &errs); err == nil {
		t.Error("a command whose member was killed has an exit status")
	}
	if _, err := member(t, says(frames...)).Run(t.Context(), want, full{}, &errs); !errors.Is(err, errFull) {
		t.Errorf("what could not be handed on: %v", err)
	}
}

var errFull = errors.New("no space")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// A machine that says nothing is told of with since when, and with what was found out about it.
func TestSilentFor(t *testing.T) {
	at := time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)
	for how, want := range map[string]string{
		"": "it is off, cut off, or its member does not run", Gone: "it is gone", CutOff: "it is cut off, asleep or off", "of a later version": "it is off, cut off, or",
	} {
		e := SilentFor("b", at, how)
		if !strings.Contains(e.Why, "since 2026-03-02 02:00:00 UTC: "+want) || !e.Since().Equal(at) || e.Word != Silent {
			t.Errorf("%q: %+v", how, e)
		}
	}
	if e := SilentFor("b", time.Time{}, Gone); e.Why != "nothing was heard of b yet" || !e.Since().IsZero() {
		t.Errorf("%+v", e)
	}
}

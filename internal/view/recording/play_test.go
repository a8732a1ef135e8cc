package recording

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/record/tap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// said is a recorded message.
func said(from, to tap.Party, kind tap.Kind, method, id, body string) tap.Record {
	return tap.Record{Timestamp: noon, Connection: 1, From: from, To: to, Kind: kind, Method: method, ID: json.RawMessage(id), Body: json.RawMessage(body)}
}

// request and answer are of the client, and of the server.
func request(id, method, params string) tap.Record {
	return said(tap.Client, tap.Server, tap.Request, method, id, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
}

func answer(id, method, result string) tap.Record {
	m := said(tap.Server, tap.Client, tap.Result, method, id, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
	m.Call = &tap.CallRecord{Outcome: tap.OK, Sends: 1, DurationMS: 5}
	return m
}

// play plays a recording against a server that answers each line with what answers returns, "" is its end, and returns what the server
// was told and what came of it.
func play(t *testing.T, messages []tap.Record, o Options, answers func(line string) string) (heard []string, came []Answer, err error) {
	t.Helper()
	s, err := (&Recording{Messages: messages}).Script(0)
	if err != nil {
		t.Fatal(err)
	}
	hears, says := io.Pipe()
	out, in := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer in.Close()
		defer hears.Close()
		lines := bufio.NewScanner(hears)
		for lines.Scan() {
			heard = append(heard, lines.Text())
			if strings.Contains(lines.Text(), `"method":"notifications/`) {
				continue
			}
			text := answers(lines.Text())
			if text == "" {
				return
			}
			if _, err := io.WriteString(in, text+"\n"); err != nil {
				return
			}
		}
	}()
	err = s.Play(t.Context(), says, out, o, func(a Answer) error {
		a.TookMS = 0
		came = append(came, a)
		return nil
	})
	_ = says.Close()
	_ = out.Close()
	<-done
	return heard, came, err
}

// resultFor is an answer with the id of a request.
func resultFor(line, result string) string {
	var m struct{ ID json.RawMessage }
	_ = json.Unmarshal([]byte(line), &m)
	return fmt.Sprintf(`{"result":%s,"id":%s,"jsonrpc":"2.0"}`, result, m.ID)
}

// Requests are played in order, with ids of their own and what the client has answered; only their results are compared, by value.
func TestPlay(t *testing.T) {
	lost := said(tap.Outlive, tap.Client, tap.Result, "tools/call", "5", `{"jsonrpc":"2.0","id":5,"result":{}}`)
	lost.Call = &tap.CallRecord{Outcome: tap.Unknown, Sends: 1}
	own := lost
	own.ID, own.Call = json.RawMessage("6"), &tap.CallRecord{Outcome: tap.OK}
	messages := []tap.Record{
		request("0", "initialize", `{}`), answer("0", "initialize", `{"serverInfo":{"name":"s","version":"1"}}`),
		said(tap.Client, tap.Server, tap.Notification, "notifications/initialized", "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`),
		said(tap.Client, tap.Server, tap.Notification, "notifications/roots/list_changed", "", `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`),
		request("1", "tools/call", `{"name":"a","arguments":{"token":"[redacted]"}}`),
		said(tap.Server, tap.Client, tap.Request, "roots/list", `"s"`, `{"jsonrpc":"2.0","id":"s","method":"roots/list"}`),
		said(tap.Client, tap.Server, tap.Result, "", `"s"`, `{"jsonrpc":"2.0","id":"s","result":{"roots":[]}}`),
		answer("1", "tools/call", `{"content":[{"text":"x","type":"text"}],"n":1.0,"big":12345678901234567890}`),
		request("5", "tools/call", `{"name":"b"}`), lost,
		request("6", "tools/call", `{"name":"restart_server"}`), own,
		request("7", "tools/call", `{"name":"c"}`),
	}
	asked := false
	heard, came, err := play(t, messages, Options{}, func(line string) string {
		switch {
		case strings.Contains(line, "initialize"):
			return "noise\n" + resultFor(line, `{"serverInfo":{"version":"2","name":"s"}}`)
		case strings.Contains(line, `"name":"a"`) && !asked:
			asked = true
			return `{"jsonrpc":"2.0","id":77,"method":"roots/list"}`
		case strings.Contains(line, `"roots":[]`):
			return `{"jsonrpc":"2.0","id":3,"result":{"big":12345678901234567891,"n":1,"content":[{"type":"text","text":"x"}]}}`
		}
		return resultFor(line, `{}`)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantHeard := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","arguments":{"token":"[redacted]"}}}`,
		`{"jsonrpc":"2.0","id":77,"result":{"roots":[]}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"b"}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"c"}}`,
	}
	if diff := cmp.Diff(wantHeard, heard); diff != "" {
		t.Error(diff)
	}
	want := []Answer{
		{Method: "initialize", ID: "0", Recorded: noon, WasMS: 5, Differences: []Difference{{"result.serverInfo.version", `"1"`, `"2"`}}},
		{Method: "tools/call", ID: "1", Recorded: noon, WasMS: 5, Hidden: true, Differences: []Difference{{"result.big", "12345678901234567890", "12345678901234567891"}}},
		{Method: "tools/call", ID: "5", Recorded: noon, Uncompared: "the recorded answer is outlive's own"},
		{Method: "tools/call", ID: "7", Recorded: noon, Uncompared: "no answer was recorded"},
	}
	if diff := cmp.Diff(want, came); diff != "" {
		t.Error(diff)
	}
}

// What differs is told by its path, and not if the path is to be ignored.
func TestDifferences(t *testing.T) {
	const was = `{"content":[{"text":"a"},{"text":"b"}],"time":1,"gone":null,"password":"x"}`
	for is, want := range map[string]string{
		was: "",
		`{"content":[{"text":"a"}],"time":1,"gone":null,"password":"y"}`:                   `result.content.1 {"text":"b"}>`,
		`{"content":[{"text":"a"},{"text":"b"},{}],"time":2,"gone":false,"password":1}`:    `result.content.2 >{} result.gone null>false result.time 1>2`,
		`{"content":{},"time":"1","password":"x"}`:                                         `result.content [{"text":"a"},{"text":"b"}]>{} result.gone null> result.time 1>"1"`,
		`{"content":[{"text":"c"},{"text":"d"}],"time":[],"gone":{"a":1},"password":"zz"}`: `result.content.0.text "a">"c" result.content.1.text "b">"d" result.gone null>{"a":1} result.time 1>[]`,
	} {
		for _, ignored := range []string{"", "result.time", "$.result.content[*].text"} {
			o := Options{}
			wanted := want
			if ignored != "" {
				p, err := ParsePath(ignored)
				if err != nil {
					t.Fatal(err)
				}
				o.Ignore = append(o.Ignore, p)
			}
			one := []tap.Record{request("1", "ping", "{}"), answer("1", "ping", string(redacted(was)))}
			_, came, err := play(t, one, o, func(line string) string { return resultFor(line, is) })
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for _, d := range came[0].Differences {
				words = append(words, d.Path+" "+d.Was+">"+d.Is)
			}
			var left []string
			for _, one := range strings.Split(wanted, " result.") {
				one = "result." + strings.TrimPrefix(one, "result.")
				if one == "result." || ignored == "result.time" && strings.HasPrefix(one, "result.time") || strings.HasPrefix(ignored, "$") && strings.Contains(one, ".text ") {
					continue
				}
				left = append(left, one)
			}
			if diff := cmp.Diff(left, words); diff != "" {
				t.Errorf("%s without %q:\n%s", is, ignored, diff)
			}
		}
	}
	for _, bad := range []string{"", "content", "result..x", "result.", "id"} {
		if _, err := ParsePath(bad); err == nil {
			t.Errorf("%q is a path", bad)
		}
	}
}

func redacted(text string) []byte { return []byte(strings.ReplaceAll(text, `"x"`, `"[redacted]"`)) }

// Whoever ends, or says nothing, is told of.
func TestServersThatFail(t *testing.T) {
	messages := []tap.Record{request("1", "ping", "{}"), answer("1", "ping", "{}"), request("2", "ping", "{}"), answer("2", "ping", "{}")}
	n := 0
	_, came, err := play(t, messages, Options{}, func(line string) string {
		if n++; n == 2 {
			return ""
		}
		return resultFor(line, "{}")
	})
	if !errors.Is(err, ErrEnded) || len(came) != 1 {
		t.Errorf("%v after %d", err, len(came))
	}
	synctest.Test(t, func(t *testing.T) {
		_, came, err := play(t, messages, Options{Timeout: 3 * time.Second}, func(string) string { return `{"jsonrpc":"2.0","id":99,"result":{}}` })
		if err == nil || !strings.Contains(err.Error(), "no answer within 3s") || len(came) != 0 {
			t.Errorf("%v after %d", err, len(came))
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := (&Recording{Messages: messages}).Script(1)
	if err != nil {
		t.Fatal(err)
	}
	out, in := io.Pipe()
	defer in.Close()
	if err := s.Play(ctx, io.Discard, out, Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A server that reads nothing ends the replay in time. One that has much to say first is heard before it reads.
func TestServersThatDoNotRead(t *testing.T) {
	s, err := (&Recording{Messages: []tap.Record{request("1", "ping", "{}"), answer("1", "ping", "{}")}}).Script(0)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		hears, says := io.Pipe()
		out, in := io.Pipe()
		err := s.Play(t.Context(), says, out, Options{Timeout: 3 * time.Second}, nil)
		if err == nil || !strings.Contains(err.Error(), "it has not read a message within 3s") {
			t.Error(err)
		}
		_, _ = hears.Close(), in.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		hears, says := io.Pipe()
		out, in := io.Pipe()
		go func() {
			defer in.Close()
			for range 3 {
				_, _ = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/message"}`+"\n")
			}
			lines := bufio.NewScanner(hears)
			lines.Scan()
			_, _ = io.WriteString(in, resultFor(lines.Text(), "{}")+"\n")
		}()
		n := 0
		if err := s.Play(t.Context(), says, out, Options{}, func(Answer) error { n++; return nil }); err != nil || n != 1 {
			t.Errorf("%v after %d", err, n)
		}
		_, _ = says.Close(), out.Close()
	})
}

// A gateway asks its servers for initialize itself: that is the handshake of such a recording.
func TestTheHandshakeOfAGateway(t *testing.T) {
	greet, greeted := request("1", "initialize", "{}"), answer("1", "initialize", "{}")
	greet.From, greeted.To, greeted.Call = tap.Outlive, tap.Outlive, nil
	again := greet
	again.ID = json.RawMessage(`"~p1.1"`)
	_, came, err := play(t, []tap.Record{greet, greeted, again, request("2", "ping", "{}"), answer("2", "ping", "{}")}, Options{}, func(line string) string {
		return resultFor(line, "{}")
	})
	if err != nil || len(came) != 2 || came[0].Method != "initialize" || came[0].Uncompared != "" || came[1].Method != "ping" {
		t.Errorf("%+v, %v", came, err)
	}
}

// A handshake that was shown once more, to somebody who has begun to look, is played once.
func TestTheHandshakeShownAgain(t *testing.T) {
	greet, greeted := request(`"~session"`, "initialize", "{}"), answer(`"~session"`, "initialize", "{}")
	greet.Note, greeted.Note = tap.NoteEarlier, tap.NoteEarlier
	heard, came, err := play(t, []tap.Record{greet, greeted, request("1", "ping", "{}"), answer("1", "ping", "{}"), greet, greeted, request("2", "ping", "{}"), answer("2", "ping", "{}")},
		Options{}, func(line string) string { return resultFor(line, "{}") })
	if err != nil || len(came) != 3 || strings.Count(strings.Join(heard, "\n"), `"method":"initialize"`) != 1 {
		t.Errorf("%q, %+v, %v", heard, came, err)
	}
}

func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	w, err := Create(path, Header{Name: "srv", RecordedAt: noon})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, Header{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("a recording that is there: %v", err)
	}
	for _, line := range []string{`{"timestamp":"2026-11-23T12:00:00Z","method":"ping","generation":1}`, `{"timestamp":"2026-11-23T12:00:00Z","left_out":12}`, `{"tim`} {
		if err := w.Add([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil || w.Messages() != 3 {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-1], 0o600); err != nil { // as a full disk leaves it
		t.Fatal(err)
	}
	r, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := &Recording{
		Header:   Header{Version: version, Name: "srv", RecordedAt: noon},
		Messages: []tap.Record{{Timestamp: noon, Method: "ping", Generation: 1}}, LeftOut: 12,
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	w.size = most
	if err := w.Add([]byte("{}")); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}

package diagnose

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

func line(t testing.TB, agent string, e Evidence, v Diagnosis) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteLine(&b, Line{At: time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC), Agent: agent, Evidence: e, Diagnosis: v}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// always judges every agent by one policy.
func always(p Policy) func(string) Policy { return func(string) Policy { return p } }

// All other lines of a log that was truncated by a kill, or damaged, are used.
func TestReplay(t *testing.T) {
	e := heard(hour, Dead)
	was := Classify(e, PIV(0))
	reworded := was
	reworded.Details, reworded.Doubt = "in other words", "and another doubt"
	before := Diagnosis{Rule: "H5", Class: HeartbeatLost, Stall: Hung, Confidence: Medium, Tier: Guess}
	log := line(t, "shop", e, was) +
		line(t, "shop", e, reworded) +
		line(t, "blog", e, before) +
		"\n" +
		"{\"agent\":\"api\",\"evidence\":{\"beat\":{\"age\":\"soon\"}}}\n" +
		"{}\n" +
		strings.Repeat("x", maxLine+1) + "\n" +
		line(t, "shop", e, was) +
		line(t, "shop", e, was)[:40]
	report, err := Replay(strings.NewReader(log), always(PIV(0)))
	if err != nil {
		t.Fatal(err)
	}
	if report.Judged != 4 || report.Unchanged != 3 || report.Changed != 1 || report.Unusable != 4 {
		t.Errorf("%+v", report)
	}
	if len(report.Differences) != 1 || report.Differences[0].Line != 3 || report.Differences[0].Agent != "blog" || report.Differences[0].Judged.Class != Crashed {
		t.Errorf("%+v", report.Differences)
	}
	var lines []int
	for _, f := range report.Faults {
		lines = append(lines, f.Line)
	}
	if diff := cmp.Diff([]int{5, 6, 7, 9}, lines); diff != "" {
		t.Error(diff)
	}
	text := report.String()
	for _, want := range []string{"4 looks judged again: 3 unchanged, 1 changed, 4 unusable lines", "line 3, 2026-11-21T02:00:00Z, blog: was H5 heartbeat_lost (medium, X), is R2 crashed (high, P)", "PID 7 is dead"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestReplayEach(t *testing.T) {
	e := heard(10*minute, Alive)
	log := line(t, "shop", e, Classify(e, PIV(0))) + line(t, "blog", e, Classify(e, Policy{}))
	report, err := Replay(strings.NewReader(log), func(agent string) Policy {
		if agent == "shop" {
			return PIV(0)
		}
		return Policy{}
	})
	if err != nil || report.Changed != 0 || report.Judged != 2 {
		t.Errorf("%v %+v", err, report)
	}
	if report, _ := Replay(strings.NewReader(log), always(PIV(5*time.Minute))); report.Changed != 1 {
		t.Errorf("another threshold changes the first: %+v", report)
	}
}

func TestReplayTellsReadErrors(t *testing.T) {
	e := heard(hour, Dead)
	broken := io.MultiReader(strings.NewReader(line(t, "shop", e, Classify(e, Policy{}))), iotest.ErrReader(os.ErrPermission))
	report, err := Replay(broken, always(Policy{}))
	if !errors.Is(err, os.ErrPermission) || report.Judged != 1 {
		t.Errorf("%v %+v", err, report)
	}
}

func TestReadLogStops(t *testing.T) {
	e := heard(hour, Dead)
	one := line(t, "shop", e, Classify(e, Policy{}))
	n := 0
	for range ReadLog(strings.NewReader(one + one + one)) {
		n++
		break
	}
	if n != 1 {
		t.Error(n)
	}
}

func TestWriteLineTellsErrors(t *testing.T) {
	r, w := io.Pipe()
	_ = r.CloseWithError(os.ErrClosed)
	if err := WriteLine(w, Line{Agent: "shop"}); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), "shop") {
		t.Error(err)
	}
	var b bytes.Buffer
	if err := WriteLine(&b, Line{Agent: strings.Repeat("x", maxLine)}); err == nil || b.Len() > 0 {
		t.Errorf("%v, %d bytes written", err, b.Len())
	}
	if err := WriteLine(&b, Line{Agent: "shop", Action: json.RawMessage("{")}); err == nil || b.Len() > 0 {
		t.Errorf("%v, %d bytes written", err, b.Len())
	}
}

func TestExplain(t *testing.T) {
	e := Evidence{
		Watched: true, Process: Proc{Life: Alive, Detail: "PID 7 is alive"}, Beat: Beat{Has: true, Age: hour},
		Sessions: []Session{{Kind: "claude", Status: agentcli.Busy, Open: agentcli.Tool, Tool: "Bash\x1b[2J\nrm", OpenAge: hour, LastAge: hour}},
	}
	tr := Explain(e, Policy{})
	text := tr.String()
	for _, want := range []string{
		"- it has shown itself since it was started, or nothing is expected of it (R4 starting)\n",
		"- no model has been silent for more than 8m (H1 model_silent)\n",
		"> Bash [2J rm of its claude session has run for 1h0m0s (limit 30m), and does nothing; PID 7 is alive (H2 tool_hung)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "heartbeat_lost") {
		t.Errorf("rules after the one that decides are not asked:\n%s", text)
	}
	var back Trace
	if err := json.Unmarshal([]byte(Encode(t, tr)), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tr, back); diff != "" {
		t.Errorf("as JSON: %s", diff)
	}
	i := len(back.Steps) - 3 // heartbeat_lost, which would have decided otherwise
	if s := back.Steps[i]; s.Class != HeartbeatLost || !s.Held || s.Decided || s.Part != "shown" {
		t.Errorf("%+v", s)
	}
}

// Details are for people, and say all that they need at two in the night.
func TestDetails(t *testing.T) {
	three := 3
	for _, tc := range []struct {
		e    Evidence
		want string
	}{
		{heard(16*minute, Dead), "heartbeat 16m0s ago; PID 7 is dead"},
		{heard(-hour, Dead), "the heartbeat is 1h0m0s in the future: a clock is wrong; PID 7 is dead"},
		{and(heard(hour, Dead), func(e *Evidence) { e.Exit = Exit{Known: true, Signal: "killed"} }), "heartbeat 1h0m0s ago; PID 7 is dead; ended by signal killed"},
		{and(heard(hour, Alive), manifest(hour, Failure{Category: "integration_auth", Command: "execute", Phase: &three, Retries: 1, MaxRetries: 2, Details: "STRIPE_KEY is missing"})),
			"integration_auth in execute, phase 3, retried 1 of 2 times: STRIPE_KEY is missing; PID 7 is alive"},
		{and(heard(hour, Alive), func(e *Evidence) {
			e.Hooks = []Request{{Tool: "Edit", Age: 1}, {Tool: "Bash", Text: "git push", Age: minute}}
		}),
			"it asks for permission: Bash git push, since 1m0s, and 1 more"},
		{and(heard(hour, Alive), session(Session{Kind: "claude", Ended: true, Error: SessionError{Kind: agentcli.RateLimited, Status: 429, Attempt: 2, Max: 10, ResetKnown: true, ResetIn: hour, Text: "usage limit"}})),
			"its claude session is held up by a limit: rate limit 429, attempt 2 of 10, lifted in 1h0m0s: usage limit"},
		{and(heard(hour, Unsure), func(e *Evidence) { e.BlindTicks = 2 }), "PID 7 is unsure (look 3 in a row)"},
	} {
		if v := Classify(tc.e, Policy{}); v.Details != tc.want {
			t.Errorf("%s: %q, want %q", v.Class, v.Details, tc.want)
		}
	}
	v := Classify(and(heard(hour, Alive), session(Session{Ended: true, Error: SessionError{Kind: agentcli.RateLimited, ResetKnown: true, ResetIn: hour}})), Policy{})
	if v.Hold != hour {
		t.Errorf("nothing helps for %s, want an hour", v.Hold)
	}
}

// FuzzReplay reads damaged logs.
func FuzzReplay(f *testing.F) {
	e := heard(hour, Dead)
	f.Add([]byte(line(f, "shop", e, Classify(e, Policy{}))))
	f.Add([]byte("{\"agent\":\"x\",\"evidence\":{\"sessions\":[{\"last_age\":\"-2562047h47m16.854775808s\",\"open_age\":\"never\",\"open\":\"model\"}],\"beat\":{\"has\":true,\"age\":\"-2562047h\"}}}\n\n{"))
	f.Add([]byte("{\"agent\":\"x\",\"evidence\":{\"watched\":true,\"process\":{\"life\":\"dead\",\"gone\":\"9h\"},\"manifest\":{\"failures\":[{}]},\"exit\":{\"known\":true,\"code\":-7}}}"))
	f.Fuzz(func(t *testing.T, log []byte) {
		for _, p := range []Policy{{}, PIV(0)} {
			report, err := Replay(bytes.NewReader(log), always(p))
			if err != nil {
				t.Fatalf("a log in memory cannot fail to be read: %v", err)
			}
			if report.Judged != report.Unchanged+report.Changed || report.Judged+report.Unusable > bytes.Count(log, []byte("\n"))+1 {
				t.Errorf("%+v", report)
			}
			if strings.ContainsAny(report.String(), "\x00\x1b\r") {
				t.Errorf("what the log says drives the terminal: %q", report)
			}
		}
		for l, err := range ReadLog(bytes.NewReader(log)) {
			if err != nil {
				continue
			}
			v := Classify(l.Evidence, Policy{})
			text := line(t, l.Agent, l.Evidence, v)
			again, err := Replay(strings.NewReader(text), always(Policy{}))
			if err != nil || again.Unchanged != 1 {
				t.Errorf("%v\n%s%s", err, again, text)
			}
		}
	})
}

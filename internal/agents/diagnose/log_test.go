package diagnose

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

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
		"> Bash\\x1b[2J\\nrm of its claude session has run for 1h0m0s (limit 30m), and does nothing; PID 7 is alive (H2 tool_hung)\n",
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

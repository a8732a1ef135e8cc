package mcptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVersionNegotiation(t *testing.T) {
	for _, tc := range []struct{ versions, asked, want string }{
		{"", "2024-11-05", "2024-11-05"},
		{"", "2025-03-26", "2025-03-26"},
		{"", "2025-11-25", "2025-11-25"},
		{"", "2099-01-01", "2025-11-25"},
		{"2024-11-05,2025-03-26", "2025-11-25", "2025-03-26"},
	} {
		t.Run(tc.asked+" of "+tc.versions, func(t *testing.T) {
			var flags []string
			if tc.versions != "" {
				flags = []string{"-versions", tc.versions}
			}
			c := inProcess(t, flags...)
			raw, err := c.Initialize(testContext(t), tc.asked)
			if err != nil {
				t.Fatal(err)
			}
			var r struct{ ProtocolVersion string }
			if err := json.Unmarshal(raw, &r); err != nil || r.ProtocolVersion != tc.want {
				t.Errorf("negotiated %q (%v), want %q", r.ProtocolVersion, err, tc.want)
			}
			mustVerify(t, c)
		})
	}
}

func TestToolsAnswer(t *testing.T) {
	t.Setenv("MCPTEST_SAMPLE", "blue")
	c := ready(t)
	for _, tc := range []struct {
		tool string
		args any
		want string
	}{
		{"echo", object{"text": "a <b> & ü"}, "a <b> & ü"},
		{"echo", json.RawMessage(`{"x":1.50}`), `{"x":1.50}`},
		{"add", object{"a": 2, "b": 0.5}, "2.5"},
		{"env", object{"name": "MCPTEST_SAMPLE"}, "blue"},
		{"big", object{"n": 25}, "0123456789012345678901234"},
		{"big", object{"n": 0}, ""},
		{"log", object{"level": "info", "text": "x"}, "logged"},
		{"echo", object{"text": "late", "ms": 5}, "late"},
		{"slow", object{"ms": 2}, "done after 2 ms"},
	} {
		if got := mustTool(t, c, tc.tool, tc.args); got != tc.want {
			t.Errorf("%s %v: %q, want %q", tc.tool, tc.args, got, tc.want)
		}
	}
	r, err := c.Tool(testContext(t), "echo", object{"fail": true})
	if err != nil || !r.IsError {
		t.Errorf("fail: %+v, %v; want a tool error", r, err)
	}
	mustVerify(t, c)
}

func TestBumpCountsExecutions(t *testing.T) {
	c := ready(t)
	path := filepath.Join(t.TempDir(), "count")
	var wg sync.WaitGroup
	var want []string
	for i := range 50 {
		line := fmt.Sprintf("call %02d", i)
		want = append(want, line)
		wg.Go(func() { mustTool(t, c, "bump", object{"path": path, "line": line}) })
	}
	wg.Wait()
	got := fileLines(t, path)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	mustVerify(t, c)
}

func TestIdsComeBackByteForByte(t *testing.T) {
	c := ready(t)
	for _, id := range []string{`1000`, `1.0`, `1e3`, `9007199254740993`, `"1000"`, `""`, `"\u00e9"`, `"a\/b"`, `-5`, `1.5`} {
		if _, err := c.CallID(testContext(t), id, "ping", nil); err != nil {
			t.Errorf("id %s: %v", id, err)
		}
	}
	mustVerify(t, c)
}

func TestRequestsBeforeTheHandshake(t *testing.T) {
	c := inProcess(t)
	_, err := c.Call(testContext(t), "tools/list", nil)
	var e *RPCError
	if !errors.As(err, &e) || e.Code != codeInvalidParams {
		t.Errorf("tools/list before initialize: %v", err)
	}
	if _, err := c.Call(testContext(t), "ping", nil); err != nil {
		t.Errorf("ping before initialize: %v", err)
	}
}

func TestProgressAndCancellation(t *testing.T) {
	c := ready(t)
	ctx := testContext(t)
	_, err := c.Call(ctx, "tools/call", object{"name": "slow", "arguments": object{"ms": 6, "steps": 3}, "_meta": object{"progressToken": "p1"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range c.Notifications("notifications/progress") {
		got = append(got, string(m.Params))
	}
	want := []string{`{"progress":1,"progressToken":"p1","total":3}`, `{"progress":2,"progressToken":"p1","total":3}`, `{"progress":3,"progressToken":"p1","total":3}`}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}

	p := c.Go("tools/call", ToolParams("slow", object{"ms": 3600_000}))
	if err := c.Cancel(p); err != nil {
		t.Fatal(err)
	}
	mustTool(t, c, "echo", object{"text": "after"})
	mustVerify(t, c)
}

func TestSubscriptionsAndState(t *testing.T) {
	c := ready(t)
	ctx := testContext(t)
	for _, step := range []struct {
		method string
		params any
	}{
		{"logging/setLevel", object{"level": "warning"}},
		{"resources/subscribe", object{"uri": "test://counter"}},
		{"resources/subscribe", object{"uri": "test://static"}},
		{"resources/unsubscribe", object{"uri": "test://static"}},
	} {
		if _, err := c.Call(ctx, step.method, step.params); err != nil {
			t.Fatalf("%s: %v", step.method, err)
		}
	}
	mustTool(t, c, "touch", object{"uri": "test://static"})
	mustTool(t, c, "touch", object{"uri": "test://counter"})
	if got := c.Notifications("notifications/resources/updated"); len(got) != 1 || !strings.Contains(got[0].Line, "test://counter") {
		t.Errorf("updates: %v, want one of test://counter", got)
	}
	if got := mustTool(t, c, "log", object{"level": "info", "text": "quiet"}); got != "not wanted" {
		t.Errorf("info below the level warning: %q", got)
	}
	st, err := c.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if st.Era != "legacy" || st.ProtocolVersion != "2025-11-25" || !st.Initialized || st.Level != "warning" || st.PID == 0 ||
		!slices.Equal(st.Subscriptions, []string{"test://counter"}) || !strings.Contains(string(st.Client), "mcptest-client") {
		t.Errorf("state: %+v", st)
	}
	if _, err := c.Call(ctx, "resources/subscribe", object{"uri": "test://nowhere"}); err == nil {
		t.Error("subscribe to an unknown resource succeeded")
	}
	mustVerify(t, c)
}

func TestAskReachesTheClient(t *testing.T) {
	for _, zero := range []bool{false, true} {
		t.Run(fmt.Sprintf("ids from zero %v", zero), func(t *testing.T) {
			c := ready(t, fmt.Sprintf("-ids-from-zero=%v", zero))
			c.Handle("sampling/createMessage", func(json.RawMessage) (any, error) { return object{"model": "m"}, nil })
			c.Handle("roots/list", func(json.RawMessage) (any, error) { return nil, &RPCError{Code: -1, Message: "no"} })
			if got := mustTool(t, c, "ask", object{"kind": "sampling"}); got != `{"model":"m"}` {
				t.Errorf("sampling: %s", got)
			}
			if got := mustTool(t, c, "ask", object{"kind": "ping"}); got != `{}` {
				t.Errorf("ping: %s", got)
			}
			r, err := c.Tool(testContext(t), "ask", object{"kind": "roots"})
			if err != nil || !r.IsError || !strings.Contains(r.Text, `"no"`) {
				t.Errorf("roots: %+v %v", r, err)
			}
			first := string(c.Requests("")[0].ID)
			if zero != (first == "0") {
				t.Errorf("first id %s", first)
			}
			mustVerify(t, c)
		})
	}
}

// An elicitation left open by the client is closed by a later answer.
func TestAskLeftOpen(t *testing.T) {
	c := ready(t)
	opened := make(chan struct{})
	c.Handle("elicitation/create", func(json.RawMessage) (any, error) { close(opened); return nil, ErrNoAnswer })
	p := c.Go("tools/call", ToolParams("ask", object{"kind": "elicitation"}))
	<-opened
	mustTool(t, c, "echo", object{"text": "meanwhile"})
	if err := c.Answer(c.Requests("elicitation/create")[0].ID, object{"action": "accept"}); err != nil {
		t.Fatal(err)
	}
	raw, err := p.Wait(testContext(t))
	if err != nil || !strings.Contains(string(raw), "accept") {
		t.Errorf("answer %s, %v", raw, err)
	}
	mustVerify(t, c)
}

func TestPromptsResourcesCompletion(t *testing.T) {
	c := ready(t)
	for method, want := range map[string]string{
		"prompts/list": `"greet"`, "resources/list": `"test://counter"`, "resources/templates/list": `test://item/{id}`,
		"completion/complete": `"Ada"`,
	} {
		if raw, err := c.Call(testContext(t), method, nil); err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s: %s %v, want %s in it", method, raw, err, want)
		}
	}
	raw, err := c.Call(testContext(t), "prompts/get", object{"name": "greet", "arguments": object{"who": "Ada"}})
	if err != nil || !strings.Contains(string(raw), "Greet Ada") {
		t.Errorf("prompts/get: %s %v", raw, err)
	}
	raw, err = c.Call(testContext(t), "resources/read", object{"uri": "test://item/7"})
	if err != nil || !strings.Contains(string(raw), "test://item/7 version 0") {
		t.Errorf("resources/read: %s %v", raw, err)
	}
	_, err = c.Call(testContext(t), "no/such", nil)
	var e *RPCError
	if !errors.As(err, &e) || e.Code != codeNoMethod {
		t.Errorf("unknown method: %v", err)
	}
}

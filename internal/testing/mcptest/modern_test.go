package mcptest

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func modern(t *testing.T, flags ...string) *Client {
	t.Helper()
	c := inProcess(t, flags...)
	c.Modern = true
	return c
}

func wantCode(t *testing.T, what string, err error, code int) {
	t.Helper()
	var e *RPCError
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%s: %v, want error %d", what, err, code)
	}
}

func TestModernNeedsNoHandshake(t *testing.T) {
	c := modern(t, "-era", "modern")
	ctx := testContext(t)
	raw, err := c.Call(ctx, "server/discover", nil)
	if err != nil || !strings.Contains(string(raw), `"supportedVersions":["2026-07-28"]`) {
		t.Fatalf("discover: %s %v", raw, err)
	}
	raw, err = c.Call(ctx, "tools/list", nil)
	for _, want := range []string{`"resultType":"complete"`, `"ttlMs":0`, `"io.modelcontextprotocol/serverInfo"`} {
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("tools/list: no %s in %s (%v)", want, raw, err)
		}
	}
	if got := mustTool(t, c, "echo", object{"text": "x"}); got != "x" {
		t.Errorf("echo: %q", got)
	}
	_, err = c.Call(ctx, "ping", nil)
	wantCode(t, "ping", err, codeNoMethod)
	mustVerify(t, c)
}

func TestModernEnvelopeIsChecked(t *testing.T) {
	c := inProcess(t, "-era", "modern")
	ctx := testContext(t)
	_, err := c.Call(ctx, "tools/list", nil)
	wantCode(t, "no _meta", err, codeInvalidParams)
	_, err = c.Call(ctx, "tools/list", object{"_meta": object{metaVersion: modernVersion}})
	wantCode(t, "half a _meta", err, codeInvalidParams)
	_, err = c.Call(ctx, "tools/list", object{"_meta": object{metaVersion: "2030-01-01", metaClientInfo: object{}, metaCapabilities: object{}}})
	wantCode(t, "unknown version", err, codeVersion)
	_, err = c.Initialize(ctx, "2025-11-25")
	wantCode(t, "initialize", err, codeVersion)
	mustVerify(t, c)
}

func TestListenStreams(t *testing.T) {
	c := modern(t, "-era", "dual")
	ctx := testContext(t)
	p := c.GoID(`"sub-1"`, "subscriptions/listen", object{"notifications": object{
		"toolsListChanged": true, "resourceSubscriptions": []string{"test://counter"}}})
	ack, err := c.WaitFor(ctx, func(l string) bool { return strings.Contains(l, "subscriptions/acknowledged") })
	if err != nil {
		t.Fatal(err)
	}
	want := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` +
		`"_meta":{"io.modelcontextprotocol/subscriptionId":"sub-1"},` +
		`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://counter"]}}}`
	if d := cmp.Diff(want, ack); d != "" {
		t.Error(d)
	}
	mustTool(t, c, "touch", object{"uri": "test://static"})
	mustTool(t, c, "touch", object{"uri": "test://counter"})
	mustTool(t, c, "add_tool", object{"name": "extra"})
	for _, method := range []string{"notifications/resources/updated", "notifications/tools/list_changed"} {
		if got := c.Notifications(method); len(got) != 1 || !strings.Contains(got[0].Line, `subscriptionId":"sub-1"`) {
			t.Errorf("%s: %v, want one with the subscription id", method, got)
		}
	}
	mustTool(t, c, "end_listens", nil)
	raw, err := p.Wait(ctx)
	if err != nil || !strings.Contains(string(raw), `"resultType":"complete"`) {
		t.Errorf("end of the stream: %s %v", raw, err)
	}

	p = c.Go("subscriptions/listen", object{"notifications": object{"resourceSubscriptions": []string{"test://counter"}}})
	if err := c.Cancel(p); err != nil {
		t.Fatal(err)
	}
	mustTool(t, c, "touch", object{"uri": "test://counter"})
	if got := len(c.Notifications("notifications/resources/updated")); got != 1 {
		t.Errorf("%d updates after the stream was cancelled, want 1 still", got)
	}
	mustVerify(t, c)
}

func TestModernAskWantsInput(t *testing.T) {
	c := modern(t, "-era", "modern")
	ctx := testContext(t)
	raw, err := c.Call(ctx, "tools/call", ToolParams("ask", object{"kind": "elicitation"}))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		ResultType, RequestState string
		InputRequests            map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &r); err != nil || r.ResultType != "input_required" || r.InputRequests["elicitation"] == nil {
		t.Fatalf("%s (%v)", raw, err)
	}
	retry := func(state string) (json.RawMessage, error) {
		return c.Call(ctx, "tools/call", object{"name": "ask", "arguments": object{"kind": "elicitation"},
			"requestState": state, "inputResponses": object{"elicitation": object{"action": "accept"}}})
	}
	_, err = retry("of another process")
	wantCode(t, "state of another process", err, codeInvalidParams)
	raw, err = retry(r.RequestState)
	if err != nil || !strings.Contains(string(raw), "accept") {
		t.Errorf("retry: %s %v", raw, err)
	}
	mustVerify(t, c)
}

func TestModernLogLevelIsPerRequest(t *testing.T) {
	c := modern(t, "-era", "modern")
	if got := mustTool(t, c, "log", object{"level": "error", "text": "x"}); got != "not wanted" {
		t.Errorf("without a level: %q", got)
	}
	d := modern(t, "-era", "modern")
	d.LogLevel = "info"
	if got := mustTool(t, d, "log", object{"level": "error", "text": "x"}); got != "logged" || len(d.Notifications("notifications/message")) != 1 {
		t.Errorf("with level info: %q, %v", got, d.Notifications(""))
	}
}

func TestStrictLocksTheEra(t *testing.T) {
	c := inProcess(t, "-era", "dual", "-strict")
	ctx := testContext(t)
	c.Modern = true
	if _, err := c.Call(ctx, "server/discover", nil); err != nil {
		t.Fatal(err)
	}
	c.Modern = false
	_, err := c.Initialize(ctx, "2025-11-25")
	wantCode(t, "initialize after an enveloped request", err, codeVersion)

	d := inProcess(t, "-era", "dual", "-strict")
	handshake(t, d)
	d.Modern = true
	_, err = d.Call(ctx, "tools/list", nil)
	wantCode(t, "enveloped request after initialize", err, codeInvalidRequest)

	e := inProcess(t, "-era", "dual")
	e.Modern = true
	mustTool(t, e, "echo", nil)
	e.Modern = false
	handshake(t, e)
}

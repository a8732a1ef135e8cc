package mcptest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// raw runs the server with one ping and returns its whole stdout.
func raw(t *testing.T, flags ...string) string {
	t.Helper()
	var out, stderr bytes.Buffer
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	if code := ServerMain(flags, in, &out, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, &stderr)
	}
	return out.String()
}

func TestShapesOfOutput(t *testing.T) {
	for _, tc := range []struct{ flag, want string }{
		{"-crlf=false", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
		{"-crlf", `{"jsonrpc":"2.0","id":1,"result":{}}` + "\r\n"},
		{"-bom", "\ufeff" + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
		{"-id-last", `{"result":{},"jsonrpc":"2.0","id":1}` + "\n"},
		{"-batch-out", `[{"jsonrpc":"2.0","id":1,"result":{}}]` + "\n"},
		{"-pretty", "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}\n"},
		{"-garbage", "Server listening, request 1\n" + `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
	} {
		t.Run(tc.flag, func(t *testing.T) {
			if d := cmp.Diff(tc.want, raw(t, tc.flag)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestGarbageComesInFourKinds(t *testing.T) {
	c := ready(t, "-garbage")
	for range 4 {
		mustTool(t, c, "echo", nil)
	}
	all := strings.Join(c.Lines(), "\n")
	for _, want := range []string{"Server listening", `{"level":30`, "\n\n", `{"jsonrpc":"2.0","id":` + "\n"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in the output", want)
		}
	}
}

func TestToolListFromFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tools.json")
	list := `["read", {"name":"deploy","description":"Deploys","annotations":{"readOnlyHint":true}}, {"name":"bump","description":"other text"}]`
	if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	c := ready(t, "-tools-file", path, "-page", "2")
	names, err := c.Tools(testContext(t))
	if want := []string{"read", "deploy", "bump"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("tools %v %v, want %v", names, err, want)
	}
	lines := strings.Join(c.Lines(), "\n")
	if strings.Count(lines, `"nextCursor":"2"`) != 1 || !strings.Contains(lines, "other text") {
		t.Errorf("pages: %s", lines)
	}
	if got := mustTool(t, c, "deploy", object{"text": "hi"}); got != "hi" {
		t.Errorf("deploy: %q", got)
	}
	mustTool(t, c, "bump", object{"path": filepath.Join(t.TempDir(), "f"), "line": "x"})
}

func TestNoTools(t *testing.T) {
	c := inProcess(t, "-no-tools")
	result, err := c.Initialize(testContext(t), "2025-11-25")
	if err != nil || strings.Contains(string(result), `"tools"`) {
		t.Errorf("capabilities %s %v", result, err)
	}
	_, err = c.Call(testContext(t), "tools/list", nil)
	wantCode(t, "tools/list", err, codeNoMethod)
	d := inProcess(t, "-no-list-changed")
	result, err = d.Initialize(testContext(t), "2025-11-25")
	if err != nil || strings.Contains(string(result), "listChanged") {
		t.Errorf("capabilities %s %v", result, err)
	}
}

func TestMarkerIsOnStderrBeforeTheAnswer(t *testing.T) {
	p, stderr := spawn(t)
	handshake(t, p.Client)
	mustTool(t, p.Client, "marker", nil)
	if _, err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if got := stderr.String(); got != "__MCP_RESTART_REQUEST__\n" {
		t.Errorf("stderr %q", got)
	}
}

// The server's own restart tools: answer first, then exit 42, and the next process can report it (RT-7).
func TestOwnRestartTools(t *testing.T) {
	t.Chdir(t.TempDir())
	since := time.Now().UTC().Add(-time.Second).Format(time.RFC3339)
	p, _ := spawn(t, "-restart-tools", "-restart-delay", "20ms")
	handshake(t, p.Client)
	r, err := p.Tool(testContext(t), "verify_server_restarted", object{"since_timestamp": since})
	if err != nil || !r.IsError || !strings.Contains(r.Text, "No restart marker found") {
		t.Errorf("verify before: %+v %v", r, err)
	}
	want := "Server restart scheduled (reason: new code). Server will exit with code 42 in 20ms, supervisor will spawn new instance."
	if got := mustTool(t, p.Client, "restart_server", object{"reason": "new code"}); got != want {
		t.Errorf("restart_server: %q", got)
	}
	wantExit(t, p, 42)
	p, _ = spawn(t, "-restart-tools")
	handshake(t, p.Client)
	if got := mustTool(t, p.Client, "verify_server_restarted", object{"since_timestamp": since}); !strings.Contains(got, "✅") || !strings.Contains(got, "new code") {
		t.Errorf("verify after: %q", got)
	}
}

func TestWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-era", "stone"}, {"-probe", "x"}, {"-last-line", "x"}, {"-no-start", "1"}, {"-nonsense"}, {"stray"}} {
		var stderr bytes.Buffer
		if code := ServerMain(args, strings.NewReader(""), &bytes.Buffer{}, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%v: exit %d, stderr %q", args, code, &stderr)
		}
	}
	if _, err := Spawn([]string{filepath.Join(t.TempDir(), "none")}, nil, nil); err == nil || errors.Is(err, ErrClosed) {
		t.Errorf("spawn of nothing: %v", err)
	}
	if u := Usage(); !strings.Contains(u, "-crash-after") {
		t.Errorf("usage: %s", u)
	}
}

package streamhttp

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Whatever is posted: the status is one of the specification's, a refusal is an error with the request's own id or none,
// and the hub gets whole valid messages, each on one line.
func FuzzPost(f *testing.F) {
	for _, body := range []string{
		call(1), initializeLine("2025-03-26"), `[` + call(1) + `,` + call(2) + `]`, modernLine(1, "tools/call", `"name":"t",`), `{"jsonrpc":"2.0","method":"n"}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, "{\n\"jsonrpc\"\r:\"2.0\",\"id\":\"x\",\"method\":\"m\"}", `[]`, `[[]]`, `{`, "\xff", `{"jsonrpc":"2.0","id":null,"method":"m"}`,
	} {
		f.Add(body, "2025-03-26", "tools/call", "t", true)
		f.Add(body, "2026-07-28", "tools/call", "=?base64?dA==?=", false)
	}
	f.Fuzz(func(t *testing.T, body, version, method, name string, inSession bool) {
		hub := &testHub{params: map[string][]mcp.ParamHeader{"t": {{Header: "X", Path: []string{"a", "b"}}}}}
		hub.answer = func(s *testSession, line []byte, reply Stream) {
			var e jsonrpc.Envelope
			if err := e.Scan(line); err != nil || e.Kind == jsonrpc.Batch || strings.ContainsAny(string(line), "\r\n") {
				t.Errorf("the hub got %q: %v", line, err)
			}
			if (e.Kind == jsonrpc.Request) != (reply != nil) {
				t.Errorf("%q came with the reply %v", line, reply)
			}
			echo(s, line, reply)
		}
		front := New(hub, Options{MaxBody: 1 << 16})
		defer front.Close()
		session := ""
		if inSession {
			w := serve(front, request(t.Context(), "POST", "http://localhost/mcp", initializeLine("2025-03-26")))
			session = w.Header().Get("Mcp-Session-Id")
		}
		r := request(t.Context(), "POST", "http://localhost/mcp", body)
		for key, value := range map[string]string{headerVersion: version, headerMethod: method, headerName: name, headerSession: session} {
			if value != "" {
				r.Header[key] = []string{value}
			}
		}
		w := serve(front, r)
		if !slices.Contains([]int{200, 202, 400, 404, 413}, w.Code) {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		checkRefusal(t, w.Code, body, w.Body.Bytes())
	})
}

// checkRefusal looks at the body of anything that is not an event stream.
func checkRefusal(t *testing.T, status int, asked string, got []byte) {
	if status == http.StatusAccepted || strings.HasPrefix(string(got), "event:") {
		return
	}
	if strings.HasPrefix(asked, "[") {
		return // whose id it is of is the batch's business
	}
	id := jsonrpc.Find(got, "id").Of(got)
	if status == http.StatusOK || id != nil {
		if jsonrpc.IsNull(id) || !strings.Contains(asked, string(id)) {
			t.Errorf("%d with the id %s to %q", status, id, asked)
		}
	}
	if status != http.StatusOK && !jsonrpc.Find(got, "error").Present() {
		t.Errorf("%d with %s", status, got)
	}
}

// The quick look at a line says the same as the whole scan, for every line a hub may send.
func FuzzKindOf(f *testing.F) {
	for _, line := range []string{
		result(1), note(1), call(1), `{"id":"\"","jsonrpc":"2.0","error":{"code":1}}`, `{"x":{"result":1},"method":"m"}`, `{"jsonrpc":"2.0","id":1e3,"result":{}}`, ` { "result" : 1 , "id" : 2 } `, `[]`, `{}`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		quick := isAnswer([]byte(line))
		var e jsonrpc.Envelope
		if e.Scan([]byte(line)) != nil || e.Method.Present() && (e.Result.Present() || e.Error.Present()) {
			return // no hub sends that; it only must not crash
		}
		if whole := e.Kind == jsonrpc.Response || e.Kind == jsonrpc.ErrorResponse; quick != whole {
			t.Errorf("%s: quick %v, whole %v", line, quick, whole)
		}
	})
}

func FuzzSentinel(f *testing.F) {
	for _, s := range []string{"", "t", "=?base64?dA==?=", "=?base64??=", "=?base64?=", "=?base64?dA=?=", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		decoded, err := decodeSentinel(value)
		if err == nil && decoded != value && !strings.HasPrefix(value, "=?base64?") {
			t.Errorf("%q became %q", value, decoded)
		}
	})
}

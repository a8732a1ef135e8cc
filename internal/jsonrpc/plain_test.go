package jsonrpc

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plainCall and plainAnswer are messages as the SDKs write them.
const (
	plainCall = `{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"echo","arguments":{"a":[1,-2.5,true,null,{"b":{}},[]]},"_meta":{"progressToken":12}}}`
	plainTail = `{"result":{"content":[{"type":"text","text":"hello, world"}],"isError":false},"jsonrpc":"2.0","id":12}`
)

func TestPlain(t *testing.T) {
	for _, c := range []struct {
		name, line                 string
		id, method, callee, result string // all empty: not plain
	}{
		{"a call", plainCall, "12", `"tools/call"`, `"echo"`, ""},
		{"an answer, id last", plainTail, "12", "", "", `{"content":[{"type":"text","text":"hello, world"}],"isError":false}`},
		{"spaces between", `{"jsonrpc" : "2.0", "id": 3, "result": { }}`, "3", "", "", "{ }"},
		{"no params", `{"jsonrpc":"2.0","id":3,"method":"ping"}`, "3", `"ping"`, "", ""},
		{"complete", `{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete"}}`, "0", "", "", `{"resultType":"complete"}`},
		{"a name deeper down", `{"jsonrpc":"2.0","id":3,"method":"m","params":{"a":{"name":"x","task":{}},"name":"y"}}`, "3", `"m"`, `"y"`, ""},
		{"a resultType deeper down", `{"jsonrpc":"2.0","id":3,"result":{"a":[{"resultType":"odd"}]}}`, "3", "", "", `{"a":[{"resultType":"odd"}]}`},

		{name: "nothing"},
		{name: "an escape", line: `{"jsonrpc":"2.0","id":3,"method":"m","params":{"a":"\n"}}`},
		{name: "UTF-8", line: `{"jsonrpc":"2.0","id":3,"method":"m","params":{"a":"ä"}}`},
		{name: "a control character", line: "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"m\",\"params\":{\"a\":\"\x01\"}}"},
		{name: "a tab between", line: "{\"jsonrpc\":\"2.0\",\t\"id\":3,\"method\":\"m\"}"},
		{name: "something before", line: ` {"jsonrpc":"2.0","id":3,"method":"m"}`},
		{name: "something behind", line: "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"m\"}\r"},
		{name: "a notification", line: `{"jsonrpc":"2.0","method":"m"}`},
		{name: "an error", line: `{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"x"}}`},
		{name: "a scalar result", line: `{"jsonrpc":"2.0","id":3,"result":1}`},
		{name: "an array of params", line: `{"jsonrpc":"2.0","id":3,"method":"m","params":[]}`},
		{name: "a request with a result", line: `{"jsonrpc":"2.0","id":3,"method":"m","result":{}}`},
		{name: "an answer with params", line: `{"jsonrpc":"2.0","id":3,"params":{},"result":{}}`},
		{name: "another member", line: `{"jsonrpc":"2.0","id":3,"method":"m","extra":1}`},
		{name: "an id twice", line: `{"jsonrpc":"2.0","id":3,"id":4,"method":"m"}`},
		{name: "a name twice", line: `{"jsonrpc":"2.0","id":3,"method":"m","params":{"name":"a","name":"b"}}`},
		{name: "params twice", line: `{"jsonrpc":"2.0","id":3,"method":"m","params":{},"params":{}}`},
		{name: "an id in quotes", line: `{"jsonrpc":"2.0","id":"3","method":"m"}`},
		{name: "a negative id", line: `{"jsonrpc":"2.0","id":-3,"method":"m"}`},
		{name: "a fractional id", line: `{"jsonrpc":"2.0","id":3.0,"method":"m"}`},
		{name: "a long id", line: `{"jsonrpc":"2.0","id":1234567890123456,"method":"m"}`},
		{name: "version 1", line: `{"jsonrpc":"1.0","id":3,"method":"m"}`},
		{name: "no version", line: `{"id":3,"method":"m"}`},
		{name: "a task", line: `{"jsonrpc":"2.0","id":3,"method":"m","params":{"task":{}}}`},
		{name: "a state", line: `{"jsonrpc":"2.0","id":3,"method":"m","params":{"requestState":"x"}}`},
		{name: "responses", line: `{"jsonrpc":"2.0","id":3,"method":"m","params":{"inputResponses":{}}}`},
		{name: "a name that is no scalar", line: `{"jsonrpc":"2.0","id":3,"method":"m","params":{"name":{}}}`},
		{name: "incomplete", line: `{"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required"}}`},
		{name: "an exponent", line: `{"jsonrpc":"2.0","id":3,"result":{"a":1e3}}`},
		{name: "a leading zero", line: `{"jsonrpc":"2.0","id":3,"result":{"a":01}}`},
		{name: "half a number", line: `{"jsonrpc":"2.0","id":3,"result":{"a":1.}}`},
		{name: "the wrong bracket", line: `{"jsonrpc":"2.0","id":3,"result":{"a":[}]}}`},
		{name: "a comma too many", line: `{"jsonrpc":"2.0","id":3,"result":{"a":[1,]}}`},
		{name: "a comma before the end", line: `{"jsonrpc":"2.0","id":3,"result":{"a":1,}}`},
		{name: "two values", line: `{"jsonrpc":"2.0","id":3,"result":{"a":1 2}}`},
		{name: "two objects", line: `{"jsonrpc":"2.0","id":3,"result":{}}{}`},
		{name: "half a word", line: `{"jsonrpc":"2.0","id":3,"result":{"a":tru}}`},
		{name: "an open string", line: `{"jsonrpc":"2.0","id":3,"result":{"a":"}}`},
		{name: "too deep", line: `{"jsonrpc":"2.0","id":3,"result":{"a":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}}`},
		{name: "a batch", line: `[{"jsonrpc":"2.0","id":3,"method":"m"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p Plain
			line := []byte(c.line)
			if got := p.Scan(line); got != (c.id != "") {
				t.Fatalf("Scan(%q) = %v", c.line, got)
			}
			if c.id == "" {
				return
			}
			for what, got := range map[string][2]string{
				"id": {string(p.ID.Of(line)), c.id}, "method": {string(p.Method.Of(line)), c.method},
				"name": {string(p.Name.Of(line)), c.callee}, "result": {string(p.Result.Of(line)), c.result},
			} {
				if got[0] != got[1] {
					t.Errorf("%s is %q, want %q", what, got[0], got[1])
				}
			}
			agreesWithEnvelope(t, line)
		})
	}
}

// fataler is what a test, a fuzz run and a rapid check have in common.
type fataler interface {
	Fatalf(format string, args ...any)
}

// agreesWithEnvelope fails if line is plain and the envelope, which knows everything, sees it otherwise.
func agreesWithEnvelope(t fataler, line []byte) {
	var p Plain
	if !p.Scan(line) {
		return
	}
	var e Envelope
	if err := e.Scan(line); err != nil {
		t.Fatalf("plain, but %v: %q", err, line)
	}
	kind := Request
	if !p.Method.Present() {
		kind = Response
	}
	if e.Kind != kind || !e.Version2 || e.BadUTF8 || e.Surrogate || ClassifyID(e.ID.Of(line)) != IDInteger {
		t.Fatalf("plain, but %+v: %q", e, line)
	}
	if p != (Plain{ID: e.ID, Method: e.Method, Name: e.Name, Result: e.Result}) {
		t.Fatalf("plain says %+v, the envelope %+v: %q", p, e, line)
	}
	if e.Task.Present() || e.RequestState.Present() || e.InputResponses.Present() || e.Error.Present() {
		t.Fatalf("plain in spite of what it asks for: %q", line)
	}
	if e.ResultType.Present() && string(e.ResultType.Of(line)) != `"complete"` {
		t.Fatalf("plain in spite of its resultType: %q", line)
	}
	if len(Trim(line)) != len(line) {
		t.Fatalf("plain, but it would be trimmed: %q", line)
	}
}

// TestPlainNearMessages changes good messages at a few places: most of what comes out is nearly right.
func TestPlainNearMessages(t *testing.T) {
	alphabet := []byte(`{}[]",:0123456789.-eE\ truefalsn"name"task"id"` + "\t\x00\xc3\xa4")
	rapid.Check(t, func(t *rapid.T) {
		line := []byte(rapid.SampledFrom([]string{plainCall, plainTail}).Draw(t, "message"))
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(line)-1).Draw(t, "at")
			c := rapid.SampledFrom(alphabet).Draw(t, "byte")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				line[at] = c
			case 1:
				line = append(line[:at], line[at+1:]...)
			default:
				line = append(line[:at], append([]byte{c}, line[at:]...)...)
			}
		}
		agreesWithEnvelope(t, line)
	})
}

func FuzzPlain(f *testing.F) {
	for _, line := range []string{plainCall, plainTail, `{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete"}}`, `{"jsonrpc": "2.0", "id": 3, "method": "m"}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) { agreesWithEnvelope(t, line) })
}

package jsonrpc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzScan compares Scan with encoding/json, which is independent of it: what is JSON, which members there are, and,
// for the flags, whether decoding had to replace something.
func FuzzScan(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,-2.5e3,true,false,null]}}}`,
		`{"result":{"content":[{"type":"text","text":"a\nb\u00e9\ud83d\ude00"}],"resultType":"complete"},"jsonrpc":"2.0","id":"7"}`,
		`{"\u0069d":1,"id":2,"method":"x"}`, `[{"id":1},[],{}]`, `{"id":null,"method":"x"}`, ` { } `, `{"method":"x","params":{"_meta":{},"_meta":1}}`,
		"{\"method\":\"\xff\\ud800\"}", `{"error":{},"id":1.0,"result":null}`, strings.Repeat(`[`, 130) + strings.Repeat(`]`, 130), `"\ud800"`, `123`, `{"a":1}x`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var e Envelope
		err := e.Scan(line)
		if valid := json.Valid(line); valid == errors.Is(err, ErrSyntax) {
			t.Fatalf("%q: %v, encoding/json says valid = %v", line, err, valid)
		} else if !valid {
			return
		}
		if e.BadUTF8 == utf8.Valid(line) {
			t.Fatalf("%q: bad UTF-8 %v", line, e.BadUTF8)
		}
		if clean := string(Sanitize(nil, line)) == string(line); clean == (e.Surrogate || e.BadUTF8) {
			t.Fatalf("%q: surrogate %v, bad UTF-8 %v", line, e.Surrogate, e.BadUTF8)
		}
		members, isObject := decodeObject(line)
		isArray := IsArray(line)
		if isObject == errors.Is(err, ErrNotObject) && !isArray || isArray != (e.Kind == Batch) {
			t.Fatalf("%q: %v, kind %v", line, err, e.Kind)
		}
		if isObject {
			compareMembers(t, &e, err, line, members)
		}
	})
}

func compareMembers(t *testing.T, e *Envelope, err error, line []byte, members map[string]json.RawMessage) {
	t.Helper()
	if !utf8.Valid(line) { // encoding/json makes one key of several
		return
	}
	got := seen(e, string(line))
	compare := func(want map[string]json.RawMessage, names ...string) {
		for _, name := range names {
			if got[name] != string(want[name]) {
				t.Fatalf("%q: %s = %q, want %q", line, name, got[name], want[name])
			}
		}
	}
	if errors.Is(err, ErrDuplicateKey) {
		return
	}
	compare(members, "id", "method", "params", "result", "error")
	var version string
	_ = json.Unmarshal(members["jsonrpc"], &version)
	if e.Version2 != (version == "2.0") {
		t.Fatalf("%q: Version2 = %v", line, e.Version2)
	}
	params, _ := decodeObject(members["params"])
	compare(params, "name", "uri", "_meta", "level", "requestId", "progressToken", "progress", "cursor", "requestState", "task")
	result, _ := decodeObject(members["result"])
	compare(result, "resultType")
	if want := wantKind(members); e.Kind != want || (err == nil) != (want != Invalid) {
		t.Fatalf("%q: kind %v, error %v, want kind %v", line, e.Kind, err, want)
	}
}

// wantKind says of what kind a message without duplicate members is.
func wantKind(members map[string]json.RawMessage) Kind {
	id, hasID := members["id"]
	_, hasResult := members["result"]
	failure, hasError := members["error"]
	method, hasMethod := members["method"]
	switch {
	case hasMethod && (method[0] != '"' || hasID && string(id) == "null"):
		return Invalid
	case hasMethod && hasID:
		return Request
	case hasMethod:
		return Notification
	case hasID && hasError && (!hasResult || string(failure) != "null"):
		return ErrorResponse
	case hasID && hasResult:
		return Response
	}
	return Invalid
}

package jsonrpc

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func TestBuild(t *testing.T) {
	id := []byte(`"a\u0031"`)
	for _, tt := range []struct {
		got  []byte
		want string
		kind Kind
	}{
		{AppendResult(nil, id, []byte(`{"a":1}`)), `{"jsonrpc":"2.0","id":"a\u0031","result":{"a":1}}`, Response},
		{AppendResult(nil, id, nil), `{"jsonrpc":"2.0","id":"a\u0031","result":{}}`, Response},
		{AppendError(nil, id, InvalidParams, `no "x" <here>`, nil), `{"jsonrpc":"2.0","id":"a\u0031","error":{"code":-32602,"message":"no \"x\" <here>"}}`, ErrorResponse},
		{AppendError(nil, nil, ParseError, "", []byte(`[1]`)), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"","data":[1]}}`, ErrorResponse},
		{AppendErrorObject(nil, id, []byte(`{"code":1,"x":2}`)), `{"jsonrpc":"2.0","id":"a\u0031","error":{"code":1,"x":2}}`, ErrorResponse},
		{AppendRequest(nil, id, "tools/call", []byte(`{"name":"x"}`)), `{"jsonrpc":"2.0","id":"a\u0031","method":"tools/call","params":{"name":"x"}}`, Request},
		{AppendRequest(nil, []byte("1"), "ping", nil), `{"jsonrpc":"2.0","id":1,"method":"ping"}`, Request},
		{AppendNotification(nil, "notifications/x", []byte(`{}`)), `{"jsonrpc":"2.0","method":"notifications/x","params":{}}`, Notification},
		{AppendNotification([]byte{}, "notifications/x", nil), `{"jsonrpc":"2.0","method":"notifications/x"}`, Notification},
	} {
		if string(tt.got) != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
		var e Envelope
		if err := e.Scan(tt.got); err != nil || e.Kind != tt.kind || !e.Version2 {
			t.Errorf("%s: %v, %v", tt.got, e.Kind, err)
		}
	}
}

func TestAppendQuoted(t *testing.T) {
	for in, want := range map[string]string{
		"":                       `""`,
		"plain":                  `"plain"`,
		"<a href=\"x\">&\\":      `"<a href=\"x\">&\\"`,
		"\n\r\t\b\f\x00\x1f\x7f": `"\n\r\t\b\f\u0000\u001f` + "\x7f\"",
		"é日😀\u2028\ufffd":        "\"é日😀\u2028\ufffd\"",
		"a\xffb\xe2\x82":         "\"a\ufffdb\ufffd\ufffd\"",
	} {
		if got := string(AppendQuoted(nil, in)); got != want {
			t.Errorf("AppendQuoted(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestUnquoteAndEqualString(t *testing.T) {
	for raw, want := range map[string]string{
		`""`:                           "",
		`"plain"`:                      "plain",
		`"\"\\\/\b\f\n\r\t"`:           "\"\\/\b\f\n\r\t",
		`"\u0041\u00e9\uD83D\uDE00"`:   "Aé😀",
		`"x\ud83dx\ude00\ud83d\u0041"`: "x\ufffdx\ufffd\ufffdA",
		"\"\xff\xe2\x82\"":             "\ufffd\ufffd\ufffd",
	} {
		got, ok := Unquote([]byte(raw))
		if !ok || got != want {
			t.Errorf("Unquote(%s) = %q, %v, want %q", raw, got, ok, want)
		}
		if !EqualString([]byte(raw), want) || EqualString([]byte(raw), want+"x") || want != "" && EqualString([]byte(raw), want[1:]) {
			t.Errorf("EqualString(%s)", raw)
		}
	}
	for _, raw := range []string{``, `"`, `1`, `null`, `x`, `"a`, `"a"b`, `"a""`, `"\x"`, "\"\n\"", ` "a"`, `"a" `} {
		if got, ok := Unquote([]byte(raw)); ok || got != "" {
			t.Errorf("Unquote(%q) = %q", raw, got)
		}
		if EqualString([]byte(raw), "a") || EqualString([]byte(raw), "") {
			t.Errorf("EqualString(%q)", raw)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("plain \n\x00é😀\xff", []byte(`"\ud83d\ude00\ud83d"`))
	f.Fuzz(func(t *testing.T, s string, raw []byte) {
		quoted := AppendQuoted(nil, s)
		if back, ok := Unquote(quoted); !ok || utf8.ValidString(s) && back != s || !utf8.Valid(quoted) {
			t.Fatalf("AppendQuoted(%q) = %s", s, quoted)
		}
		got, ok := Unquote(raw)
		var want string
		if len(raw) == 0 || raw[0] != '"' || raw[len(raw)-1] != '"' || json.Unmarshal(raw, &want) != nil {
			if ok {
				t.Fatalf("Unquote(%q) = %q", raw, got)
			}
			return
		}
		if !ok || got != want || !EqualString(raw, want) || EqualString(raw, want+"x") {
			t.Fatalf("Unquote(%q) = %q, %v, want %q", raw, got, ok, want)
		}
	})
}

func TestValueKinds(t *testing.T) {
	for raw, want := range map[string]string{` {}`: "object", `[]`: "array", `"x"`: "string", ` null `: "null", `1`: "", `true`: "", ``: "", `nul`: ""} {
		got := ""
		switch b := []byte(raw); {
		case IsObject(b):
			got = "object"
		case IsArray(b):
			got = "array"
		case IsString(b):
			got = "string"
		case IsNull(b):
			got = "null"
		}
		if got != want {
			t.Errorf("%q is %q, want %q", raw, got, want)
		}
	}
}

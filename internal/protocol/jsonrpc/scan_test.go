package jsonrpc

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seen is what a test says about an envelope: every present span as text.
func seen(e *Envelope, line string) map[string]string {
	spans := map[string]Span{
		"id": e.ID, "method": e.Method, "params": e.Params, "result": e.Result, "error": e.Error,
		"name": e.Name, "uri": e.URI, "_meta": e.Meta, "level": e.Level, "requestId": e.RequestID,
		"progressToken": e.ProgressToken, "progress": e.Progress, "cursor": e.Cursor,
		"requestState": e.RequestState, "task": e.Task,
		"resultType": e.ResultType, "isError": e.IsError,
	}
	got := map[string]string{}
	for name, s := range spans {
		if s.Present() {
			got[name] = string(s.Of([]byte(line)))
		}
	}
	return got
}

func TestScan(t *testing.T) {
	type want map[string]string
	for _, tt := range []struct {
		name string
		line string
		kind Kind
		want want
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, Request, want{"id": "1", "method": `"ping"`}},
		{"space everywhere", " { \"jsonrpc\" : \"2.0\" ,\t\"id\" : 1 , \"method\" :\r\n\"ping\" } ", Request, want{"id": "1", "method": `"ping"`}},
		{"tool call", `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"name":"no"},"_meta":{"progressToken":1},"task":{"ttl":1}}}`, Request,
			want{"id": `"a"`, "method": `"tools/call"`, "name": `"x"`, "_meta": `{"progressToken":1}`, "task": `{"ttl":1}`,
				"params": `{"name":"x","arguments":{"name":"no"},"_meta":{"progressToken":1},"task":{"ttl":1}}`}},
		{"retry with state", `{"jsonrpc":"2.0","id":2,"method":"m","params":{"requestState":"s","inputResponses":{"a":{}},"cursor":"c"}}`, Request,
			want{"id": "2", "method": `"m"`, "requestState": `"s"`, "cursor": `"c"`,
				"params": `{"requestState":"s","inputResponses":{"a":{}},"cursor":"c"}`}},
		{"progress", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.5}}`, Notification,
			want{"method": `"notifications/progress"`, "progressToken": `"t"`, "progress": "0.5", "params": `{"progressToken":"t","progress":0.5}`}},
		{"cancelled", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, Notification,
			want{"method": `"notifications/cancelled"`, "requestId": "7", "params": `{"requestId":7}`}},
		{"level and uri", `{"jsonrpc":"2.0","method":"m","params":{"level":"info","uri":"a:b"}}`, Notification,
			want{"method": `"m"`, "level": `"info"`, "uri": `"a:b"`, "params": `{"level":"info","uri":"a:b"}`}},
		{"params array", `{"jsonrpc":"2.0","method":"m","params":[{"name":"x"}]}`, Notification, want{"method": `"m"`, "params": `[{"name":"x"}]`}},
		{"id last", `{"result":{"resultType":"complete","uri":"x"},"jsonrpc":"2.0","id":3}`, Response,
			want{"id": "3", "result": `{"resultType":"complete","uri":"x"}`, "resultType": `"complete"`}},
		{"result null", `{"jsonrpc":"2.0","id":3,"result":null}`, Response, want{"id": "3", "result": "null"}},
		{"error", `{"jsonrpc":"2.0","id":3,"error":{"code":1}}`, ErrorResponse, want{"id": "3", "error": `{"code":1}`}},
		{"error to nobody", `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`, ErrorResponse, want{"id": "null", "error": `{"code":1}`}},
		{"result and null error", `{"jsonrpc":"2.0","id":3,"error":null,"result":1}`, Response, want{"id": "3", "error": "null", "result": "1"}},
		{"result and error", `{"jsonrpc":"2.0","id":3,"error":{},"result":null}`, ErrorResponse, want{"id": "3", "error": "{}", "result": "null"}},
		{"unknown members", `{"jsonrpc":"2.0","x":[{}],"id":3,"result":1,"y":{"id":9}}`, Response, want{"id": "3", "result": "1"}},
		{"escaped keys", `{"jsonrpc":"2.0","\u0069d":3,"m\u0065thod":"x","p\u0061rams":{"n\u0061me":"a"}}`, Request,
			want{"id": "3", "method": `"x"`, "params": `{"n\u0061me":"a"}`, "name": `"a"`}},
		{"keys that only look alike", `{"jsonrpc":"2.0","Id":1,"id ":2,"\\u0069d":3,"method":"x"}`, Notification, want{"method": `"x"`}},
		{"last member of params counts", `{"jsonrpc":"2.0","method":"x","params":{"name":"a","name":"b"}}`, Notification,
			want{"method": `"x"`, "name": `"b"`, "params": `{"name":"a","name":"b"}`}},
		{"odd ids", `{"jsonrpc":"2.0","id":[{"a":1}],"method":"x"}`, Request, want{"id": `[{"a":1}]`, "method": `"x"`}},
		{"empty string id", `{"jsonrpc":"2.0","id":"","method":"x"}`, Request, want{"id": `""`, "method": `"x"`}},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}, 5]`, Batch, want{}},
		{"empty batch", ` [ ] `, Batch, want{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var e Envelope
			if err := e.Scan([]byte(tt.line)); err != nil {
				t.Fatal(err)
			}
			if e.Kind != tt.kind {
				t.Errorf("kind = %v, want %v", e.Kind, tt.kind)
			}
			if diff := cmp.Diff(map[string]string(tt.want), seen(&e, tt.line)); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
			if want := tt.kind != Batch; e.Version2 != want {
				t.Errorf("Version2 = %v, want %v", e.Version2, want)
			}
		})
	}
}

func TestScanErrors(t *testing.T) {
	for _, tt := range []struct {
		line string
		want error
		id   string
	}{
		{"", ErrSyntax, ""},
		{"  ", ErrSyntax, ""},
		{"Server listening on 3000", ErrSyntax, ""},
		{"\xef\xbb\xbf{}", ErrSyntax, ""},
		{`{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":}}`, ErrSyntax, "5"},
		{`{"jsonrpc":"2.0","id":5,"method":"x"`, ErrSyntax, "5"},
		{`{"jsonrpc":"2.0","id":5,"method":"x"} x`, ErrSyntax, "5"},
		{`{"jsonrpc":"2.0","id":5,"method":"x"}{}`, ErrSyntax, "5"},
		{`{"id":5,}`, ErrSyntax, "5"},
		{`{,"id":5}`, ErrSyntax, ""},
		{`{"id":5 "a":1}`, ErrSyntax, "5"},
		{`{"id":5,"a":'x'}`, ErrSyntax, "5"},
		{`{"id":5,"a":"x` + "\n" + `"}`, ErrSyntax, "5"},
		{`{"id":5,"a":"\x"}`, ErrSyntax, "5"},
		{`{"id":5,"a":"\u12g4"}`, ErrSyntax, "5"},
		{`{"id":5,"a":01}`, ErrSyntax, "5"},
		{`{"id":5,"a":1.}`, ErrSyntax, "5"},
		{`{"id":5,"a":.5}`, ErrSyntax, "5"},
		{`{"id":5,"a":1e}`, ErrSyntax, "5"},
		{`{"id":5,"a":-}`, ErrSyntax, "5"},
		{`{"id":5,"a":NaN}`, ErrSyntax, "5"},
		{`{"id":5,"a":truefalse}`, ErrSyntax, "5"},
		{`{"id":5,"a":[1,]}`, ErrSyntax, "5"},
		{`{"id":5,"a":[1}]}`, ErrSyntax, "5"},
		{`[{"id":5}`, ErrSyntax, ""},
		{`"text"`, ErrNotObject, ""},
		{`17`, ErrNotObject, ""},
		{`null`, ErrNotObject, ""},
		{`{"jsonrpc":"2.0","id":5,"id":6,"method":"x"}`, ErrDuplicateKey, "5"},
		{`{"jsonrpc":"2.0","\u0069d":5,"id":6,"method":"x"}`, ErrDuplicateKey, "5"},
		{`{"jsonrpc":"2.0","method":"x","method":"y","id":6}`, ErrDuplicateKey, "6"},
		{`{"jsonrpc":"2.0","method":"x","params":{},"params":{},"id":6}`, ErrDuplicateKey, "6"},
		{`{"id":6,"result":1,"result":2}`, ErrDuplicateKey, "6"},
		{`{"id":6,"error":1,"error":2}`, ErrDuplicateKey, "6"},
		{`{}`, ErrNoMessage, ""},
		{`{"id":6}`, ErrNoMessage, "6"},
		{`{"result":6}`, ErrNoMessage, ""},
		{`{"level":30,"time":1,"msg":"a log line"}`, ErrNoMessage, ""},
		{`{"jsonrpc":"2.0","id":null,"method":"x"}`, ErrNoMessage, "null"},
		{`{"jsonrpc":"2.0","id":6,"method":5}`, ErrNoMessage, "6"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			var e Envelope
			e.Kind = Request
			if err := e.Scan([]byte(tt.line)); !errors.Is(err, tt.want) {
				t.Fatalf("error = %v, want %v", err, tt.want)
			}
			if e.Kind != Invalid {
				t.Errorf("kind = %v", e.Kind)
			}
			if got := string(e.ID.Of([]byte(tt.line))); got != tt.id {
				t.Errorf("id = %q, want %q", got, tt.id)
			}
		})
	}
}

func TestScanVersion(t *testing.T) {
	for line, want := range map[string]bool{
		`{"jsonrpc":"2.0","method":"x"}`:               true,
		`{"method":"x","jsonrpc":"2\u002e0"}`:          true,
		`{"json\u0072pc":"2.0","method":"x"}`:          true,
		`{"method":"x"}`:                               false,
		`{"jsonrpc":"1.0","method":"x"}`:               false,
		`{"jsonrpc":2.0,"method":"x"}`:                 false,
		`{"method":"x","params":{"jsonrpc":"2.0"}}`:    false,
		`{"jsonrpc":"2.0","jsonrpc":1,"method":"x"}`:   false,
		`{"jsonrpc":null,"jsonrpc":"2.0","method":""}`: true,
	} {
		var e Envelope
		if err := e.Scan([]byte(line)); err != nil || e.Version2 != want {
			t.Errorf("%s: Version2 = %v, error %v", line, e.Version2, err)
		}
	}
}

func TestScanDepth(t *testing.T) {
	nested := func(n int) string {
		return `{"method":"x","params":` + strings.Repeat(`[{"a":`, n/2) + strings.Repeat(`[`, n%2) + `1` +
			strings.Repeat(`]`, n%2) + strings.Repeat(`}]`, n/2) + `}`
	}
	for _, n := range []int{0, 1, 62, 63, 64, 65, 126, 127, 128, 129, 1000, 9_998, 9_999} {
		var e Envelope
		if err := e.Scan([]byte(nested(n))); err != nil {
			t.Errorf("%d levels: %v", n+1, err)
		}
		if n > 0 {
			bad := strings.Replace(nested(n), "1", "1}", 1)
			if err := e.Scan([]byte(bad)); n > 1 && err == nil {
				t.Errorf("%d levels with a bracket too many: no error", n+1)
			}
		}
	}
	var e Envelope
	for _, line := range []string{nested(10_000), nested(20_001), strings.Repeat("[", 1_000_000), `{"params":` + strings.Repeat(`{"a":`, 1_000_000)} {
		if err := e.Scan([]byte(line)); !errors.Is(err, ErrSyntax) {
			t.Errorf("too deep: error = %v", err)
		}
	}
}

func TestScanFlags(t *testing.T) {
	for _, tt := range []struct {
		text           string
		surrogate, bad bool
	}{
		{`plain`, false, false},
		{`é 日本語 😀 and enough of it to fill several words`, false, false},
		{`\ud83d\ude00`, false, false},
		{`\uD83D\uDE00`, false, false},
		{`\ud83d`, true, false},
		{`\ude00`, true, false},
		{`\ud83d\ud83d\ude00`, true, false},
		{`\ud83d\u0041`, true, false},
		{`\ud83d\n`, true, false},
		{`\ud83dx`, true, false},
		{`\\ud83d`, false, false},
		{`\\\ud83d`, true, false},
		{`\uffff\ue000\ud7ff`, false, false},
		{"\xff", false, true},
		{"12345678\xe2\x8212345678", false, true},
		{"\xed\xa0\x80", false, true},
		{"\xc0\x80", false, true},
		{"\xf4\x90\x80\x80", false, true},
		{"a long plain text before the bad byte \x80", false, true},
		{"\\ud800\xff", true, true},
	} {
		for _, line := range []string{
			`{"method":"` + tt.text + `"}`,
			`{"method":"x","` + tt.text + `":1}`,
			`{"method":"x","params":{"` + tt.text + `":1}}`,
			`{"method":"x","params":{"name":"` + tt.text + `"}}`,
			`{"method":"x","params":{"arguments":{"k":["` + tt.text + `"]}}}`,
			`{"id":1,"result":{"k":"` + tt.text + `"}}`,
			`["` + tt.text + `"]`,
			`[{"` + tt.text + `":1}]`,
		} {
			var e Envelope
			if err := e.Scan([]byte(line)); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			if e.Surrogate != tt.surrogate || e.BadUTF8 != tt.bad {
				t.Errorf("%q: surrogate %v, bad UTF-8 %v", line, e.Surrogate, e.BadUTF8)
			}
		}
	}
	var e Envelope
	if err := e.Scan([]byte("{\"method\":\"x\"}\xff")); !errors.Is(err, ErrSyntax) {
		t.Errorf("bad byte outside a string: %v", err)
	}
}

// Each byte value at each place of a word: the eight-at-a-time scan must agree with the grammar.
func TestScanEveryByteEverywhere(t *testing.T) {
	for place := range 20 {
		for c := range 256 {
			text := []byte(strings.Repeat("a", 20))
			text[place] = byte(c)
			line := `{"method":"` + string(text) + `"}`
			wantErr := c < ' ' || c == '"' || c == '\\'
			var e Envelope
			if err := e.Scan([]byte(line)); (err != nil) != wantErr || e.BadUTF8 != (c >= 0x80) {
				t.Fatalf("%q: error %v, bad UTF-8 %v", line, err, e.BadUTF8)
			}
		}
	}
}

func TestTrim(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		" \t\r\n":                 "",
		"\xef\xbb\xbf":            "",
		"\xef\xbb\xbf {} \r":      "{}",
		"{}\r":                    "{}",
		"{}":                      "{}",
		"\xef\xbb":                "\xef\xbb",
		" \xef\xbb\xbf{}":         "\xef\xbb\xbf{}",
		"\u00a0{}":                "\u00a0{}",
		"\r\n{\"a\": 1 }\r\n\t  ": "{\"a\": 1 }",
	} {
		if got := string(Trim([]byte(in))); got != want {
			t.Errorf("Trim(%q) = %q, want %q", in, got, want)
		}
	}
}

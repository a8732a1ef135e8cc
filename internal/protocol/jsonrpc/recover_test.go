package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"
)

// A short line is head and tail at once.
func TestRecoverIDOfAShortLine(t *testing.T) {
	for _, tt := range []struct{ name, line, want string }{
		{"broken after the id", `{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":}}`, "5"},
		{"broken before the id, depth still sure", `{"method":"x","params":{"a":NaN,"b":[-Infinity]},"id":5}`, "5"},
		{"control character in a string", "{\"method\":\"x\",\"params\":{\"a\":\"\n\t\"},\"id\":\"q-1\"}", `"q-1"`},
		{"bad escape", `{"method":"x","params":{"a":"C:\dir"},"id":5}`, "5"},
		{"bad UTF-8", "{\"method\":\"x\",\"params\":{\"a\":\"\xff\"},\"id\":5}", "5"},
		{"comma too many", `{"method":"x","params":{"a":1,},"id":5,}`, "5"},
		{"no version", `{"id":5,"method":"x"}`, "5"},
		{"space and escapes", " \xef\xbb\xbf", ""},
		{"byte order mark", "\xef\xbb\xbf { \"\\u0069d\" : \"\\u00e9\" , ", `"\u00e9"`},
		{"half a line, id before", `{"id":5,"method":"tools/ca`, "5"},
		{"half a line, id cut", `{"method":"x","id":5`, ""},
		{"half a line, string id whole", `{"method":"x","id":"5"`, `"5"`},
		{"half a line that looks ended", `{"result":{"a":1,"id":7}`, ""},
		{"half a line in a string that looks ended", `{"result":{"text":"a \",\"id\":7}`, ""},
		{"id only nested", `{"method":"x","params":{"id":5}}`, ""},
		{"id only nested, broken", `{"method":"x","params":{"id":5},"a":tru e}`, ""},
		{"id only in a string", `{"method":"x","params":"{\"id\":5}"`, ""},
		{"id only in an array", `{"method":"x","params":["id",5`, ""},
		{"quote missing", `{"params":{"text":"say "hi, "id":3} ok"},"id":5}`, ""},
		{"quote too many", `{"a":"foo,"b":{"c":1,"id":5}}`, ""},
		{"brace missing", `{"method":"x","params":{"a":NaN,"id":7}`, ""},
		{"brackets mixed up", `{"method":"x","params":[1},"id":7}`, ""},
		{"second message", `{"method":"x"}{"id":7}`, ""},
		{"no object", `[{"id":7}`, ""},
		{"text", `listening on "id":7}`, ""},
		{"null", `{"id":null,"method":5}`, ""},
		{"object", `{"id":{"id":5},"method":5}`, ""},
		{"array", `{"id":[5],"method":5}`, ""},
		{"no JSON", `{"id":01,"method":5}`, ""},
		{"no JSON string", `{"id":"\x","method":5}`, ""},
		{"no value", `{"id":,"method":5,"id":5}`, ""},
		{"fraction", `{"id":1.5,"method":}`, "1.5"},
		{"true", `{"id":true,"method":}`, "true"},
		{"key without quotes", `{id:5}`, ""},
		{"empty", ``, ""},
		{"deep", strings.Repeat(`{"a":`, maxDepth+2), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := RecoverID([]byte(tt.line), []byte(tt.line))
			if string(got) != tt.want || ok != (tt.want != "") {
				t.Errorf("RecoverID(%.80s) = %q, %v, want %q", tt.line, got, ok, tt.want)
			}
		})
	}
}

// Of a long line only head and tail are known.
func TestRecoverIDOfALongLine(t *testing.T) {
	const half = `{"jsonrpc":"2.0","result":{"content":[{"text":"aaaa`
	for _, tt := range []struct{ name, head, tail, want string }{
		{"in the head", `{"id":5,"result":"aa`, `aa"}`, "5"},
		{"number cut off", `{"id":5`, `5,"result":"aa"}`, ""},
		{"number whole, white space seen after it", `{"id":5 `, `,"result":"aa"}`, "5"},
		{"last", half, `aa"}]},"id":5}`, "5"},
		{"last, spaced", half, "aa\"}] } , \"id\" :\t5 } \r\n", "5"},
		{"last string", half, `aa"}]},"id":"a\"b\\"}`, `"a\"b\\"`},
		{"before the version", half, `aa"}]},"id":5,"jsonrpc":"2.0"}`, "5"},
		{"before other scalars", half, `aa"}]},"id":5,"a":null,"b":-1.5e3,"c":""}`, "5"},
		{"escaped key", half, `aa"}]},"\u0069d":5}`, "5"},
		{"whole message in the tail", `{"i`, `{"id":5}`, "5"},
		{"nothing known of the head", ``, `aa"}]},"id":5}`, "5"},
		{"in a string", half, `aa,\"id\":5}"}]}}`, ""},
		{"string value that ends like an id", half, `aa\",\"id\":5}"}`, ""},
		{"nested", half, `aa"}],"id":5}}`, ""},
		{"before an object", half, `aa"}]},"id":5,"_meta":{}}`, ""},
		{"other key", half, `aa"}]},"ids":5}`, ""},
		{"key cut off", half, `d":5}`, ""},
		{"key's quote uncertain", half, `"id":5}`, ""},
		{"value cut off", half, `5}`, ""},
		{"string value cut off", half, `abc"}`, ""},
		{"only backslashes known", half, `\\\"}`, ""},
		{"does not end", half, `aa"}]},"id":5`, ""},
		{"null", half, `aa"}]},"id":null}`, ""},
		{"broken head", `{"result":[1},"a":"`, `aa","id":5}`, ""},
		{"batch", `[{"result":"aa`, `aa","id":5}`, ""},
		{"head already over", `{"result":1} `, `aa","id":5}`, ""},
		{"id in the head is not an id", `{"id":{},"result":"aa`, `aa","id":5}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := RecoverID([]byte(tt.head), []byte(tt.tail))
			if string(got) != tt.want || ok != (tt.want != "") {
				t.Errorf("RecoverID = %q, %v, want %q", got, ok, tt.want)
			}
		})
	}
}

// What a message is stands before the value that makes it long.
func TestFirstOf(t *testing.T) {
	for _, tt := range []struct {
		head, name string
		want       bool
	}{
		{`{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{"messages":[{"te`, "method", true},
		{`{"jsonrpc":"2.0","id":5,"method":"sampling/crea`, "method", true},
		{` { "m\u0065thod" : `, "method", true},
		{`{"jsonrpc":"2.0","id":5,"result":{"method":"x","content":["`, "method", false},
		{`{"jsonrpc":"2.0","id":5,"result":{"method":"x","content":["`, "result", true},
		{`{"id":5,"params":{"a":[`, "method", false},
		{`{"id":5,"meth`, "method", false},
		{`[{"method":"x"}`, "method", false},
		{`"method"`, "method", false},
		{``, "method", false},
	} {
		if got := FirstOf([]byte(tt.head), tt.name) == tt.name; got != tt.want {
			t.Errorf("%s has %s: %v", tt.head, tt.name, got)
		}
	}
}

func FuzzRecoverID(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","id":7}}`,
		`{"result":{"content":[{"text":"a,\"id\":7}"}],"id":9},"jsonrpc":"2.0","id":"a\\"}`,
		`{"id" : 1.5 , "error":{"message":"\\\""}, "x":null, "y" : "" }`,
		`{"method":"x","params":{"a":NaN},"id":5}`,
		`{"method":"x","params":{"requestId":1,"id":2}}`,
		`[{"id":1,"result":{}}]`,
	} {
		f.Add([]byte(line), uint(20), uint(30))
		f.Add([]byte(line), uint(12), uint(2)) // after the white space that follows a number
		f.Add([]byte(line), uint(len(line)), uint(len(line)))
	}
	f.Fuzz(func(t *testing.T, line []byte, headLen, tailLen uint) {
		line = Trim(line)
		head := line[:min(headLen, uint(len(line)))]
		tail := line[uint(len(line))-min(tailLen, uint(len(line))):]
		id, ok := RecoverID(head, tail)
		if ok && (!json.Valid(id) || IsObject(id) || IsArray(id) || IsNull(id)) {
			t.Fatalf("%q is not an id", id)
		}
		var e Envelope
		if e.Scan(line) != nil || e.Kind == Batch {
			return
		}
		want := e.ID.Of(line)
		if ok && string(id) != string(want) {
			t.Fatalf("id of %q cut to %q … %q = %q, want %q", line, head, tail, id, want)
		}
		scalar := want != nil && !IsObject(want) && !IsArray(want) && !IsNull(want)
		if !ok && scalar && len(head) > e.ID.End {
			t.Fatalf("id of %q not found in %q", line, head)
		}
	})
}

package remote

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeaderValue(t *testing.T) {
	for value, want := range map[string]string{ // from the protocol's page, but for the empty one
		"us-west1":            "us-west1",
		"":                    "=?base64??=", // GitHub's server says that an empty header is missing
		"a\tb":                "a\tb",
		"Hello, 世界":           "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":            "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":        "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=":  "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64?no literal": "=?base64?no literal",
	} {
		if got := headerValue(value); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

// Every value comes back as it was, and none can begin another header.
func FuzzHeaderValue(f *testing.F) {
	f.Add("a b")
	f.Add("=?base64??=")
	f.Add("\r\nX: y")
	f.Fuzz(func(t *testing.T, value string) {
		h := headerValue(value)
		if strings.ContainsAny(h, "\r\n\x00") || h != strings.TrimSpace(h) {
			t.Errorf("%q is written as %q", value, h)
		}
		back := h
		if code, ok := strings.CutPrefix(h, "=?base64?"); ok && strings.HasSuffix(h, "?=") {
			plain, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(code, "?="))
			if err != nil {
				t.Fatal(err)
			}
			back = string(plain)
		}
		if back != value {
			t.Errorf("%q comes back as %q", value, back)
		}
	})
}

// Tools whose marks break one of the rules are left out, and only those.
func TestToolMarks(t *testing.T) {
	tool := func(name, schema string) string { return `{"name":"` + name + `","inputSchema":` + schema + `}` }
	property := func(p string) string { return `{"type":"object","properties":{"p":` + p + `}}` }
	deep := strings.Repeat(`{"properties":{"a":`, 500) + `{}` + strings.Repeat(`}}`, 500)
	good := []string{
		tool("plain", `{"type":"object","description":"x-mcp-header"}`),
		tool("string", property(`{"type":"string","x-mcp-header":"A"}`)),
		tool("nested", property(`{"type":"object","properties":{"q":{"type":"boolean","x-mcp-header":"B"}}}`)),
		tool("as data", property(`{"type":"object","default":{"x-mcp-header":"C"},"enum":[{"x-mcp-header":"C"}]}`)),
		tool("argument of that name", `{"properties":{"x-mcp-header":{"type":"string"}}}`),
		tool("deep", deep),
		`{"name":"no schema"}`,
	}
	bad := []string{
		tool("number", property(`{"type":"number","x-mcp-header":"A"}`)),
		tool("no type", property(`{"x-mcp-header":"A"}`)),
		tool("empty", property(`{"type":"string","x-mcp-header":""}`)),
		tool("space", property(`{"type":"string","x-mcp-header":"a b"}`)),
		tool("injected", property(`{"type":"string","x-mcp-header":"a\r\nX"}`)),
		tool("no string", property(`{"type":"string","x-mcp-header":1}`)),
		tool("escaped", property(`{"type":"string","\u0078-mcp-header":""}`)),
		tool("root", `{"type":"object","x-mcp-header":"A"}`),
		tool("twice", `{"properties":{"p":{"type":"string","x-mcp-header":"A"},"q":{"type":"string","x-mcp-header":"a"}}}`),
		tool("items", property(`{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`)),
		tool("items with properties", property(`{"items":{"properties":{"q":{"type":"string","x-mcp-header":"A"}}}}`)),
		tool("oneOf", `{"oneOf":[{"properties":{"p":{"type":"string","x-mcp-header":"A"}}}]}`),
		tool("$defs", `{"$defs":{"d":{"type":"string","x-mcp-header":"A"}}}`),
	}
	var h toolHeaders
	kept, dropped := h.learn([]byte(`{"tools": [` + strings.Join(append(good, bad...), ", ") + `], "nextCursor":"x"}`))
	if diff := cmp.Diff(`{"tools": [`+strings.Join(good, ",")+`], "nextCursor":"x"}`, string(kept)); diff != "" {
		t.Error(diff)
	}
	if len(dropped) != len(bad) {
		t.Errorf("%d left out, want %d: %q", len(dropped), len(bad), dropped)
	}
	if len(h) != 2 {
		t.Errorf("headers of %d tools, want those of string and nested: %v", len(h), h)
	}
	if h.learn([]byte(`{"tools":[{"name":"string","inputSchema":{}}]}`)); len(h["string"]) != 0 {
		t.Error("a tool that has lost its mark still has its header")
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestServe(t *testing.T) {
	long := strings.Repeat("é", bufferSize)
	call := func(message string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"message":"` + message + `"}}}` + "\n"
	}
	result := func(message string) string {
		return `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + message + `"}]}}` + "\n"
	}
	tests := []struct{ name, in, out string }{
		{"call in the client's form", call("hi"), result("hi")},
		{"escaped", call(`a\"b\u00e9`), result(`a\"b\u00e9`)},
		{"longer than a buffer", call(long), result(long)},
		{"other order", `{"id":"a","params":{"arguments":{"message":"x"},"name":"echo"},"method":"tools/call","jsonrpc":"2.0"}` + "\n",
			`{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"x"}]}}` + "\n"},
		{"initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}` + "\n",
			`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}}` + "\n"},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n", ""},
		{"two at once", `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" + call("x"), `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + result("x")},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}` + "\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if err := serve(strings.NewReader(test.in), &out, false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.out, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A server of both eras answers the question by which clients tell the eras apart; one of the earlier era does not know it.
func TestServeBothEras(t *testing.T) {
	for both, want := range map[bool]string{true: `"supportedVersions":["2026-07-28"]`, false: `"code":-32601`} {
		var out strings.Builder
		if err := serve(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`+"\n"), &out, both); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("both eras %v: got %s, want %s", both, out.String(), want)
		}
	}
}

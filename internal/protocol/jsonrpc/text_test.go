package jsonrpc

import (
	"bytes"
	"testing"
)

// Long strings are read eight bytes at a time: a special byte must be found at every offset, and escapes must be
// skipped at every offset.
func TestLongStringsAreReadRightEverywhere(t *testing.T) {
	for _, length := range []int{1, 15, 31, 32, 33, 63, 64, 65, 95, 96, 97, 130, 200} {
		plain := append(bytes.Repeat([]byte{'a'}, length), '"')
		for at := range length {
			check := func(what string, insert string, want int, flags flags) {
				t.Helper()
				text := append(append(bytes.Clone(plain[:at]), insert...), plain[at:]...)
				if got, f := scanString(append(text, bytes.Repeat([]byte{'z'}, 80)...), 0); got != want || f&^hasEscape != flags {
					t.Fatalf("%s at %d of %d: end %d, flags %b; want %d, %b", what, at, length, got, f, want, flags)
				}
			}
			check("nothing", "", length+1, 0)
			check("a quote", `"`, at+1, 0)
			check("an escaped quote", `\"`, length+3, 0)
			check("an escaped backslash", `\\`, length+3, 0)
			check("two escapes", `\n\\`, length+5, 0)
			check("a bad escape", `\x`, broken, 0)
			check("a long escape", `\u00e9`, length+7, 0)
			check("half a pair", `\ud800`, length+7, hasSurrogate)
			check("a tab", "\t", broken, 0)
			check("a control character", "\x1f", broken, 0)
			check("UTF-8", "é", length+3, 0)
			check("no UTF-8", "\xff", length+2, hasBadUTF8)
		}
	}
}

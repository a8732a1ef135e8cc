package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSanitize(t *testing.T) {
	const r = "\ufffd"
	for in, want := range map[string]string{
		``:                        ``,
		`{"a":"é😀\n\\ud800"}`:     `{"a":"é😀\n\\ud800"}`,
		`"\ud83d\ude00"`:          `"\ud83d\ude00"`,
		`"\ud83d"`:                `"\ufffd"`,
		`"\uDE00x"`:               `"\ufffdx"`,
		`"\ud83d\ud83d\ude00"`:    `"\ufffd\ud83d\ude00"`,
		`"\ud83d\u0041"`:          `"\ufffd\u0041"`,
		`"\\\ud83d"`:              `"\\\ufffd"`,
		`"\ud83`:                  `"\ud83`,
		`"\`:                      `"\`,
		"\\\xff":                  `\` + r,
		"\xff\xfe":                r + r,
		"a\xe2\x82b":              "a" + r + "b",
		"\xe2\x82":                r,
		"\xf0\x9f\x98":            r,
		"\xf0\x9f\x98\xf0\x9f":    r + r,
		"\xf0\x80\x80\x80":        r + r + r + r,
		"\xf4\x90\x80\x80":        r + r + r + r,
		"\xed\xa0\x80":            r + r + r,
		"\xc0\x80":                r + r,
		"\xe0\x9f\x80":            r + r + r,
		"\xc3(\xc3":               r + "(" + r,
		"é\xc3\xa9\xc3":           "éé" + r,
		"\xef\xbf\xbd \x80 plain": r + " " + r + " plain",
	} {
		if got := string(Sanitize([]byte("> "), []byte(in))); got != "> "+want {
			t.Errorf("Sanitize(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	for _, line := range []string{`{"a":"\ud800"}`, "{\"a\":\"\xe2\x82\"}", `"\ud83d\ude00\\ud800"`, "\xf0\x9f\x98", `plain`, "\"\\\xed\xa0\x80\""} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got := Sanitize(nil, line)
		if !utf8.Valid(got) {
			t.Fatalf("Sanitize(%q) = %q is not UTF-8", line, got)
		}
		if json.Valid(got) != json.Valid(line) {
			t.Fatalf("Sanitize(%q) = %q: JSON %v before, %v after", line, got, json.Valid(line), json.Valid(got))
		}
		if again := Sanitize(nil, got); !bytes.Equal(again, got) {
			t.Fatalf("Sanitize(%q) = %q, and again %q", line, got, again)
		}
		var before, after Envelope
		if errBefore, errAfter := before.Scan(line), after.Scan(got); errAfter == nil && (after.Surrogate || after.BadUTF8) ||
			errBefore == nil && !before.Surrogate && !before.BadUTF8 && !bytes.Equal(got, line) {
			t.Fatalf("Sanitize(%q) = %q", line, got)
		}
		if squeeze := func(s string) string { return strings.ReplaceAll(s, "\ufffd", "") }; !bytes.Contains(line, []byte(`\u`)) &&
			squeeze(string(got)) != squeeze(strings.ToValidUTF8(string(line), "")) {
			t.Fatalf("Sanitize(%q) = %q touched what was well", line, got)
		}
	})
}

package notify

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// PIV-12: a long message is split at ends of lines, each part fits, and nothing is lost but the white space between.
func TestSplit(t *testing.T) {
	var long Text
	for range 300 {
		long.WriteBold("Details:")
		long.Write(" twenty characters .\n")
	}
	parts := long.Split(MessageLimit)
	if len(parts) != 3 {
		t.Errorf("%d parts", len(parts))
	}
	for _, p := range parts {
		if !strings.HasPrefix(p.Body, "Details:") || !strings.HasSuffix(p.Body, ".") {
			t.Errorf("a line was cut: %.20q … %q", p.Body, p.Body[len(p.Body)-20:])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var text Text
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			s := rapid.StringOf(rapid.SampledFrom([]rune("ab \n😀é<"))).Draw(t, "piece")
			if rapid.Bool().Draw(t, "bold") {
				text.WriteBold(s)
			} else {
				text.Write(s)
			}
		}
		limit := rapid.IntRange(2, 20).Draw(t, "limit")
		if fit := text.Fit(limit); units(fit.Body) > limit || !strings.HasPrefix(strings.TrimSpace(text.Body), strings.TrimSuffix(fit.Body, more)) {
			t.Fatalf("%q was cut to %q", text.Body, fit.Body)
		}
		all, bold := "", 0
		for _, p := range text.Split(limit) {
			if n := units(p.Body); n == 0 || n > limit || !utf8.ValidString(p.Body) || strings.TrimSpace(p.Body) != p.Body {
				t.Fatalf("a part of %d units: %q", n, p.Body)
			}
			for _, b := range p.Bold {
				bold += len(strings.Join(strings.Fields(p.Body[b.Start:b.End]), ""))
			}
			all += p.Body
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if squeeze(all) != squeeze(text.Body) {
			t.Fatalf("%q became %q", text.Body, all)
		}
		want := 0
		for _, b := range text.Bold {
			want += len(squeeze(text.Body[b.Start:b.End]))
		}
		if bold != want {
			t.Fatalf("%d bytes are bold, want %d", bold, want)
		}
	})
}

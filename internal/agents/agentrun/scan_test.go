package agentrun

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

// filtered is what joined people are sent of an output that comes in pieces, and what it asks.
func filtered(pieces ...string) (passed string, asked []string) {
	var f scanner
	for _, p := range pieces {
		f.scan([]byte(p), func(p piece) {
			if p.kind == question {
				asked = append(asked, string(p.bytes))
			} else {
				passed += string(p.bytes)
			}
		})
	}
	return passed, asked
}

func TestQuestionsAreTakenOut(t *testing.T) {
	for name, tt := range map[string]struct {
		output, passed string
		asked          []string
	}{
		"text":                       {"a ü 漢 b\r\n", "a ü 漢 b\r\n", nil},
		"colours":                    {"\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m", nil},
		"modes":                      {"\x1b[?1049h\x1b[>1u\x1b[<u\x1b[>4;2m\x1b[>4n", "\x1b[?1049h\x1b[>1u\x1b[<u\x1b[>4;2m\x1b[>4n", nil},
		"the cursor's place":         {"a\x1b[6nb", "ab", []string{"\x1b[6n"}},
		"what it is":                 {"\x1b[c\x1b[>0c\x1b[>q\x05x", "x", []string{"\x1b[c", "\x1b[>0c", "\x1b[>q", "\x05"}},
		"its keyboard":               {"\x1b[?u\x1b[?2026$p", "", []string{"\x1b[?u", "\x1b[?2026$p"}},
		"its size":                   {"\x1b[18t\x1b[22;0t", "\x1b[22;0t", []string{"\x1b[18t"}},
		"colours, asked for":         {"\x1b]11;?\x07\x1b]10;?\x1b\\\x1b]4;1;?\x07-", "-", []string{"\x1b]11;?\x07", "\x1b]10;?\x1b\\", "\x1b]4;1;?\x07"}},
		"a title":                    {"\x1b]0;who?\x07-", "\x1b]0;who?\x07-", nil},
		"a link":                     {"\x1b]8;;http://x/?a\x1b\\y\x1b]8;;\x1b\\", "\x1b]8;;http://x/?a\x1b\\y\x1b]8;;\x1b\\", nil},
		"termcap":                    {"\x1bP+q544e\x1b\\\x1bP$qm\x1b\\-", "-", []string{"\x1bP+q544e\x1b\\", "\x1bP$qm\x1b\\"}},
		"a picture":                  {"\x1b_Gf=100;AAAA\x1b\\", "\x1b_Gf=100;AAAA\x1b\\", nil},
		"can it show pictures":       {"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\", "", []string{"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\"}},
		"broken off":                 {"\x1b]0;half\x1b[6n\x1b[3\x1b[31mx\x1b\x1b[5n", "\x1b]0;half\x1b[3\x1b[31mx\x1b", []string{"\x1b[6n", "\x1b[5n"}},
		"cancelled":                  {"\x1b[6\x18n", "\x1b[6\x18n", nil},
		"a question in a long one":   {"\x1b]52;c;" + strings.Repeat("A", 2*heldLimit) + "\x07\x1b[6n.", "\x1b]52;c;" + strings.Repeat("A", 2*heldLimit) + "\x07.", []string{"\x1b[6n"}},
		"a long one, broken off":     {"\x1b]52;c;" + strings.Repeat("A", 2*heldLimit) + "\x1b[6n.", "\x1b]52;c;" + strings.Repeat("A", 2*heldLimit) + ".", []string{"\x1b[6n"}},
		"bytes that are not letters": {"\xff\xfe\xc3(\xe2\x28\xa1.", "\xff\xfe\xc3(\xe2\x28\xa1.", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var single []string
			for i := range len(tt.output) {
				single = append(single, tt.output[i:i+1])
			}
			for how, pieces := range map[string][]string{"whole": {tt.output}, "byte by byte": single} {
				passed, asked := filtered(pieces...)
				if diff := cmp.Diff(tt.passed, passed); diff != "" {
					t.Errorf("%s: passed on: %s", how, diff)
				}
				if diff := cmp.Diff(tt.asked, asked); diff != "" {
					t.Errorf("%s: asked: %s", how, diff)
				}
			}
		})
	}
}

// However the output is cut, the same is passed on, and nothing is lost: what is passed on and what was asked are all of it,
// but for what is not finished yet.
func TestScannerLosesNothing(t *testing.T) {
	words := []string{"a", "ü", "漢", "\x1b", "[", "]", "6n", "c", "0;x", "\x07", "\\", "?", ";", "\x18", "P", "+q", "\x05", "\xe6", "31m", "\r\n", strings.Repeat("long ", 2000)}
	rapid.Check(t, func(t *rapid.T) {
		output := strings.Join(rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "output"), "")
		cuts := rapid.SliceOf(rapid.IntRange(0, len(output))).Draw(t, "cuts")
		slices.Sort(cuts)
		var pieces []string
		at := 0
		for _, c := range append(cuts, len(output)) {
			pieces, at = append(pieces, output[at:c]), c
		}
		wholePassed, wholeAsked := filtered(output)
		passed, asked := filtered(pieces...)
		if !slices.Equal(asked, wholeAsked) {
			t.Fatalf("asked %q, whole %q", asked, wholeAsked)
		}
		// A long sequence passes as it comes: the rest may still be held.
		if len(output) <= heldLimit && passed != wholePassed {
			t.Fatalf("passed %q, whole %q", passed, wholePassed)
		}
		var f scanner
		var all string
		for _, p := range pieces {
			f.scan([]byte(p), func(p piece) { all += string(p.bytes) })
		}
		if all += string(f.held); all != output {
			t.Fatalf("%q became %q", output, all)
		}
	})
}

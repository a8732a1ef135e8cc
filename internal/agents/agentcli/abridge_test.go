//go:build !race && !wine

// One goroutine reads here: the race detector would find nothing, at ten times the cost.

package agentcli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// abridged is a record after it has passed in parts of a length.
func abridged(record string, part int) (string, bool) {
	var a abridger
	for len(record) > 0 {
		n := min(part, len(record))
		a.write([]byte(record[:n]))
		record = record[n:]
	}
	text, large := a.record()
	return string(text), large
}

// anyValue draws a value of JSON, with short texts.
func anyValue(depth int) *rapid.Generator[any] {
	plain := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.Float64Range(-1e9, 1e9), func(n float64) any { return n }),
		rapid.SampledFrom([]any{true, false, nil, "\"", `\`, "\u2028", "é\n\x00", "😀"}),
	)
	if depth == 0 {
		return plain
	}
	return rapid.OneOf(plain,
		rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 4), func(a []any) any { return a }),
		rapid.Map(rapid.MapOfN(rapid.String(), anyValue(depth-1), 0, 4), func(m map[string]any) any { return m }),
	)
}

// A record without long texts is the same after it has passed, however it was cut.
func TestAbridgedRecordIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.MapOfN(rapid.String(), anyValue(3), 0, 5).Draw(rt, "record")
		text, err := json.MarshalIndent(want, "", rapid.SampledFrom([]string{"", " ", "\t"}).Draw(rt, "indent"))
		if err != nil {
			rt.Fatal(err)
		}
		short, large := abridged(string(text), rapid.IntRange(1, 40).Draw(rt, "part"))
		var before, after any
		if large || json.Unmarshal(text, &before) != nil || json.Unmarshal([]byte(short), &after) != nil {
			rt.Fatalf("%s became %s", text, short)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestAbridgedTextsKeepTheirEnds(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{"plain": "QUJD", "escapes": `\n`, "unicode": `\u00e9`, "quotes": `\"`, "backslashes": `\\`, "utf-8": "é😀"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			long := func(middle string) string {
				half := strings.Repeat(unit, 200_000/len(unit)+1)
				return `{"content":[{"tool_use_id":"t1","data":"first` + half + middle + half + `last","type":"tool_result"}],"uuid":"u"}`
			}
			short, _ := abridged(long("a"), 4099)
			other, _ := abridged(long("b"), 4099)
			again, _ := abridged(long("a"), 64<<10)
			var r struct {
				UUID    string
				Content []struct {
					Data, Type string
					ID         string `json:"tool_use_id"`
				}
			}
			if err := json.Unmarshal([]byte(short), &r); err != nil || len(r.Content) != 1 {
				t.Fatalf("%v: %.200s", err, short)
			}
			c := r.Content[0]
			if r.UUID != "u" || c.ID != "t1" || c.Type != "tool_result" || !strings.HasPrefix(c.Data, "first") || !strings.HasSuffix(c.Data, "last") {
				t.Errorf("%+.200v", r)
			}
			if len(short) > 6*endKept {
				t.Errorf("%d bytes are left", len(short))
			}
			if short != again || short == other {
				t.Errorf("the same text stays the same: %v; another one does: %v", short == again, short == other)
			}
		})
	}
}

// Of a record with very many parts an outline is left, with what its calls are named by.
func TestAbridgedOutline(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"type":"user","toolUseResult":{"lines":[`)
	for i := range 400_000 {
		fmt.Fprintf(&b, `%d,"line %d",{"deep":[{"deeper":[{"deepest":[{"gone":[1]}]}]}]},`, i, i)
		if b.Len() > 24<<20 {
			break
		}
	}
	many := b.String()
	numbers := `{"type":"user","toolUseResult":{"data":[` + strings.Repeat("0.123456,true,", 1_000_000)
	tail := `null]},"message":{"content":[{"type":"tool_result","content":[{"type":"text","text":"ok"}],"tool_use_id":"t1"}]}}`
	short, large := abridged(numbers+tail, 64<<10)
	if large || len(short) > outlineMost {
		t.Fatalf("numbers: large %v, %d bytes", large, len(short))
	}
	p := newClaude()
	told(p, claudePrompt, claudeBash)
	p.line([]byte(short))
	if got := p.now().snapshot(); got.Open != Model {
		t.Errorf("the outline does not close its call: %q", reading(got))
	}
	for name, text := range map[string]string{
		"so many objects": many + tail, "so many levels": `{"a":` + strings.Repeat("[", 2*deepest) + strings.Repeat("]", 2*deepest) + `}`,
	} {
		if _, large := abridged(text, 64<<10); !large {
			t.Errorf("a record with %s may not be kept, and is not called large", name)
		}
	}
}

func TestAbridgedIsNoRecord(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"an array": "[1]", "a text": `"x"`, "a number": "7", "nothing": "", "half of it": `{"a":"b`, "not closed": `{"a":1`, "closed twice": `{}}`,
		"two": `{"a":1}{"b":2}`, "NUL": strings.Repeat("\x00", 9<<20), "words": strings.Repeat("x", 5<<20),
	} {
		if short, large := abridged(text, 64<<10); large || json.Valid([]byte(short)) && short != "" {
			t.Errorf("%s became %.80q, large %v", name, short, large)
		}
	}
}

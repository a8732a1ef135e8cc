package jsonrpc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reports collects what a scan says about its progress, and fails the test if that does not grow.
func reports(t *testing.T, e *Envelope) *[]int {
	t.Helper()
	var seen []int
	e.Behind = func(upTo int) {
		if n := len(seen); upTo <= 0 || n > 0 && upTo <= seen[n-1] {
			t.Fatalf("behind %d after %v", upTo, seen)
		}
		seen = append(seen, upTo)
	}
	return &seen
}

// compareScans fails the test unless two scans of one line ended alike.
func compareScans(t *testing.T, want, got Envelope, wantErr, gotErr error) {
	t.Helper()
	want.Behind, got.Behind = nil, nil
	if diff := cmp.Diff(want, got); diff != "" || wantErr != gotErr {
		t.Fatalf("error %v, want %v; envelope (-want +got):\n%s", gotErr, wantErr, diff)
	}
}

func TestBehind(t *testing.T) {
	fill := func(piece string) string { return strings.Repeat(piece, giant/len(piece)) }
	some := func(piece string) string { return strings.Repeat(piece, 2<<20/len(piece)) }
	str := func(text string) string { return `"` + text + `"` }
	result := func(value string) string { return `{"jsonrpc":"2.0","id":1,"result":` + value + `}` }
	params := func(rest string) string { return `{"jsonrpc":"2.0","id":1,"method":"m","params":{` + rest + `}}` }
	for name, line := range map[string]string{
		"ASCII":               result(str(fill("All of it is plain. "))),
		"CJK":                 result(str(fill("日本語の文章"))),
		"emoji":               result(str(some("😀"))),
		"escapes":             result(str(some(`a\n\u00e9\\`))),
		"surrogates":          result(str(some(`\ud83d\ude00`))),
		"lone surrogate last": result(str(some(`\ud83d\ude00`) + `\ud83d`)),
		"not UTF-8 at all":    result(str(some("\xe3\x81"))),
		"not UTF-8 once":      result(str(some("é") + "\xc3")),
		"control character":   result(str(some("x") + "\n")),
		"unterminated":        `{"id":1,"result":"` + some("é"),
		"numbers":             result("[" + fill("1,-2.5,") + "0]"),
		"params":              params(some(`"name":"a","k":[{}],`) + `"task":{}`),
		"giant key":           params(str(some("k")+`\n`) + `:1,"name":"x"`),
		"giant key on top":    `{` + str(some("é")) + `:1,"method":"x"}`,
		"giant version":       `{"method":"x","jsonrpc":` + str(some("2")) + `}`,
		"nested deep":         result(strings.Repeat("[", 9000) + str(some("x")) + strings.Repeat("]", 9000)),
		"nested too deep":     result(some("[")),
		"result twice":        `{"id":1,"result":{},"result":` + str(some("x")) + `}`,
		"batch":               "[" + some(`{"id":1,"method":"ping"},`) + "1]",
		"only a string":       str(some("x")),
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(line)
			var want, got Envelope
			wantErr := want.Scan(text)
			seen := reports(t, &got)
			gotErr := got.Scan(text)
			compareScans(t, want, got, wantErr, gotErr)
			if name == "nested too deep" {
				return
			}
			last := 0
			for _, at := range append(*seen, len(text)) {
				if at-last > 512<<10 || at > len(text) {
					t.Fatalf("from %d to %d of %d", last, at, len(text))
				}
				last = at
			}
		})
	}
}

// Whatever stands at the border of two parts, and wherever in it the border falls, the outcome is the same.
func TestBehindBorders(t *testing.T) {
	const step = 4 << 10
	for _, odd := range []string{
		"é", "語", "😀", "\xc3", "\xe8\xaa", "\xf0\x9f\x98", "\xff", "\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "語\x9e", "\xe8\xaaé",
		`\n`, `\"`, `\\`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83dx`, `\x`, `\u12g4`, `\`, "\n", `"`, `","method":"x`,
	} {
		for shift := range 16 {
			text := `{"id":1,"result":"` + strings.Repeat("x", step)
			line := []byte(text[:step-shift] + odd + strings.Repeat("x", 20) + strings.Repeat("語", step) + `"}`)
			var want, got Envelope
			wantErr := want.Scan(line)
			seen := reports(t, &got)
			gotErr := got.scanLong(line, step)
			compareScans(t, want, got, wantErr, gotErr)
			if wantErr == nil && len(*seen) < 3 {
				t.Fatalf("%q, %d before the border: reports %v", odd, shift, *seen)
			}
		}
	}
}

func TestBehindOnlyForLongTexts(t *testing.T) {
	line := []byte(fmt.Sprintf(`{"id":1,"result":%q}`, strings.Repeat("x", longText-40)))
	e := Envelope{Behind: func(int) { t.Error("reported") }}
	if err := e.Scan(line); err != nil || len(line) > longText {
		t.Fatal(err, len(line))
	}
	if e.Behind == nil {
		t.Error("Scan took the function away")
	}
}

// Bytes that were reported are not needed any more: a scan whose text is wiped behind it ends as one of the whole text.
func TestBehindIsLeftAlone(t *testing.T) {
	const head = `{"jsonrpc":"2.0","id":1,"method":"m","params":`
	for _, rest := range []string{
		`{"name":"` + strings.Repeat(`語\n\ud83d\ude00x`, 40) + `","k":[1,2,{"a":[{}]}],"cursor":"c","` + strings.Repeat("k", 120) + `\n":1,"task":{"a":"é"}}}`,
		`[` + strings.Repeat(`{"a":"語","b":[1.5,true,null]},`, 30) + `1],"other":"` + strings.Repeat("é", 50) + `","error":null}`,
		strings.Repeat("[", 80) + `"x"` + strings.Repeat("]", 80) + `}`,
	} {
		for step := 4; step < 40; step++ {
			line := []byte(head + rest)
			var want, got Envelope
			wantErr := want.Scan(line)
			wiped := append([]byte(nil), line...)
			got.Behind = func(upTo int) {
				for i := len(head); i < upTo; i++ {
					wiped[i] = 0
				}
			}
			gotErr := got.scanLong(wiped, step)
			compareScans(t, want, got, wantErr, gotErr)
		}
	}
}

// FuzzBehind holds a scan that reports every few bytes against one that does not.
func FuzzBehind(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,-2.5e3,true,false,null]}}}`,
		`{"result":{"content":[{"type":"text","text":"a\nb\u00e9\ud83d\ude00 語 é 😀"}],"resultType":"complete"},"jsonrpc":"2\u002e0","id":"7"}`,
		"{\"method\":\"\xff\\ud800語語\xe8\xaa\"}", `{"\u0069d":1,"id":2,"method":"x"}`, strings.Repeat(`[`, 130) + strings.Repeat(`]`, 130),
	} {
		f.Add([]byte(line), byte(0))
	}
	f.Fuzz(func(t *testing.T, line []byte, step byte) {
		var want, got Envelope
		wantErr := want.Scan(line)
		seen := reports(t, &got)
		gotErr := got.scanLong(line, 4+int(step))
		compareScans(t, want, got, wantErr, gotErr)
		if n := len(*seen); n > 0 && (*seen)[n-1] > len(line) {
			t.Fatalf("%q: reports %v", line, *seen)
		}
	})
}

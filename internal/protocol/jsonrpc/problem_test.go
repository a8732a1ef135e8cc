package jsonrpc

import (
	"strings"
	"testing"
)

func TestProblem(t *testing.T) {
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}" }
	for line, want := range map[string]string{
		deep(maxDepth):     "nested more than 10000 levels deep",
		deep(maxDepth)[:5]: "not valid JSON",
		`{"a":"` + strings.Repeat("[", maxDepth+1) + `",}`: "not valid JSON",
		`{"a":"`: "not valid JSON",
		"":       "not valid JSON",
	} {
		var e Envelope
		if e.Scan([]byte(line)) == nil {
			t.Errorf("%.20s is not a problem", line)
		}
		if got := Problem([]byte(line)); got != want {
			t.Errorf("%.20s: %q, want %q", line, got, want)
		}
	}
}

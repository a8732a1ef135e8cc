package clients

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func tomlWord(t *rapid.T) string {
	return rapid.SampledFrom([]string{`"a"`, `'b\'`, `""`, `"--"`, `"""x"""`, `'''y'''`, `"\u00e9\n"`, `"# no"`, `"],"`}).Draw(t, "word")
}

// tomlList draws an array, also over several lines with comments.
func tomlList(t *rapid.T) string {
	gap := func() string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{" ", "\n", "\t", "# ,[]\n"}), 0, 2).Draw(t, "gap"), "")
	}
	n := rapid.IntRange(0, 3).Draw(t, "items")
	var b strings.Builder
	for i := range n {
		b.WriteString(gap() + tomlWord(t) + gap())
		if i < n-1 || rapid.Bool().Draw(t, "trailing comma") {
			b.WriteString(",")
		}
	}
	return "[" + b.String() + gap() + "]"
}

func drawTOML(t *rapid.T) []byte {
	var b strings.Builder
	b.WriteString("model = \"m\" # mine\n")
	comment := func() string {
		return rapid.SampledFrom([]string{"\n", " # c\n", "\n\n", "\n# c\n"}).Draw(t, "line end")
	}
	var tables, lines strings.Builder
	for i := range rapid.IntRange(0, 4).Draw(t, "servers") {
		keys := rapid.Permutation([]string{"command", "args", "env", "x"}).Draw(t, "keys")
		keys = slices.DeleteFunc(keys, func(k string) bool { return k != "command" && rapid.Bool().Draw(t, "without "+k) })
		value := map[string]string{"command": tomlWord(t), "args": tomlList(t), "env": `{ K = "v" }`, "x": "1"}
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			fmt.Fprintf(&tables, "  [mcp_servers.s%d]%s", i, comment())
			for _, k := range keys {
				fmt.Fprintf(&tables, "\t%s = %s%s", k, value[k], comment())
			}
		case 1:
			var members []string
			for _, k := range keys {
				members = append(members, k+" = "+value[k])
			}
			fmt.Fprintf(&lines, "s%d = { %s }%s", i, strings.Join(members, ", "), comment())
		case 2:
			for _, k := range keys {
				fmt.Fprintf(&lines, "s%d.%q=%s%s", i, k, value[k], comment())
			}
		}
	}
	b.WriteString("[mcp_servers]\n" + lines.String() + tables.String())
	return []byte(strings.TrimSuffix(b.String(), rapid.SampledFrom([]string{"\n", ""}).Draw(t, "end")))
}

// As for JSON: undoing is exact, in every form in which servers can be written.
func TestTOMLUndo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawTOML(t)
		c := Named("codex")
		before, err := c.Servers(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		after, outcomes, err := c.Wrap(text, inFront)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		wrapped := map[string]bool{}
		for _, o := range outcomes {
			wrapped[o.Server.Name] = o.Why == ""
		}
		servers, err := c.Servers(after)
		if err != nil {
			t.Fatalf("%v\n%s", err, after)
		}
		for i, s := range servers {
			if inner, ok := s.Inner(); wrapped[s.Name] && (!ok || !slices.Equal(inner, before[i].Argv())) {
				t.Fatalf("%s starts %q instead of %q\n%s", s.Name, inner, before[i].Argv(), after)
			}
		}
		back, _, err := c.Unwrap(after, func(s Server) bool { return wrapped[s.Name] })
		if err != nil || !bytes.Equal(back, text) {
			t.Fatalf("%v (-before +after):\n%s", err, cmp.Diff(string(text), string(back)))
		}
	})
}

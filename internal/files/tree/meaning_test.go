package tree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

func yamlOf(t *testing.T, text string) (*Node, string) {
	t.Helper()
	s := fileerror.NewSource("f", []byte(text))
	root, problems := Read(YAML, s)
	if err := s.Problems(problems); err != nil {
		return root, err.Error()
	}
	return root, ""
}

// Members added by << come after a group's own, and never replace them.
func TestMerge(t *testing.T) {
	root, wrong := yamlOf(t, "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: [*a, *b], x: 5}\n")
	c := root.Get("c")
	if got := fmt.Sprint(c.TextOf("x"), c.TextOf("y"), c.TextOf("z")); wrong != "" || got != "524" {
		t.Errorf("%s %s", got, wrong)
	}
}

// Groups that merge groups may not multiply: each of these has all keys of the one before, and memory would be full.
func TestMergesWithoutEnd(t *testing.T) {
	var text strings.Builder
	text.WriteString("g0: &g0 {")
	for i := range 2000 {
		fmt.Fprintf(&text, "k%d: , ", i)
	}
	text.WriteString("}\n")
	for i := range 2000 {
		fmt.Fprintf(&text, "g%d: &g%d {<<: *g%d}\n", i+1, i+1, i)
	}
	root, wrong := yamlOf(t, text.String())
	members := 0
	for _, k := range root.Kids {
		members += len(k.Kids)
	}
	if members > mostMerged+4000 || strings.Count(wrong, "<< is used too often") != 1 {
		t.Errorf("%d members, %.200s", members, wrong)
	}
}

// An alias must not be inside its own target, and shares the target's members.
func TestAliases(t *testing.T) {
	if _, wrong := yamlOf(t, "a: &a\n  b: *a\n"); !strings.HasPrefix(wrong, "f:2:6: this contains itself") {
		t.Errorf("got %s", wrong)
	}
	root, _ := yamlOf(t, "&name shop: {called: *name}\n")
	if got := root.Get("shop").TextOf("called"); got != "shop" {
		t.Errorf("an alias of a key is %q", got)
	}
	root, _ = yamlOf(t, "a: &a {b: 1}\nc: *a\n")
	if a, c := root.Get("a").Get("b"), root.Get("c").Get("b"); a != c || c == nil {
		t.Errorf("two nodes, %v and %v", a, c)
	}
	if c := root.Get("c"); c.Key != "c" || c.KeyPos.Line != 2 || c.Pos.Line != 1 {
		t.Errorf("the alias is %+v", c)
	}
}

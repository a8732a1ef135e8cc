package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// A server's schema is read for the client that calls the tool, not while everybody waits.
func TestSchemasAreNotReadOnTheLoop(t *testing.T) {
	deep := "{" + strings.Repeat(`"properties":{"p":{`, 4000) + `"type":"string","x-mcp-header":"A"` + strings.Repeat("}}", 4000) + "}"
	flat := `{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`
	for _, test := range []struct{ name, schema, want string }{
		{"deep", deep, "[]"},
		{"flat", flat, "[{Region [region]}]"},
		{"none", `{}`, "[]"},
	} {
		w := newWorld(t, Options{})
		w.plan("a", plan{modern: true, schema: test.schema, tools: []string{"do", "do2", "do3", "do4", "do5"}})
		w.serve(named("a"))
		begun := time.Now()
		if got := toolsOf(t, w.client().modern("1", "tools/list", "")); len(got) != 5 {
			t.Errorf("%s: tools %v", test.name, got)
		}
		tier.Within(t, test.name+": the list", time.Since(begun), 2*time.Second)
		if got := fmt.Sprint(w.gw.headerParams("", "a_do")); got != test.want {
			t.Errorf("%s: mirrored %s, want %s", test.name, got, test.want)
		}
	}
}

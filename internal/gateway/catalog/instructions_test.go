package catalog

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

func TestInstructions(t *testing.T) {
	servers := []Server{{Name: "a", Prefix: "f.s"}, {Name: "b"}, {Name: "c"}}
	for _, tc := range []struct {
		name  string
		names Names
		texts []string
		want  string
	}{
		{"none", Never, []string{"", " \n", ""}, ""},
		{"bare names", Never, []string{"Read first.\n", "", "Be kind."}, "# a\n\nRead first.\n\n# c\n\nBe kind."},
		{"prefixed names", Always, []string{"Read first.", "", ""}, "# a\n\nThe names of its tools and prompts begin with f_s_ here.\n\nRead first."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Instructions(tc.names, servers, tc.texts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// However long the texts are, the result is limited and valid, a long text does not shorten another short one, and
// the space is used.
func TestInstructionsAreBounded(t *testing.T) {
	all := strings.Repeat("é", 100_000) // shared by all: 3000 copies would be 600 MB
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 7, 100, 3000}).Draw(t, "servers")
		servers, texts, total := make([]Server, n), make([]string, n), 0
		for i := range servers {
			servers[i].Name = fmt.Sprintf("s%d", i)
			texts[i] = all[:len("é")*rapid.SampledFrom([]int{0, 1, 2, 50, 5_000, 100_000}).Draw(t, "length")]
			total += len(texts[i])
		}
		got := Instructions(Never, servers, texts)
		if len(got) > InstructionBytes || !utf8.ValidString(got) {
			t.Fatalf("%d bytes, valid %v", len(got), utf8.ValidString(got))
		}
		if total > 2*InstructionBytes && n <= 7 && len(got) < InstructionBytes-8*n {
			t.Fatalf("only %d bytes are used", len(got))
		}
		for i, text := range texts {
			if n <= 100 && text != "" && len(text) <= 100 && !strings.Contains(got+"\n", fmt.Sprintf("# s%d\n\n%s\n", i, text)) {
				t.Fatalf("the short text of s%d is cut", i)
			}
		}
	})
}

package engine

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

// Every list of texts is told from every other by its key, and the key has only bytes that every engine takes.
func TestKeyNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "texts")
		key := Key("beat", texts...)
		if got := Names("beat", key); !slices.Equal(got, texts) {
			t.Fatalf("%q became %s, which is %q", texts, key, got)
		}
		if strings.Trim(strings.ToLower(key), "abcdefghijklmnopqrstuvwxyz0123456789-_=.") != "" {
			t.Fatalf("%q became %s", texts, key)
		}
	})
	for _, strange := range []string{"lease.a", "beat", "beat.", "beat.=4", "beat.a b", "beat.=zz"} {
		if got := Names("beat", strange); got != nil {
			t.Errorf("%s is said to be %q", strange, got)
		}
	}
}

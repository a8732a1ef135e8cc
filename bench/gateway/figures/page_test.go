package figures

import (
	"errors"
	"testing"
)

func TestReplaceSection(t *testing.T) {
	for _, c := range []struct {
		name, page, want string
		err              error
	}{
		{"appended", "# Page\n\ntext\n", "# Page\n\ntext\n\n<!-- x:begin -->\nnew\n<!-- x:end -->\n", nil},
		{"replaced", "a\n<!-- x:begin -->\nold\n<!-- x:end -->\nb\n", "a\n<!-- x:begin -->\nnew\n<!-- x:end -->\nb\n", nil},
		{"another's markers", "<!-- y:begin -->\nkept\n<!-- y:end -->\n",
			"<!-- y:begin -->\nkept\n<!-- y:end -->\n\n<!-- x:begin -->\nnew\n<!-- x:end -->\n", nil},
		{"no end", "a\n<!-- x:begin -->\nold\n", "", ErrMarkers},
		{"no begin", "a\n<!-- x:end -->\n", "", ErrMarkers},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := replaceSection(c.page, "x", "new\n")
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

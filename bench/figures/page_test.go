package figures

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlaceSection(t *testing.T) {
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
			got, err := placeSection(c.page, "x", "new\n")
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

// A page is read in an editor, too: its lines have an end, but for those of tables and code.
func TestLinesOfAPage(t *testing.T) {
	long := strings.Repeat("word ", 40) + "end"
	got := wrapped(long + "\n| " + long + " |\n```\n" + long + "\n```\nshort\n")
	want := strings.TrimSpace(strings.Repeat("word ", 28)) + "\n" + strings.Repeat("word ", 12) + "end\n| " + long + " |\n```\n" + long + "\n```\nshort\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if again := wrapped(got); again != got {
		t.Errorf("again it is another one:\n%s", again)
	}
}

// Parts that share a page write their own section and leave the others' as they are, whichever comes first.
func TestSectionsOfOnePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("# Page\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, section := range [][2]string{{"a", "1\n"}, {"b", "2\n"}, {"a", "3\n"}, {"b", "4\n"}} {
		if err := WriteSection(path, section[0], section[1]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Page\n\n<!-- a:begin -->\n3\n<!-- a:end -->\n\n<!-- b:begin -->\n4\n<!-- b:end -->\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

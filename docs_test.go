package outlive_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/event"
)

func docs(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range append(paths, "README.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	return texts
}

// A reader finds every file that the documentation names.
func TestDocsNameFilesThatExist(t *testing.T) {
	goFile := regexp.MustCompile(`(?:\w[\w.-]*/)+[\w-]+\.go\b`)
	for path, text := range docs(t) {
		for _, name := range goFile.FindAllString(text, -1) {
			if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
				t.Errorf("%s names %s: %v", path, name, err)
			}
		}
	}
}

// The table "Where is …?" names what is really in the file.
func TestWhereIsTable(t *testing.T) {
	row := regexp.MustCompile("\\| `([\\w./-]+\\.go)` \\| `(?:\\w+\\.)?(\\w+)` \\|")
	rows := row.FindAllStringSubmatch(docs(t)["docs/ARCHITECTURE.md"], -1)
	if len(rows) < 50 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, m := range rows {
		text, err := os.ReadFile(filepath.FromSlash(m[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		defined := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |\t|const |var )` + m[2] + `\b`)
		if !defined.Match(text) {
			t.Errorf("%s does not define %s", m[1], m[2])
		}
	}
}

// Every link from one document to another, and into its headings, leads somewhere.
func TestDocsLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	texts := docs(t)
	for path, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target := path
			if m[1] != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(path), m[1]))
			}
			if _, err := os.Stat(filepath.FromSlash(target)); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			} else if m[2] != "" && !hasAnchor(texts[target], m[2]) {
				t.Errorf("%s links to %s%s: no such heading", path, target, m[2])
			}
		}
	}
}

// hasAnchor reports whether text has a heading whose anchor this is, as GitHub makes them.
func hasAnchor(text, anchor string) bool {
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		name := dropped.ReplaceAllString(strings.ToLower(heading[1]), "")
		if "#"+strings.ReplaceAll(name, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// Whoever searches the audit log finds each event explained.
func TestEveryEventIsDocumented(t *testing.T) {
	text := docs(t)["docs/OPERATIONS.md"]
	for _, e := range event.Types() {
		if !strings.Contains(text, "| `"+string(e)+"` |") {
			t.Errorf("docs/OPERATIONS.md has no line for the event %s", e)
		}
	}
}

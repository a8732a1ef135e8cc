package house

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func docs(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range append(paths, "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.ToSlash(path)] = strings.ReplaceAll(string(text), "\r\n", "\n")
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

// The table of docs/INDEX.md names what is really in the files. Each symbol of a row is defined in one of them, and each Go file
// defines one of them.
func TestWhereIsTable(t *testing.T) {
	quoted := regexp.MustCompile("^`([^`]+)`$")
	names := func(cell string) (all []string) {
		for part := range strings.SplitSeq(cell, ", ") {
			m := quoted.FindStringSubmatch(part)
			if m == nil {
				t.Errorf("docs/INDEX.md: %q is not a list of names in backquotes", cell)
				continue
			}
			all = append(all, m[1])
		}
		return all
	}
	rows := 0
	for line := range strings.Lines(docs(t)["docs/INDEX.md"]) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 {
			continue
		}
		files, symbols := strings.TrimSpace(cells[len(cells)-2]), strings.TrimSpace(cells[len(cells)-1])
		if files == "" && symbols == "" || files == "file" || strings.HasPrefix(files, "---") {
			continue // a heading
		}
		rows++
		code, defines := map[string][]byte{}, map[string]bool{}
		for _, file := range names(files) {
			text, err := os.ReadFile(filepath.FromSlash(file))
			if err != nil {
				t.Error(err)
			}
			code[file] = text
		}
		for _, symbol := range names(symbols) {
			pattern := `(?m)^(?:func (?:\([^)]*\) )?|type |\t|const |var )` + symbol + `\b`
			if of, name, method := strings.Cut(symbol, "."); method {
				pattern = `(?m)^func \((?:\w+ )?\*?` + of + `\) ` + name + `\b`
			}
			defined, found := regexp.MustCompile(pattern), false
			for file, text := range code {
				if defined.Match(text) {
					found, defines[file] = true, true
				}
			}
			if !found {
				t.Errorf("docs/INDEX.md: no file of %s defines %s", files, symbol)
			}
		}
		for file := range code {
			if strings.HasSuffix(file, ".go") && !defines[file] {
				t.Errorf("docs/INDEX.md: %s defines none of %s: name one of its symbols in the row, or take it out", file, symbols)
			}
		}
	}
	if rows < 300 {
		t.Fatalf("only %d rows", rows)
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

// Documents are read in an editor, and by people in a hurry: no long line but those of tables, no long paragraph, a README of some
// screens.
func TestDocsAreShort(t *testing.T) {
	item := regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	texts := docs(t)
	delete(texts, "CHANGELOG.md")
	for path, text := range texts {
		code, paragraph := false, 0
		for n, line := range strings.Split(text, "\n") {
			fence := strings.HasPrefix(line, "```")
			if fence {
				code = !code
			}
			switch {
			case strings.HasPrefix(line, "|"):
				paragraph = 0
				continue
			case code || fence || strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
				paragraph = 0
			case item.MatchString(line):
				paragraph = 1
			default:
				paragraph++
			}
			if utf8.RuneCountInString(line) > 140 {
				t.Errorf("%s:%d: a line of more than 140 characters", path, n+1)
			}
			if paragraph == 7 {
				t.Errorf("%s:%d: a paragraph of more than 6 lines", path, n+1)
			}
		}
	}
	if n := strings.Count(texts["README.md"], "\n"); n > 150 {
		t.Errorf("README.md has %d lines, and 150 at most", n)
	}
}

// The moving picture of the README shows a demo that went well, and needs nothing but itself. packaging/screencast makes it.
func TestScreencast(t *testing.T) {
	if !strings.Contains(docs(t)["README.md"], "](docs/demo.svg)") {
		t.Error("README.md does not show docs/demo.svg")
	}
	text, err := os.ReadFile(filepath.Join("docs", "demo.svg"))
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch part := token.(type) {
		case xml.CharData:
			shown.Write(part)
		case xml.StartElement:
			if name := part.Name.Local; !slices.Contains([]string{"svg", "title", "desc", "style", "rect", "text"}, name) {
				t.Errorf("the picture has an element %s", name)
			}
		}
	}
	for _, want := range []string{"$ outlive demo", " 0 errors. 4 restarts", "$ outlive wrap --dry-run", "nothing was written", "prefers-reduced-motion"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("the picture does not show %q", want)
		}
	}
}

// Whoever searches the audit log finds each event explained.
func TestEveryEventIsDocumented(t *testing.T) {
	text := docs(t)["docs/OPERATIONS.md"]
	source, err := os.ReadFile("internal/record/event/event.go")
	if err != nil {
		t.Fatal(err)
	}
	types := regexp.MustCompile(`(?m)^(?:\t|const )\w+ +Type = "(\w+)"`).FindAllSubmatch(source, -1)
	if len(types) == 0 {
		t.Error("no type of event is found")
	}
	for _, m := range types {
		if !strings.Contains(text, "| `"+string(m[1])+"` |") {
			t.Errorf("docs/OPERATIONS.md has no line for the event %s", m[1])
		}
	}
}

// contracts reads docs/CONTRACTS.md: each rule's number, and its right column.
func contracts(t *testing.T) map[string]string {
	t.Helper()
	rules := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| ((?:WD|RT|GW|TP|PIV)-\d+) \| .* \| (.*) \|$`).FindAllStringSubmatch(docs(t)["docs/CONTRACTS.md"], -1) {
		if _, twice := rules[m[1]]; twice {
			t.Errorf("%s is there twice", m[1])
		}
		rules[m[1]] = m[2]
	}
	if len(rules) < 70 {
		t.Fatalf("only %d rules", len(rules))
	}
	return rules
}

// Every rule of the contracts is held by something, and what is named there exists.
func TestEveryContractIsHeld(t *testing.T) {
	tests := map[string]bool{}
	scripts := map[string]bool{}
	define := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for path, text := range repository(t) {
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range define.FindAllStringSubmatch(text, -1) {
				tests[m[1]] = true
			}
		}
		if dir := filepath.Dir(path); dir == filepath.Join("testdata", "script") || dir == filepath.Join("testdata", "dialogue") {
			scripts[filepath.Base(path)] = true
		}
	}
	name := regexp.MustCompile("`([^`]+)`")
	for rule, held := range contracts(t) {
		names := name.FindAllStringSubmatch(held, -1)
		if len(names) == 0 {
			t.Errorf("%s is held by nothing", rule)
		}
		for _, m := range names {
			if !tests[m[1]] && !scripts[m[1]] {
				t.Errorf("%s is held by %s, which is neither a test nor a script", rule, m[1])
			}
		}
	}
}

// Who finds the number of a rule anywhere finds the rule.
func TestEveryRuleThatIsCitedExists(t *testing.T) {
	rules := contracts(t)
	cited := regexp.MustCompile(`\b(?:WD|RT|GW|TP|PIV)-\d+\b`)
	former := regexp.MustCompile(`\bS[0-4]\b`)
	for path, text := range repository(t) {
		for _, rule := range cited.FindAllString(text, -1) {
			if _, there := rules[rule]; !there {
				t.Errorf("%s cites %s: docs/CONTRACTS.md has no such rule", path, rule)
			}
		}
		if m := former.FindString(text); m != "" {
			t.Errorf("%s says %s: cite a rule of docs/CONTRACTS.md", path, m)
		}
	}
}

// Watching costs no tokens (PIV-24): no program of ours looks for the key of a model.
func TestNoModelsKeyIsRead(t *testing.T) {
	for path, text := range repository(t) {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && strings.Contains(text, "ANTHROPIC_"+"API_KEY") {
			t.Errorf("%s knows a model's key", path)
		}
	}
}

// repository reads every text of this repository that people have written, and the schemas.
func repository(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, name := range publishedFiles(t) {
		wanted := slices.Contains([]string{".go", ".md", ".txtar", ".sh", ".json", ".yaml", ".yml", ".py", ".mjs", ".rs", ".txt"}, path.Ext(name)) ||
			strings.HasPrefix(name, ".ci/") || name == "Makefile"
		if wanted && path.Base(name) != "package-lock.json" {
			texts[name] = strings.ReplaceAll(string(readText(name)), "\r\n", "\n")
		}
	}
	return texts
}

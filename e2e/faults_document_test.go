package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	agentTitles   = map[string]string{"claude": "Claude Code", "codex": "Codex CLI"}
	agentPackages = map[string]string{"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex"}
	agentHeadless = map[string]string{"claude": "`claude -p`", "codex": "`codex exec`"}
)

// clientsHeading is the heading of the section that TestFaults writes and compares.
const clientsHeading = "## AI clients"

// none is the cell of an event that cannot happen.
const none = "–"

// document compares the section with what has just been seen, or writes it. Cells that this run has not filled are left
// as they are.
func (f *faults) document(t *testing.T) {
	text := readDocument(t)
	before, section, after := cutSection(t, text, clientsHeading)
	f.keep(section)
	compareDocument(t, text, before+f.render(t)+after, "TestFaults")
	readme, err := os.ReadFile(filepath.Join(filepath.Dir(tools.root), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range agentTitles {
		if named := name + " " + packaged(t, "node_modules/"+agentPackages[kind]); !strings.Contains(string(readme), named) {
			t.Errorf("README.md says in its opening what clients do, and not of %s", named)
		}
	}
}

// keep takes the cells that were not filled from the section.
func (f *faults) keep(section string) {
	for _, kind := range []string{"claude", "codex"} {
		_, table, _ := strings.Cut(section, "\n| "+agentTitles[kind])
		table, _, _ = strings.Cut(table, "\n\n")
		for _, r := range faultRows {
			_, line, found := strings.Cut(table, "\n| "+r.title+" | ")
			if !found {
				continue
			}
			line, _, _ = strings.Cut(line, "\n")
			for i, word := range strings.Split(strings.TrimSuffix(line, " |"), " | ") {
				f.fill(usages(kind)[i].name(), r.key, word)
			}
		}
	}
}

func (f *faults) fill(name, row, word string) {
	if f.cells[name] == nil {
		f.cells[name] = map[string]string{}
	}
	if _, ok := f.cells[name][row]; !ok {
		f.cells[name][row] = word
	}
}

func (f *faults) render(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s\n\nWhat clients make of a stdio server that dies, stops or changes: alone, and behind `outlive run` with its default settings. The clients\n"+
		"and the server (Go SDK) are real, in a terminal and headless; the models are mocks that call the tools\n"+
		"([e2e/faults_test.go](../e2e/faults_test.go)). Nobody reconnects by hand. *%s*: the client says that there is no such tool.\n", clientsHeading, gone)
	for _, kind := range []string{"claude", "codex"} {
		title := fmt.Sprintf("%s %s: the server is …", agentTitles[kind], packaged(t, "node_modules/"+agentPackages[kind]))
		out.WriteString("\n")
		header(&out, title, "terminal", "terminal, outlive", agentHeadless[kind], agentHeadless[kind]+", outlive")
		for _, r := range faultRows {
			cells := []string{r.title}
			for _, u := range usages(kind) {
				word := f.cells[u.name()][r.key]
				if r.terminal && u.headless {
					word = none
				}
				cells = append(cells, word)
			}
			row(&out, cells...)
		}
	}
	return out.String()
}

// TestFaultsKeptCells: what a run has not seen stays in the document.
func TestFaultsKeptCells(t *testing.T) {
	f := &faults{cells: map[string]map[string]string{}}
	for _, u := range append(usages("claude"), usages("codex")...) {
		for i, r := range faultRows {
			f.fill(u.name(), r.key, fmt.Sprintf("%s %d", u.name(), i))
		}
	}
	section := f.render(t)
	kept := &faults{cells: map[string]map[string]string{}}
	kept.fill("claude/terminal/alone", faultRows[0].key, "seen")
	kept.keep(section)
	want := strings.Replace(section, "claude/terminal/alone 0", "seen", 1)
	if now := kept.render(t); now != want {
		t.Errorf("kept:\n%s\nwant:\n%s", now, want)
	}
	if slices.ContainsFunc(faultRows, func(r faultRow) bool { return r.promise == nil }) {
		t.Error("a row promises nothing")
	}
}

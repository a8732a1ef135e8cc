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
	agentTitles = map[string]string{
		"claude": "Claude Code", "codex": "Codex CLI", "gemini": "Gemini CLI", "opencode": "OpenCode", "copilot": "GitHub Copilot CLI", "qwen": "Qwen Code",
	}
	agentPackages = map[string]string{
		"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex",
		"gemini": "@google/gemini-cli", "opencode": "opencode-ai", "copilot": "@github/copilot", "qwen": "@qwen-code/qwen-code",
	}
	agentHeadless = map[string]string{
		"claude": "`claude -p`", "codex": "`codex exec`",
		"gemini": "`gemini -p`", "opencode": "`opencode run`", "copilot": "`copilot -p`", "qwen": "`qwen -p`",
	}
)

// clientsHeading is the heading of the section that TestFaults writes and compares.
const clientsHeading = "## AI clients"

// none is the cell of an event that cannot happen.
const none = "–"

// otherTitle is the first cell of the table of the other clients.
const otherTitle = "Four more, headless"

// titleOf is how the first cell of a table begins.
func titleOf(kinds []string) string {
	if others(kinds) {
		return otherTitle
	}
	return agentTitles[kinds[0]]
}

// rowsIn are the rows of a table.
func rowsIn(kinds []string) (rows []faultRow) {
	for _, r := range faultRows {
		if !others(kinds) || r.others {
			rows = append(rows, r)
		}
	}
	return rows
}

// headsOf are the heads of a table's columns. The versions of the other clients are those in e2e/clis/package.json, for
// only a full run installs them.
func headsOf(t *testing.T, kinds []string) []string {
	t.Helper()
	if !others(kinds) {
		kind := kinds[0]
		title := fmt.Sprintf("%s %s: the server is …", titleOf(kinds), packaged(t, "node_modules/"+agentPackages[kind]))
		return []string{title, "terminal", "terminal, outlive", agentHeadless[kind], agentHeadless[kind] + ", outlive"}
	}
	heads := []string{titleOf(kinds) + ": the server is …"}
	for _, kind := range kinds {
		version := strings.Trim(pinned(t, "clis/package.json", `    "`+agentPackages[kind]+`": "`), `",`)
		heads = append(heads, agentTitles[kind]+" "+version+", "+agentHeadless[kind], agentHeadless[kind]+", outlive")
	}
	return heads
}

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
	for _, kind := range []string{"claude", "codex"} {
		if named := agentTitles[kind] + " " + packaged(t, "node_modules/"+agentPackages[kind]); !strings.Contains(string(readme), named) {
			t.Errorf("README.md says in its opening what clients do, and not of %s", named)
		}
	}
}

// keep takes the cells that were not filled from the section, and those of a client alone that has lost the tool in other words: which
// error it meets first depends on what it does while the server dies.
func (f *faults) keep(section string) {
	for _, kinds := range clientTables {
		_, table, _ := strings.Cut(section, "\n| "+titleOf(kinds))
		table, _, _ = strings.Cut(table, "\n\n")
		columns := usages(kinds)
		for _, r := range rowsIn(kinds) {
			_, line, found := strings.Cut(table, "\n| "+r.title+" | ")
			if !found {
				continue
			}
			line, _, _ = strings.Cut(line, "\n")
			for i, word := range strings.Split(strings.TrimSuffix(line, " |"), " | ") {
				u := columns[i]
				f.fill(u.name(), r.key, word)
				if !u.behind && !writesDocument() && lost(word) && lost(f.cells[u.name()][r.key]) {
					f.cells[u.name()][r.key] = word
				}
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

// lost reports whether a cell says that the client has the tool no more.
func lost(word string) bool {
	return word == gone || strings.HasPrefix(word, "error: ") && !strings.Contains(word, "timed out")
}

func (f *faults) render(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s\n\nWhat clients make of a stdio server that dies, stops or changes: alone, and behind `outlive run` with its default settings. The clients\n"+
		"and the server (Go SDK) are real, in a terminal and headless; the models are mocks that call the tools\n"+
		"([e2e/faults_test.go](../e2e/faults_test.go)). Nobody reconnects by hand. *%s*: the client says that there is no such tool.\n"+
		"*… and called 2 times*: the client has sent once more what may have taken effect.\n", clientsHeading, gone)
	for _, kinds := range clientTables {
		out.WriteString("\n")
		header(&out, headsOf(t, kinds)...)
		for _, r := range rowsIn(kinds) {
			cells := []string{r.title}
			for _, u := range usages(kinds) {
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
	for _, kinds := range clientTables {
		for _, u := range usages(kinds) {
			for i, r := range faultRows {
				f.fill(u.name(), r.key, fmt.Sprintf("%s %d", u.name(), i))
			}
		}
	}
	section := f.render(t)
	kept := &faults{cells: map[string]map[string]string{}}
	kept.fill("claude/terminal/alone", faultRows[0].key, "seen")
	kept.fill("qwen/headless/outlive", faultRows[0].key, "seen, too")
	kept.keep(section)
	want := strings.Replace(section, "claude/terminal/alone 0", "seen", 1)
	want = strings.Replace(want, "qwen/headless/outlive 0", "seen, too", 1)
	if now := kept.render(t); now != want {
		t.Errorf("kept:\n%s\nwant:\n%s", now, want)
	}
	if slices.ContainsFunc(faultRows, func(r faultRow) bool { return r.promise == nil }) {
		t.Error("a row promises nothing")
	}
}

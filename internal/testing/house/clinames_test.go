package house

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// cliTable has the rows of the agent CLIs: whoever wants to know something of one reads its row.
const cliTable = "internal/agents/agentcli/table.go"

// clisElsewhere are where a CLI may be named outside the table and its own files, and why. A folder ends with a slash. In a
// file only texts may: no code depends on them.
var clisElsewhere = map[string]string{
	"internal/ops/clients/":              "another table: the configuration files of AI clients, most of which are not agent CLIs",
	"internal/gateway/config/":           "likewise: the clients' own files as a configuration",
	"internal/agents/monitor/options.go": "the command of PIV-9",
	"internal/ops/cli/agentadd.go":       "examples in a help text",
	"internal/ops/cli/agentattach.go":    "examples in a help text",
	"internal/ops/cli/agentrun.go":       "examples in a help text",
	"internal/ops/cli/gateway.go":        "names of clients' files in a help text",
	"internal/ops/cli/hooks.go":          "examples in a help text",
}

// checkCLINames finds the names of agent CLIs in the code of a file: in identifiers and in texts, not in comments.
func checkCLINames(s *source, names []string, textsMay bool) []finding {
	named := func(text string) string {
		i := slices.IndexFunc(names, func(name string) bool { return hasWord(text, name) })
		if i < 0 {
			return ""
		}
		return names[i]
	}
	var found []finding
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Ident:
			if name := named(n.Name); name != "" {
				found = append(found, s.at(n.Pos(), "%s is of %s: say it in a row of %s, and read the row", n.Name, name, cliTable))
			}
		case *ast.BasicLit:
			if name := named(n.Value); name != "" && n.Kind == token.STRING && !textsMay {
				found = append(found, s.at(n.Pos(), "a text names %s: say it in a row of %s, and read the row", name, cliTable))
			}
		}
		return true
	})
	return found
}

// hasWord reports whether a word of text, which may be an identifier, is name: "amp" is in AMP_HOME, newAmp and ampFiles, not in stamp.
func hasWord(text, name string) bool {
	lower := strings.ToLower(text)
	for at := 0; ; at += len(name) {
		i := strings.Index(lower[at:], name)
		if i < 0 {
			return false
		}
		at += i
		before, first, after := byte(' '), text[at], byte(' ')
		if at > 0 {
			before = text[at-1]
		}
		if at+len(name) < len(text) {
			after = text[at+len(name)]
		}
		begins := !isLetter(before) || isUpper(first) && !isUpper(before)
		ends := !isLetter(after) || isUpper(after) && !isUpper(text[at+len(name)-1])
		if begins && ends {
			return true
		}
	}
}

func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool { return isUpper(c) || 'a' <= c && c <= 'z' }

// ownOfCLI reports a CLI's own file: the table, its reader or its format of hooks.
func ownOfCLI(file string, names []string) bool {
	dir, base := path.Split(file)
	return file == cliTable || slices.Contains([]string{"internal/agents/agentcli/", "internal/agents/hooks/"}, dir) &&
		slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(base, name) })
}

func cliNames() []string {
	var names []string
	for _, c := range agentcli.CLIs() {
		names = append(names, string(c.Kind))
	}
	return names
}

// A new agent CLI is a row of one table, and at most two files of its own.
func TestOneTableOfCLIs(t *testing.T) {
	names := cliNames()
	used := map[string]bool{}
	for _, s := range loadTree(t) {
		if s.test || s.wing == "testing" || s.wing == "" && !strings.HasPrefix(s.path, "cmd/") || ownOfCLI(s.path, names) {
			continue
		}
		dir, _ := path.Split(s.path)
		where := s.path
		if clisElsewhere[dir] != "" {
			where = dir
		}
		found := checkCLINames(s, names, false)
		if len(found) > 0 && clisElsewhere[where] != "" {
			used[where] = true
			if found = nil; where == s.path {
				found = checkCLINames(s, names, true)
			}
		}
		for _, f := range found {
			t.Error(f)
		}
	}
	for where := range clisElsewhere {
		if !used[where] {
			t.Errorf("%s names no agent CLI any more: take it out of clisElsewhere", where)
		}
	}
}

// docs/AGENTS.md has a line for each CLI, and what it says of resuming and hooks is what the row says.
func TestDocumentedCLIs(t *testing.T) {
	text := docs(t)["docs/AGENTS.md"]
	for _, c := range agentcli.CLIs() {
		if !c.Known() {
			continue
		}
		resume, tells := "nothing is suggested", "nothing"
		if c.Resume != "" {
			resume = "`" + c.Resume + "`"
		}
		if c.Hooks != nil {
			tells = "turns"
			if slices.ContainsFunc(c.Hooks.Events, func(e agentcli.Since) bool { return e.Name == agentcli.PermissionRequest }) {
				tells = "turns and permissions"
			}
		}
		if line := "\n| " + c.Title + " | `" + string(c.Kind) + "` | " + resume + " | " + tells + " |"; !strings.Contains(text, line) {
			t.Errorf("docs/AGENTS.md has no line%s", line)
		}
	}
}

func TestCLINamesAreFound(t *testing.T) {
	for text, want := range map[string][2]int{ // findings, and those that are left where texts may
		`var silent = []Kind{agentcli.Codex}`:        {1, 1},
		`func isCodex() bool { return kind == "x" }`: {1, 1},
		`var dir = ".claude"`:                        {1, 0},
		"var help = `Of Claude Code.`":               {1, 0},
		"// Codex does so.\nvar n = 1":               {0, 0},
		`var newCodexRow, CODEX_HOME, codices int`:   {2, 2},
	} {
		s, err := parseSource("internal/agents/monitor/x.go", []byte("package monitor\n\n"+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int{len(checkCLINames(s, cliNames(), false)), len(checkCLINames(s, cliNames(), true))}; got != want {
			t.Errorf("%s: %d findings, want %d", text, got, want)
		}
	}
}

package e2e

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

// A test with a program of somebody else says so, in a line of its own: `foreign: NAME`. .ci/testcount reads these lines: only a test
// that has said so may be tried once more when it has failed. The helpers that start programs say it, so that no test has to.

// toldForeign are the lines that were written: a name is said once by each test.
var toldForeign sync.Map

// foreign notes that the test runs a program that is not ours.
func foreign(t testing.TB, name string) {
	t.Helper()
	if _, told := toldForeign.LoadOrStore([2]string{t.Name(), name}, true); !told {
		t.Log("foreign: " + name)
	}
}

// foreignParts are parts of command lines and of configurations, and the programs that they run.
var foreignParts = []struct{ part, name string }{
	{"bin/goserver", "Go SDK server"},
	{"servers/py_server.py", "Python SDK server"},
	{"servers/ts_server.mjs", "TypeScript SDK server"},
	{"servers/ts2_server.mjs", "TypeScript SDK server"},
	{"clients/ts", "TypeScript SDK client"},
	{"clients/py_client.py", "Python SDK client"},
	{"/server-everything/", "server-everything"},
	{"mcp-server-everything", "server-everything"},
	{"/server-filesystem/", "server-filesystem"},
	{"/server-memory/", "server-memory"},
	{"bin/rmcp-server", "rmcp"},
	{"bin/mcpgo-server", "mcp-go"},
	{"bin/conformance-", "Go SDK server"},
	{"/inspector/", "MCP Inspector"},
	{".bin/claude", "Claude Code"},
	{".bin/codex", "Codex"},
	{".bin/gemini", "Gemini CLI"},
	{".bin/opencode", "OpenCode"},
	{".bin/copilot", "Copilot CLI"},
	{".bin/qwen", "Qwen Code"},
}

// foreignNames are the foreign programs in a command line, or in the text of a configuration.
func foreignNames(words ...string) (names []string) {
	for _, one := range foreignParts {
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, one.part) }) {
			names = append(names, one.name)
		}
	}
	return names
}

// foreignIn notes them.
func foreignIn(t testing.TB, words ...string) {
	t.Helper()
	for _, name := range foreignNames(words...) {
		foreign(t, name)
	}
}

// TestForeignProgramsAreSaid: what runs a foreign program is known by its command line, and what runs only ours is not.
func TestForeignProgramsAreSaid(t *testing.T) {
	for name, srv := range servers() {
		if len(foreignNames(srv.argv...)) == 0 {
			t.Errorf("the server %s is of somebody else, and %q does not show it", name, srv.argv)
		}
	}
	for _, ours := range [][]string{
		{tools.outlive, "run", "--", "sh", "-c", "exit 3"}, {tools.outlive, "fleet", "hub", "--listen", "127.0.0.1:0"}, sickServer(), oddServer("silent").argv,
	} {
		if names := foreignNames(ours...); len(names) > 0 {
			t.Errorf("%q is all ours, and is taken for %q", ours, names)
		}
	}
}

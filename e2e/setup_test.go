package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tools are the programs the tests start, found or built once by TestMain.
var tools struct {
	outlive  string // "" when the sessions run direct
	goserver string
	python   string // of the virtual environment with the Python SDK
	node     string
	root     string // this directory
}

func TestMain(m *testing.M) {
	if err := checkTier(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(2)
	}
	if err := findTools(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err, "(e2e/run.sh installs everything)")
		os.Exit(1)
	}
	code := m.Run()
	for _, fault := range notShown() {
		fmt.Fprintln(os.Stderr, "e2e:", fault)
		code = max(code, 1)
	}
	os.Exit(code)
}

func findTools() error {
	var err error
	if tools.root, err = os.Getwd(); err != nil {
		return err
	}
	if tools.node, err = exec.LookPath("node"); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	tools.python = filepath.Join(tools.root, ".work", "venv", "bin", "python")
	for _, need := range []string{tools.python, filepath.Join(tools.root, "node_modules", "@modelcontextprotocol", "sdk")} {
		if _, err := os.Stat(need); err != nil {
			return err
		}
	}
	bin := filepath.Join(tools.root, ".work", "bin")
	tools.goserver = filepath.Join(bin, "goserver")
	if err := goBuild(tools.root, tools.goserver, "./servers/goserver"); err != nil {
		return err
	}
	if os.Getenv("E2E_DIRECT") == "1" {
		return nil
	}
	if tools.outlive = os.Getenv("OUTLIVE_BIN"); tools.outlive != "" {
		_, err = os.Stat(tools.outlive)
		return err
	}
	tools.outlive = filepath.Join(bin, "outlive")
	return goBuild(filepath.Dir(tools.root), tools.outlive, "./cmd/outlive")
}

func goBuild(dir, out, pkg string) error {
	cmd := exec.Command("go", "build", "-o", out, pkg)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// direct says that no outlive stands between client and server, so nothing may be killed.
func direct() bool { return tools.outlive == "" }

// needOutlive skips a test that says nothing without outlive.
func needOutlive(t *testing.T) {
	t.Helper()
	if direct() {
		t.Skip("E2E_DIRECT=1: needs outlive")
	}
}

// server is one real MCP server and what the tests may expect of it.
type server struct {
	name   string
	argv   []string
	legacy bool // speaks initialize
	modern bool // speaks 2026-07-28
	match  string
}

func servers() map[string]server {
	py := filepath.Join(tools.root, "servers", "py_server.py")
	js := func(name string) string { return filepath.Join(tools.root, "servers", name) }
	everything := filepath.Join(tools.root, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	all := []server{
		{name: "py", argv: []string{tools.python, py}, legacy: true, modern: true},
		{name: "ts", argv: []string{tools.node, js("ts_server.mjs")}, legacy: true},
		{name: "ts2", argv: []string{tools.node, js("ts2_server.mjs")}, legacy: true, modern: true},
		{name: "ts2-modern", argv: []string{tools.node, js("ts2_server.mjs"), "--modern"}, modern: true},
		{name: "go", argv: []string{tools.goserver}, legacy: true, modern: true},
		{name: "go-legacy", argv: []string{tools.goserver, "-era", "legacy"}, legacy: true},
		{name: "everything", argv: []string{tools.node, everything, "stdio"}, legacy: true},
	}
	byName := map[string]server{}
	for _, s := range all {
		s.match = s.argv[len(s.argv)-1]
		byName[s.name] = s
	}
	return byName
}

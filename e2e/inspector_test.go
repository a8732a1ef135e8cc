package e2e

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestInspector: the MCP Inspector's command line over outlive lists and calls tools.
func TestInspector(t *testing.T) {
	t.Parallel()
	s := servers()["everything"]
	w := newWorkspace(t)
	launcher := filepath.Join(tools.root, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	inspect := func(t *testing.T, args ...string) []byte {
		t.Helper()
		argv := append(append([]string{launcher, "--cli"}, w.wrap(s.argv)...), args...)
		foreignIn(t, argv...)
		cmd := exec.Command(tools.node, argv...)
		cmd.Env = w.env()
		cmd.Dir = w.dir
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("inspector %v: %v\n%s%s", args, err, stdout.Bytes(), stderr.Bytes())
		}
		return stdout.Bytes()
	}
	t.Run("tools/list", func(t *testing.T) {
		var list struct{ Tools []struct{ Name string } }
		out := inspect(t, "--method", "tools/list")
		if err := json.Unmarshal(out, &list); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
		}
		want := []string{"echo", "get-sum"}
		if !direct() {
			want = append(want, "restart_server", "verify_server_restarted", "server_status")
		}
		for _, name := range want {
			if !slices.Contains(names, name) {
				t.Errorf("tool %s is missing from %v", name, names)
			}
		}
	})
	t.Run("tools/call", func(t *testing.T) {
		out := inspect(t, "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello")
		r := reply{Result: out}
		if r.text() != "Echo: hello" {
			t.Errorf("echo: %s", out)
		}
	})
	w.noneLeft(t)
}

package clients

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func systemOf(os, home string, env ...string) System {
	return System{OS: os, Home: home, Env: func(name string) string {
		for _, kv := range env {
			if k, v, _ := strings.Cut(kv, "="); k == name {
				return v
			}
		}
		return ""
	}}
}

// Where each client's files are.
func TestPlaces(t *testing.T) {
	linux := systemOf("linux", "/home/ada")
	mac := systemOf("darwin", "/Users/ada")
	windows := systemOf("windows", `C:\Users\ada`, `APPDATA=C:\Users\ada\AppData\Roaming`)
	for _, tc := range []struct {
		client  string
		system  System
		project string
		want    []string
	}{
		{"claude-code", linux, "/src/shop", []string{"/home/ada/.claude.json", "/home/ada/.claude/.claude.json", "/src/shop/.mcp.json"}},
		{"claude-code", systemOf("linux", "/home/ada", "CLAUDE_CONFIG_DIR=/cfg"), "", []string{"/cfg/.claude.json"}},
		{"claude-code", windows, "", []string{`C:\Users\ada\.claude.json`, `C:\Users\ada\.claude\.claude.json`}},
		{"claude-desktop", mac, "/src/shop", []string{"/Users/ada/Library/Application Support/Claude/claude_desktop_config.json"}},
		{"claude-desktop", linux, "", []string{"/home/ada/.config/Claude/claude_desktop_config.json"}},
		{"claude-desktop", windows, "", []string{`C:\Users\ada\AppData\Roaming\Claude\claude_desktop_config.json`,
			`C:\Users\ada\AppData\Local\Packages\Claude_*\LocalCache\Roaming\Claude\claude_desktop_config.json *`}},
		{"vscode", systemOf("linux", "/home/ada", "XDG_CONFIG_HOME=/x"), "/src/shop", []string{"/x/Code/User/mcp.json", "/x/Code/User/profiles/*/mcp.json *",
			"/x/Code - Insiders/User/mcp.json", "/x/Code - Insiders/User/profiles/*/mcp.json *", "/src/shop/.vscode/mcp.json"}},
		{"cursor", windows, `D:\shop`, []string{`C:\Users\ada\.cursor\mcp.json`, `D:\shop\.cursor\mcp.json`}},
		{"codex", mac, "/p", []string{"/Users/ada/.codex/config.toml", "/p/.codex/config.toml"}},
		{"codex", systemOf("linux", "/home/ada", "CODEX_HOME=/c"), "", []string{"/c/config.toml"}},
		{"gemini", linux, "/p", []string{"/home/ada/.gemini/settings.json", "/p/.gemini/settings.json"}},
		{"gemini", systemOf("darwin", "/Users/ada", "GEMINI_CLI_HOME=/g"), "", []string{"/g/.gemini/settings.json"}},
		{"copilot", linux, "/p", []string{"/home/ada/.copilot/mcp-config.json"}},
		{"copilot", systemOf("linux", "/home/ada", "COPILOT_HOME=/c"), "", []string{"/c/mcp-config.json"}},
		{"qwen", mac, "/p", []string{"/Users/ada/.qwen/settings.json", "/p/.qwen/settings.json"}},
		{"opencode", mac, "/p", []string{"/Users/ada/.config/opencode/opencode.json", "/Users/ada/.config/opencode/opencode.jsonc", "/p/opencode.json", "/p/opencode.jsonc"}},
		{"opencode", systemOf("linux", "/home/ada", "XDG_CONFIG_HOME=/x", "OPENCODE_CONFIG=/o.json"), "", []string{"/x/opencode/opencode.json", "/x/opencode/opencode.jsonc", "/o.json"}},
		{"crush", linux, "/p", []string{"/home/ada/.config/crush/crush.json", "/p/crush.json", "/p/.crush.json"}},
		{"crush", windows, "", []string{`C:\Users\ada\AppData\Local\crush\crush.json`}},
		{"windsurf", linux, "/p", []string{"/home/ada/.codeium/windsurf/mcp_config.json", "/home/ada/.codeium/windsurf-next/mcp_config.json", "/home/ada/.codeium/mcp_config.json"}},
		{"zed", linux, "", []string{"/home/ada/.config/zed/settings.json"}},
		{"zed", mac, "/p", []string{"/Users/ada/.config/zed/settings.json", "/p/.zed/settings.json"}},
		{"zed", windows, "", []string{`C:\Users\ada\AppData\Roaming\Zed\settings.json`}},
		{"zed", systemOf("linux", "/home/ada", "FLATPAK_XDG_CONFIG_HOME=/f"), "", []string{"/f/zed/settings.json"}},
	} {
		var got []string
		for _, p := range Named(tc.client).Places(tc.system, tc.project) {
			path := p.Path
			if p.Pattern {
				path += " *"
			}
			if p.Project != (tc.project != "" && strings.HasPrefix(p.Path, tc.project)) {
				t.Errorf("%s: project %v", p.Path, p.Project)
			}
			got = append(got, path)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s on %s (-want +got):\n%s", tc.client, tc.system.OS, diff)
		}
	}
}

// A server as each client starts it.
func TestExpand(t *testing.T) {
	sys := systemOf("linux", "/home/ada", "A=1", "EMPTY=")
	for _, tc := range []struct{ client, text, project, want string }{
		{"claude-code", "${A} ${NONE:-d} ${EMPTY:-e} $A ${NONE}", "", "1 d e $A "},
		{"gemini", "$A-${A}-$NONE", "", "1-1-"},
		{"vscode", "${env:A} ${userHome} ${workspaceFolder} ${/} $A", "/p", "1 /home/ada /p / $A"},
		{"claude-desktop", "${A} $A", "", "${A} $A"},
		{"copilot", "${A} ${NONE:-d}", "", "1 d"},
		{"qwen", "$A-${A}", "", "1-1"},
		{"opencode", "{env:A} ${A} {x}", "", "1 ${A} {x}"},
		{"codex", "${A}", "", "${A}"},
	} {
		got, err := Named(tc.client).Expand(Server{Command: "x", Args: []string{tc.text}, Env: map[string]string{"K": tc.text}}, sys, tc.project)
		if err != nil {
			t.Fatal(err)
		}
		if got.Args[0] != tc.want || got.Env["K"] != tc.want {
			t.Errorf("%s: %q became %q and %q, want %q", tc.client, tc.text, got.Args[0], got.Env["K"], tc.want)
		}
	}
	for _, text := range []string{"${input:key}", "${workspaceFolder}"} {
		if _, err := Named("vscode").Expand(Server{Command: text}, sys, ""); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for client, text := range map[string]string{"opencode": "{file:~/key}", "crush": "$(pass show key)"} {
		if _, err := Named(client).Expand(Server{Command: "x", Args: []string{text}}, sys, ""); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got := (Server{Scope: []string{"projects", "/p", "mcpServers"}}).Project(); got != filepath.ToSlash("/p") {
		t.Errorf("project of a project's entry: %q", got)
	}
}

// For every file, reading and editing it ends, and an edit can be undone.
func FuzzClients(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": "a", /* x */ "args": ["1",]}}} // y`), []byte("[mcp_servers.a]\ncommand = \"a\"\nargs = [ # x\n'1']\n"))
	f.Add([]byte(`{"mcp": {"a": {"type": "local", "command": [ "a", /* x */ "1",], "environment": {"K": "v"}}}}`), []byte(""))
	f.Add([]byte("\ufeff{}"), []byte("mcp_servers.a.b = 1\nmcp_servers = {a = {command = 'x'}}\n[[mcp_servers.z]]\ncommand=''"))
	f.Add([]byte(`{"mcpServers":{"a":{"command":{"path":"b"}},"a":1}}`), []byte("[mcp_servers]\na = {command='''\nx''', args = [\"\"\"y\"\"\"]}\r\n"))
	f.Fuzz(func(t *testing.T, json, toml []byte) {
		for name, text := range map[string][]byte{"zed": json, "cursor": json, "opencode": json, "codex": toml} {
			c := Named(name)
			if _, err := c.Servers(text); err != nil {
				continue
			}
			if _, _, err := c.Wrap(text, inFront); err != nil {
				t.Errorf("wrap %s: %v\n%q", name, err, text)
			}
			if _, _, err := c.Unwrap(text, nil); err != nil {
				t.Errorf("unwrap %s: %v\n%q", name, err, text)
			}
		}
	})
}

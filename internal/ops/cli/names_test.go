package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/ops/clients"
)

func TestNameOf(t *testing.T) {
	for command, want := range map[string]string{
		"npx -y @scope/server-github@1.2":       "server-github",
		"uvx mcp-server-time":                   "mcp-server-time",
		"python3 -m mcp_server_git":             "mcp_server_git",
		"node /srv/shop/dist/index.js":          "index",
		"node /srv/shop/index.js":               "shop",
		"python3 -c import#sys;print(1)":        "python3",
		"node --eval console.log(1)":            "node",
		"sh -c exec#npx#-y#shop":                "shop",
		"/opt/" + strings.Repeat("x", 300):      strings.Repeat("x", longestName),
		"https://user:secret@far.example/mcp/x": "far.example",
	} {
		argv := strings.Fields(command)
		for i := range argv {
			argv[i] = strings.ReplaceAll(argv[i], "#", " ")
		}
		if got := nameOf(argv); got != want {
			t.Errorf("%s is called %q, want %q", command, got, want)
		}
	}
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]bool{
		"server.js": true, "x.sh": true, "a_b-c.2": true, "_x": true, "a/b": false, "a b": false, "a@1": false, "é": false, ".hidden": false, "-x": false, "x.": false, "..": false,
	} {
		if err := checkName(name); (err == nil) != want {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
}

// Whatever servers are called in a client's file, the gateway takes the outlive.yaml that wrap makes of it.
func TestWrappedNamesAreTaken(t *testing.T) {
	long := strings.Repeat("x", 80)
	for _, tc := range []struct{ names, want []string }{
		{[]string{"文件", "天气"}, []string{"server", "server-2"}},
		{[]string{"files", "files.py", "@a/files", "Files"}, []string{"files", "files-2", "files-3", "Files-4"}},
		{[]string{"a.b", "a_b", "a-b"}, []string{"a.b", "a_b-2", "a-b"}},
		{[]string{"_x", "__", "_-.y"}, []string{"x", "server", "y"}},
		{[]string{long + "1", long + "2"}, []string{long[:60], long[:60] + "-2"}},
	} {
		var entries []string
		for _, name := range tc.names {
			key, _ := json.Marshal(name)
			entries = append(entries, string(key)+`: {"command": "c"}`)
		}
		text := `{"mcpServers": {` + strings.Join(entries, ", ") + `}}`
		g, err := clients.Named("cursor").Gather([]byte(text), "mcp.json", clients.Options{Label: gatewayLabel,
			Config: func([]string) string { return "outlive.yaml" }})
		if err != nil {
			t.Fatal(err)
		}
		file, err := config.Parse("outlive.yaml", g.Configs["outlive.yaml"], config.Options{Keys: policyKeys()})
		if err != nil {
			t.Errorf("%q: %v", tc.names, err)
			continue
		}
		var got []string
		for _, s := range file.Servers {
			got = append(got, s.Name)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", tc.names, d)
		}
	}
}

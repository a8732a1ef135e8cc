package cli

import (
	"strings"
	"testing"
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

package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

func gatherInto(path string) Options {
	return Options{Outlive: "/usr/local/bin/outlive", Config: func(scope []string) string { return path + strings.Join(scope, "-") + ".yaml" }}
}

// The servers move to one outlive.yaml, and one entry takes their place.
func TestGather(t *testing.T) {
	for _, tc := range []struct {
		name, client, before, after, yaml string
	}{
		{"JSON", "vscode", `{
  "servers": {
    // remote
    "far": {"url": "https://x"},
    "files": {
      "command": "npx", "args": ["-y", "${env:PKG}"], // as it was
      "env": {"B": "2", "A": "x\"y"}
    },
    "off": {"command": "o", "disabled": true},
    "db": {"command": "/bin/db", "cwd": "/srv"}
  }
}
`, `{
  "servers": {
    // remote
    "far": {"url": "https://x"},
    "outlive": {
      "command": "/usr/local/bin/outlive",
      "args": ["gateway", "-c", "/c/servers.yaml"]
    },
    "off": {"command": "o", "disabled": true}
  }
}
`, `# Made by outlive wrap --gateway from mcp.json (VS Code).
# outlive unwrap puts these servers back to where they were.
servers:
  "files":
    command: "npx"
    args: ["-y", "${env:PKG}"]
    env:
      "A": "x\"y"
      "B": "2"
  "db":
    command: "/bin/db"
    cwd: "/srv"
`},
		{"TOML", "codex", `model = "o"

# the files
[mcp_servers.files]
command = "outlive"
args = ["run", "--name", "files", "--", "npx", "-y"]

[mcp_servers.files.env]
A = "b"

[profiles.x]
y = 1

[mcp_servers.db]
command = "db"`, `model = "o"

# the files
[mcp_servers.outlive]
command = "/usr/local/bin/outlive"
args = ["gateway", "-c", "/c/mcp_servers.yaml"]


[profiles.x]
y = 1

`, `# Made by outlive wrap --gateway from mcp.json (Codex).
# outlive unwrap puts these servers back to where they were.
servers:
  "files":
    command: "npx"
    args: ["-y"]
    env:
      "A": "b"
  "db":
    command: "db"
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Named(tc.client)
			g, err := c.Gather([]byte(tc.before), "/home/ada/mcp.json", gatherInto("/c/"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.after, string(g.Text)); diff != "" {
				t.Errorf("client's file (-want +got):\n%s", diff)
			}
			for _, group := range g.Record.Groups {
				if diff := cmp.Diff(tc.yaml, string(g.Configs[group.Config])); diff != "" {
					t.Errorf("outlive.yaml (-want +got):\n%s", diff)
				}
				if !group.Made(g.Configs[group.Config]) {
					t.Error("the record does not know its own outlive.yaml")
				}
			}
			back, _, err := c.Scatter(g.Text, g.Record)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.before, string(back)); diff != "" {
				t.Errorf("put back (-want +got):\n%s", diff)
			}
		})
	}
}

// After changes of the user the entries come back as they were written, and the changes stay.
func TestScatterAfterChanges(t *testing.T) {
	for _, tc := range []struct{ name, client, before, find, put, want string }{
		{"JSON", "cursor",
			`{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`, `{"mcpServers": {`, `{"mcpServers": {"new": {"command": "n"}, `,
			`{"mcpServers": {"new": {"command": "n"}, "a": {"command": "a"}, "b": {"command": "b"}}}`},
		{"TOML", "codex",
			"[mcp_servers.a]\ncommand = \"a\"\n[mcp_servers.b]\ncommand = \"b\"", "[mcp", "x = 1\n[mcp",
			"x = 1\n[mcp_servers.a]\ncommand = \"a\"\n[mcp_servers.b]\ncommand = \"b\"\n"},
		{"a new entry of the same name", "cursor",
			`{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`, `{"mcpServers": {`, `{"mcpServers": {"a": {"command": "mine"}, `,
			`{"mcpServers": {"a": {"command": "mine"}, "b": {"command": "b"}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Named(tc.client)
			g, err := c.Gather([]byte(tc.before), "f", gatherInto(""))
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(g.Text), tc.find, tc.put, 1)
			back, _, err := c.Scatter([]byte(changed), g.Record)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(back)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A project that is gone from the file does not keep the others' servers behind the gateway. Its own are kept, too.
func TestScatterWithoutOneGateway(t *testing.T) {
	c := Named("claude-code")
	g, err := c.Gather([]byte(`{"mcpServers": {"a": {"command": "a"}}, "projects": {"/src/x": {"mcpServers": {"b": {"command": "b"}}}}}`), "f", gatherInto(""))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(g.Text, &file); err != nil {
		t.Fatal(err)
	}
	delete(file, "projects")
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"a: back", "b: left"}, {"b: left"}} { // the second time there is nothing more to put back
		back, outcomes, err := c.Scatter(text, g.Record)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range outcomes {
			if o.Action == Moved {
				got = append(got, o.Server.Name+": back")
			} else if strings.Contains(o.Why, "no entry of the gateway in the file any more; it is kept in projects-/src/x-mcpServers.yaml") {
				got = append(got, o.Server.Name+": left")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || !g.Record.Needed(outcomes) {
			t.Errorf("(-want +got):\n%s%+v", diff, outcomes)
		}
		if servers, err := c.Servers(back); err != nil || len(servers) != 1 || servers[0].Name != "a" {
			t.Errorf("%v, %v", servers, err)
		}
		text = back
	}
}

// What only the client can start stays, with the reason.
func TestGatherLeaves(t *testing.T) {
	for _, tc := range []struct{ client, entry, why string }{
		{"vscode", `{"command": "a", "args": ["${input:key}"]}`, "only VS Code knows what is meant by ${input:key}"},
		{"vscode", `{"command": "a", "envFile": ".env"}`, "only VS Code follows its envFile"},
		{"claude-code", `{"command": "a", "env": {"K": "${K:-x}"}}`, "only Claude Code knows what is meant by ${K:-x}"},
		{"claude-desktop", `{"command": "a", "args": ["${HOME}"]}`, "only Claude Desktop knows what is meant by ${HOME}"},
		{"cursor", `{"command": "./a"}`, "its command is a relative path: ./a"},
		{"cursor", `{"command": "a", "cwd": "sub"}`, "its working directory is a relative path: sub"},
		{"cursor", `{"command": "a", "disabled": true}`, "disabled"},
		{"cursor", `{"command": "npx", "args": ["-y", "outlive-mcp@1.4", "run", "--", "a"]}`, "outlive is in front of it already, by its package"},
		{"cursor", `{"command": "uvx", "args": ["--from", "outlive-mcp==1.4", "outlive", "run", "--", "a"]}`, "outlive is in front of it already, by its package"},
		{"cursor", `{"command": "outlive", "args": ["run", "a"]}`, `there is no "--" before the server's command`},
	} {
		c := Named(tc.client)
		text := fmt.Sprintf(`{%q: {"s": %s}}`, c.objects[0][0], tc.entry)
		g, err := c.Gather([]byte(text), "f", gatherInto(""))
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Outcomes) != 1 || g.Outcomes[0].Why != tc.why || string(g.Text) != text || g.Record != nil {
			t.Errorf("%s: %+v\n%s", tc.entry, g.Outcomes, g.Text)
		}
		if wrapped, _, err := c.Wrap([]byte(text), Options{}); strings.Contains(tc.entry, packageName) && (err != nil || string(wrapped) != text) {
			t.Errorf("wrap has put outlive in front of outlive: %s (%v)", wrapped, err)
		}
	}
}

// However the file is written: what stays and what moves are together what was there, and putting it back is exact.
func TestScatterUndoesGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawFile(t)
		c := Named("cursor")
		pick := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"s0", "s1", "s2", "s3"}), rapid.ID[string]).Draw(t, "only")
		o := gatherInto("")
		o.Only = func(s Server) bool { return strings.Contains(strings.Join(pick, " "), s.Name) }
		g, err := c.Gather(text, "f", o)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		before, _ := c.Servers(text)
		after, err := c.Servers(g.Text)
		if err != nil {
			t.Fatal(err)
		}
		moved := map[string]bool{}
		for _, out := range g.Outcomes {
			moved[out.Server.Name] = out.Action == Moved
		}
		var want, got []Server
		for _, s := range before {
			if !moved[s.Name] {
				want = append(want, s)
			}
		}
		for _, s := range after {
			if s.Name != GatewayName {
				got = append(got, s)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("servers that stay (-want +got):\n%s", diff)
		}
		if g.Record == nil {
			return
		}
		back, _, err := c.Scatter(g.Text, g.Record)
		if err != nil || !bytes.Equal(back, text) {
			t.Fatalf("%v (-before +after):\n%s", err, cmp.Diff(string(text), string(back)))
		}
		changed := append(bytes.Clone(g.Text), "\n// changed"...)
		back, _, err = c.Scatter(changed, g.Record)
		if err != nil {
			t.Fatal(err)
		}
		restored, err := c.Servers(back)
		if err != nil || len(restored) != len(before) {
			t.Fatalf("%d servers of %d came back, %v", len(restored), len(before), err)
		}
	})
}

package clients

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

var inFront = Options{Outlive: "/usr/local/bin/outlive"}

// Each client's file before and after. Everything else must not change.
func TestWrap(t *testing.T) {
	for _, tc := range []struct {
		name, client, before, after string
	}{
		{"one line", "cursor",
			`{"mcpServers": {"files": {"command": "npx", "args": ["-y", "@x/files"]}}}`,
			`{"mcpServers": {"files": {"command": "/usr/local/bin/outlive", "args": ["run", "--name", "files", "--", "npx", "-y", "@x/files"]}}}`},
		{"comments, tabs and trailing commas", "vscode",
			"{\n\t// ours\n\t\"servers\": {\n\t\t\"db\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"uvx\", // fast\n\t\t\t\"args\": [\n\t\t\t\t// the package\n\t\t\t\t\"db\",\n\t\t\t],\n\t\t},\n\t},\n}\n",
			"{\n\t// ours\n\t\"servers\": {\n\t\t\"db\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"/usr/local/bin/outlive\", // fast\n\t\t\t\"args\": [\n\t\t\t\t\"run\", \"--name\", \"db\", \"--\", \"uvx\",\n\t\t\t\t// the package\n\t\t\t\t\"db\",\n\t\t\t],\n\t\t},\n\t},\n}\n"},
		{"no args", "claude-desktop",
			"{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"C:\\\\tools\\\\a.exe\",\n      \"env\": {\"K\": \"v\"}\n    }\n  }\n}",
			"{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"/usr/local/bin/outlive\",\n      \"args\": [ \"run\", \"--name\", \"a\", \"--\", \"C:\\\\tools\\\\a.exe\" ],\n      \"env\": {\"K\": \"v\"}\n    }\n  }\n}"},
		{"empty args", "gemini",
			`{"mcpServers":{"a":{"command":"a","args":[ ]}}}`,
			`{"mcpServers":{"a":{"command":"/usr/local/bin/outlive","args":["run", "--name", "a", "--", "a" ]}}}`},
		{"projects, remote and wrapped ones", "claude-code",
			`{"numStartups": 4, "mcpServers": {"r": {"type": "http", "url": "https://x"}, "w": {"command": "outlive", "args": ["run", "--", "w"]}}, "projects": {"/p": {"mcpServers": {"a": {"command": "a", "args": ["1"]}}}}}`,
			`{"numStartups": 4, "mcpServers": {"r": {"type": "http", "url": "https://x"}, "w": {"command": "outlive", "args": ["run", "--", "w"]}}, "projects": {"/p": {"mcpServers": {"a": {"command": "/usr/local/bin/outlive", "args": ["run", "--name", "a", "--", "a", "1"]}}}}}`},
		{"cmd /c", "windsurf",
			`{"mcpServers": {"a": {"command": "cmd", "args": ["/c", "npx", "a"]}, "b": {"command": "cmd.exe", "args": ["/C", "C:\\o\\Outlive.EXE", "run", "--", "x"]}}}`,
			`{"mcpServers": {"a": {"command": "/usr/local/bin/outlive", "args": ["run", "--name", "a", "--", "cmd", "/c", "npx", "a"]}, "b": {"command": "cmd.exe", "args": ["/C", "C:\\o\\Outlive.EXE", "run", "--", "x"]}}}`},
		{"Zed, both ways", "zed",
			`{"theme": "x", "context_servers": {"a": {"command": {"path": "a", "args": ["1"], "env": {}}}, "b": {"source": "custom", "command": "b"}, "e": {"settings": {}}}}`,
			`{"theme": "x", "context_servers": {"a": {"command": {"path": "/usr/local/bin/outlive", "args": ["run", "--name", "a", "--", "a", "1"], "env": {}}}, "b": {"source": "custom", "command": "/usr/local/bin/outlive", "args": [ "run", "--name", "b", "--", "b" ]}, "e": {"settings": {}}}}`},
		{"Codex, tables", "codex",
			"model = \"o\" # mine\n\n[mcp_servers.files]\n# with npx\ncommand = \"npx\" # found\nargs = [\n  \"-y\", # yes\n  \"@x/files\",\n]\n\n[mcp_servers.files.env]\nA = \"b\"\n\n[mcp_servers.plain]\n  command = 'C:\\a b\\s.exe'\n",
			"model = \"o\" # mine\n\n[mcp_servers.files]\n# with npx\ncommand = \"/usr/local/bin/outlive\" # found\nargs = [\n  \"run\", \"--name\", \"files\", \"--\", \"npx\",\n  \"-y\", # yes\n  \"@x/files\",\n]\n\n[mcp_servers.files.env]\nA = \"b\"\n\n[mcp_servers.plain]\n  args = [ \"run\", \"--name\", \"plain\", \"--\", 'C:\\a b\\s.exe' ]\n  command = \"/usr/local/bin/outlive\"\n"},
		{"Codex, inline and dotted", "codex",
			"mcp_servers.d.\"command\" = \"d\"\n[mcp_servers]\na = { command = \"a\", env = { K = \"v\" } }\nb.command = \"b\"\nb.args = []\n",
			"mcp_servers.d.args = [ \"run\", \"--name\", \"d\", \"--\", \"d\" ]\nmcp_servers.d.\"command\" = \"/usr/local/bin/outlive\"\n[mcp_servers]\na = { args = [ \"run\", \"--name\", \"a\", \"--\", \"a\" ], command = \"/usr/local/bin/outlive\", env = { K = \"v\" } }\nb.command = \"/usr/local/bin/outlive\"\nb.args = [\"run\", \"--name\", \"b\", \"--\", \"b\"]\n"},
		{"OpenCode, one list", "opencode",
			"{\n  \"mcp\": {\n    // ours\n    \"a\": {\n      \"type\": \"local\",\n      \"command\": [\"npx\", \"-y\", \"a\"],\n      \"environment\": {\"K\": \"{env:K}\"},\n    },\n    \"b\": {\"type\": \"local\", \"command\": [\n      \"b\" // alone\n    ]},\n    \"r\": {\"type\": \"remote\", \"url\": \"https://x\"}\n  }\n}\n",
			"{\n  \"mcp\": {\n    // ours\n    \"a\": {\n      \"type\": \"local\",\n      \"command\": [\"/usr/local/bin/outlive\", \"run\", \"--name\", \"a\", \"--\", \"npx\", \"-y\", \"a\"],\n      \"environment\": {\"K\": \"{env:K}\"},\n    },\n    \"b\": {\"type\": \"local\", \"command\": [\n      \"/usr/local/bin/outlive\", \"run\", \"--name\", \"b\", \"--\",\n      \"b\" // alone\n    ]},\n    \"r\": {\"type\": \"remote\", \"url\": \"https://x\"}\n  }\n}\n"},
		{"Copilot CLI", "copilot",
			`{"mcpServers": {"a": {"type": "local", "command": "npx", "args": ["a"], "tools": ["*"]}}}`,
			`{"mcpServers": {"a": {"type": "local", "command": "/usr/local/bin/outlive", "args": ["run", "--name", "a", "--", "npx", "a"], "tools": ["*"]}}}`},
		{"Crush", "crush",
			`{"mcp": {"a": {"type": "stdio", "command": "npx", "args": ["a"], "env": {"K": "$(pass show k)"}}}}`,
			`{"mcp": {"a": {"type": "stdio", "command": "/usr/local/bin/outlive", "args": ["run", "--name", "a", "--", "npx", "a"], "env": {"K": "$(pass show k)"}}}}`},
		{"byte order mark and CRLF", "cursor",
			"\ufeff{\r\n  \"mcpServers\": {\r\n    \"a\": {\r\n      \"command\": \"a\"\r\n    }\r\n  }\r\n}\r\n",
			"\ufeff{\r\n  \"mcpServers\": {\r\n    \"a\": {\r\n      \"command\": \"/usr/local/bin/outlive\",\r\n      \"args\": [ \"run\", \"--name\", \"a\", \"--\", \"a\" ]\r\n    }\r\n  }\r\n}\r\n"},
		{"empty file", "cursor", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Named(tc.client)
			after, outcomes, err := c.Wrap([]byte(tc.before), inFront)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.after, string(after)); diff != "" {
				t.Errorf("wrapped (-want +got):\n%s", diff)
			}
			again, _, err := c.Wrap(after, inFront)
			if err != nil || !bytes.Equal(again, after) {
				t.Errorf("wrapping again changed the file, or failed: %v\n%s", err, again)
			}
			edited := map[string]bool{}
			for _, o := range outcomes {
				edited[o.Server.Name] = o.Why == ""
			}
			back, _, err := c.Unwrap(after, func(s Server) bool { return edited[s.Name] })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.before, string(back)); diff != "" {
				t.Errorf("unwrapped (-want +got):\n%s", diff)
			}
		})
	}
}

// What is not changed is reported with its reason.
func TestWrapLeaves(t *testing.T) {
	text := `{"mcpServers": {
		"remote": {"url": "https://x"}, "line": {"command": "npx -y a"}, "number": {"command": 1}, "list": [],
		"args": {"command": "a", "args": [1]}, "none": {}, "theirs": {"source": "extension"}, "set": {"settings": {"port": 1}}, "ok": {"command": "ok"}, "ok": {"command": "last"}}}`
	_, outcomes, err := Named("cursor").Wrap([]byte(text), inFront)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range outcomes {
		got = append(got, fmt.Sprintf("%s: %s", o.Server.Name, o.Why))
	}
	want := []string{
		"remote: reached over the network: https://x",
		"line: command holds a whole command line: write the program as command and the rest as args",
		"number: command must be a string",
		"list: must be an object",
		"args: args must hold strings only",
		"none: neither command nor url",
		"theirs: an extension of the client has its command",
		"set: an extension of the client has its command",
		"ok: the name stands there again further down",
		"ok: ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What outlive cannot be taken out of is reported with its reason.
func TestUnwrapLeaves(t *testing.T) {
	text := `{"mcpServers": {
		"number": {"command": "outlive", "args": ["run", "--", "a", 1]}, "bare": {"command": "outlive", "args": ["run", "a"]},
		"shell": {"command": "cmd", "args": ["/c", "outlive", "run", "--", "a"]}, "plain": {"command": "a"}}}`
	back, outcomes, err := Named("cursor").Unwrap([]byte(text), nil)
	if err != nil || string(back) != text {
		t.Fatalf("%v\n%s", err, back)
	}
	var got []string
	for _, o := range outcomes {
		got = append(got, fmt.Sprintf("%s: %s", o.Server.Name, o.Why))
	}
	want := []string{
		"number: args must hold strings only",
		`bare: there is no "--" before the server's command`,
		"shell: outlive is started through another program",
		"plain: outlive is not in front of it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The user's changes after wrapping are kept, and a file that a client has reformatted keeps its meaning.
func TestUnwrapAfterChanges(t *testing.T) {
	for _, tc := range []struct{ name, before, after string }{
		{"a new argument and a new server",
			`{"mcpServers": {"new": {"command": "n"}, "a": {"env": {"K": "v"}, "command": "outlive", "args": ["run", "--name", "a", "--", "a", "1", "2"]}}}`,
			`{"mcpServers": {"new": {"command": "n"}, "a": {"env": {"K": "v"}, "command": "a", "args": ["1", "2"]}}}`},
		{"formatted anew",
			"{\n \"mcpServers\": {\n  \"a\": {\n   \"command\": \"outlive\",\n   \"args\": [\n    \"run\",\n    \"--name\",\n    \"a\",\n    \"--\",\n    \"a\"\n   ]\n  }\n }\n}",
			"{\n \"mcpServers\": {\n  \"a\": {\n   \"command\": \"a\"\n  }\n }\n}"},
		{"args first",
			`{"mcpServers": {"a": {"args": [ "run", "--", "a" ], "command": "outlive"}}}`,
			`{"mcpServers": {"a": {"command": "a"}}}`},
		{"written by hand, with flags",
			`{"mcpServers": {"a": {"command": "/opt/outlive", "args": ["run", "--standby", "1", "--", "npx",
				"-y"]}}}`,
			`{"mcpServers": {"a": {"command": "npx", "args": [
				"-y"]}}}`},
		{"no dashes", `{"mcpServers": {"a": {"command": "outlive", "args": ["run", "a"]}}}`, `{"mcpServers": {"a": {"command": "outlive", "args": ["run", "a"]}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _, err := Named("cursor").Unwrap([]byte(tc.before), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.after, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// extra draws text that is allowed between two tokens of JSON with comments.
func extra(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{" ", "\n", "\t", "\r\n", "/*,[]{}*/", "// \"command\",\n", "  "}), 0, 3).Draw(t, "extra"), "")
}

func word(t *rapid.T) string {
	return rapid.SampledFrom([]string{`"a"`, `""`, `"--"`, `"run"`, `"outlive"`, `"\u0061\n"`, `"ü ]"`, `"-y"`, `"${X}"`, `"//"`}).Draw(t, "word")
}

// object draws an object of the members given, with or without a trailing comma.
func object(t *rapid.T, members []string) string { return "{" + listed(t, members) + "}" }

func listed(t *rapid.T, members []string) string {
	var b strings.Builder
	for i, m := range members {
		b.WriteString(extra(t) + m + extra(t))
		if i < len(members)-1 || rapid.Bool().Draw(t, "trailing comma") {
			b.WriteString(",")
		}
	}
	return b.String() + extra(t)
}

func server(t *rapid.T) string {
	kinds := []string{"command"}
	kinds = append(kinds, rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"args", "env", "type", "x"}), 0, 4, rapid.ID[string]).Draw(t, "members")...)
	kinds = rapid.Permutation(kinds).Draw(t, "order")
	var members []string
	for _, k := range kinds {
		value := word(t)
		switch k {
		case "args":
			var words []string
			for range rapid.IntRange(0, 4).Draw(t, "args") {
				words = append(words, word(t))
			}
			value = "[" + listed(t, words) + "]"
		case "env":
			value = object(t, []string{`"K":` + extra(t) + word(t)})
		}
		members = append(members, `"`+k+`"`+extra(t)+":"+extra(t)+value)
	}
	return object(t, members)
}

func drawFile(t *rapid.T) []byte {
	var servers []string
	for i := range rapid.IntRange(0, 4).Draw(t, "servers") {
		servers = append(servers, fmt.Sprintf("%q:%s", fmt.Sprint("s", i), extra(t)+server(t)))
	}
	members := []string{`"theme":1`, `"mcpServers":` + extra(t) + object(t, servers), `"z":[]`}
	return []byte(extra(t) + object(t, members) + extra(t))
}

// Unwrapping a wrapped file restores it byte for byte, in any formatting.
func TestUnwrapUndoesWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawFile(t)
		c := Named("cursor")
		after, outcomes, err := c.Wrap(text, inFront)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		mine := func(s Server) bool {
			return slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Why == "" && o.Server.Name == s.Name })
		}
		before, _ := c.Servers(text)
		servers, err := c.Servers(after)
		if err != nil {
			t.Fatalf("%v\n%s", err, after)
		}
		for i, s := range servers {
			if inner, ok := s.Inner(); mine(s) && (!ok || !slices.Equal(inner, before[i].Argv())) {
				t.Fatalf("%s starts %q instead of %q\n%s", s.Name, inner, before[i].Argv(), after)
			}
		}
		back, _, err := c.Unwrap(after, mine)
		if err != nil || !bytes.Equal(back, text) {
			t.Fatalf("%v (-before +after):\n%s", err, cmp.Diff(string(text), string(back)))
		}
	})
}

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/schema"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

func TestCheckListen(t *testing.T) {
	for _, tc := range []struct {
		address    string
		authorized bool
		wrong      string // part of the error; empty: none
	}{
		{"127.0.0.1:8080", false, ""},
		{"127.9.9.9:0", false, ""},
		{"localhost:8080", false, ""},
		{"LOCALHOST.:8080", false, ""},
		{"[::1]:8080", false, ""},
		{"[::ffff:127.0.0.1]:8080", false, ""},
		{"0.0.0.0:8080", true, ""},
		{":8080", true, ""},
		{"0.0.0.0:8080", false, "any host on the network"},
		{":8080", false, "any host on the network"},
		{"[::]:8080", false, "any host on the network"},
		{"mcp.example:8080", false, "any host on the network"},
		{"localhost.example:8080", false, "any host on the network"},
		{"127.0.0.1", false, "not a host:port"},
		{"8080", false, "not a host:port"},
		{"127.0.0.1:", false, "not a host:port"},
		{"127.0.0.1:-1", true, "not a host:port"},
		{"127.0.0.1:65536", true, "not a host:port"},
		{"127.0.0.1:http", true, "not a host:port"},
		{"a b:80", true, "no possible host"},
	} {
		err := CheckListen(tc.address, tc.authorized)
		if tc.wrong == "" && err != nil || tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)) {
			t.Errorf("%q (authorized %v): %v, want %q", tc.address, tc.authorized, err, tc.wrong)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1000000": 1000000, "500K": 500 << 10, "32MiB": 32 << 20, "1 GB": 1 << 30, "1024GiB": 1 << 40, "7B": 7,
		"0": -1, "1025G": -1, "999999999999999G": -1, "-1": -1, "1.5M": -1, "1T": -1, "MiB": -1, "5Ki": -1, "": -1, "5 i": -1,
	} {
		message, _ := sizeForm.Check(text)
		if want < 0 && message == "" || want > 0 && (message != "" || sizeOf(text) != want) {
			t.Errorf("%q: %q, %d, want %d", text, message, sizeOf(text), want)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := serverShape(policyKeys(policyOfRun)).KeyNames()
	for word, want := range map[string]string{
		"comand": "command", "Command": "command", "cmd": "command", "agrs": "args", "argumnets": "args", "maxRestarts": "max_restarts",
		"max-restarts": "max_restarts", "enviroment": "env", "header": "headers", "workingDirectory": "cwd", "standbye": "standby",
		"ur": "", "x": "", "": "", "completely": "", strings.Repeat("command", 20): "",
	} {
		if got := suggest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestDotenv(t *testing.T) {
	got := parseDotenv([]byte("\ufeffA=1\r\n\r\n# B=2\nexport C = three \nD='a # b' # c\nE=\"x\\ny\\tz\"\nF=\"one\ntwo\"\nG=open\"\n" +
		"H=\nI=a=b\nJ # K=1\nnot a line\nL=`it's`\nM=\"never closed\nN=last"))
	want := map[string]string{
		"A": "1", "C": "three", "D": "a # b", "E": "x\ny\\tz", "F": "one\ntwo", "G": `open"`, "H": "", "I": "a=b",
		"L": "it's", "M": `"never closed`, "N": "last",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLoadFromDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ".vscode", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"servers": {"a": {"command": "${workspaceFolder}${/}run", "cwd": "sub"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Load(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Server{{
		Name: "a", Transport: Stdio, Command: []string{filepath.Join(dir, "run")}, Dir: filepath.Join(dir, "sub"), Prefix: "a", Instances: 1,
		Pos: fileerror.Pos{Line: 1, Column: 14}, TargetPos: fileerror.Pos{Line: 1, Column: 31},
	}}
	if diff := cmp.Diff(want, f.Servers); diff != "" {
		t.Error(diff)
	}
	_, err = Load(filepath.Join(dir, "nothing.yaml"), Options{})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "nothing.yaml") {
		t.Errorf("a missing file: %v", err)
	}
}

// Problems found later are reported in the same form, in the order of the file.
func TestFurtherProblems(t *testing.T) {
	f, err := Parse("outlive.yaml", []byte("servers:\n  a: {command: npx}\n  b: {command: nope}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Err(); err != nil {
		t.Errorf("an error before there is one: %v", err)
	}
	f.Problem(f.Servers[1].TargetPos, "install it", "%s is not found", f.Servers[1].Command[0])
	f.Problem(f.Servers[0].Pos, "", "first")
	f.Problem(fileerror.Pos{}, "", "of the whole")
	want := `outlive.yaml: of the whole
outlive.yaml:2:3: first
      a: {command: npx}
      ^
outlive.yaml:3:16: nope is not found: install it
      b: {command: nope}
                   ^`
	if diff := cmp.Diff(want, f.Err().Error()); diff != "" {
		t.Error(diff)
	}
}

// An input is its variable in the environment, or its default. What only a disabled server needs is not missed, and what is missed is told
// once, beside all other mistakes.
func TestInputs(t *testing.T) {
	const text = `inputs: [{id: a, password: true, default: "${env:SET}"}, {id: b-1}, {id: unused}]
servers:
  one: {command: npx, args: ["${input:a}", "${input:b-1}", "${input:b-1}"], start_timeout: "${input:b-1}"}
  off: {command: "${input:unused}", disabled: true}
`
	for _, tc := range []struct {
		name, text  string
		environment map[string]string
		want        []string // the command; nil: it is wrong
		wrong       []string // where
	}{
		{"default", text, map[string]string{"SET": "set", "OUTLIVE_INPUT_B_1": "5s"}, []string{"npx", "set", "5s", "5s"}, nil},
		{"over the default", text, map[string]string{"SET": "set", "OUTLIVE_INPUT_A": "own", "OUTLIVE_INPUT_B_1": "5s"}, []string{"npx", "own", "5s", "5s"}, nil},
		{"wrong value", text, map[string]string{"SET": "set", "OUTLIVE_INPUT_B_1": "soon"}, nil, []string{"3:92"}},
		{"none, and an unknown key", text + "  two: {command: npx, agrs: []}\n", map[string]string{"SET": "set"}, nil, []string{"3:45", "5:23"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			opts := inDir("/srv/app")
			opts.Lookup = func(name string) (string, bool) {
				value, set := tc.environment[name]
				return value, set
			}
			f, err := Parse("outlive.yaml", []byte(tc.text), opts)
			var wrong []string
			var problems *fileerror.Problems
			if errors.As(err, &problems) {
				for _, p := range problems.List {
					wrong = append(wrong, fmt.Sprintf("%d:%d", p.Pos.Line, p.Pos.Column))
				}
			}
			if diff := cmp.Diff(tc.wrong, wrong); diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
			if err == nil {
				if diff := cmp.Diff(tc.want, f.Servers[0].Command); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Keys for the client's own purposes cause no warning, whatever their value.
func TestKeysOfClientsAreSilent(t *testing.T) {
	for format, frame := range map[Format]string{
		MCPServers: `{"mcpServers": {"a": {"command": "x"%s}}}`,
		VSCode:     `{"servers": {"a": {"command": "x"%s}}}`,
		Zed:        `{"context_servers": {"a": {"command": "x"%s}}}`,
		Codex:      "[mcp_servers.a]\ncommand = \"x\"\n%s",
	} {
		var keys strings.Builder
		for _, k := range clientShape(format).Keys {
			if k.Doc != "" {
				continue
			}
			if format == Codex {
				fmt.Fprintf(&keys, "%s = [1, {x = true}]\n", k.Name)
			} else {
				fmt.Fprintf(&keys, `, "%s": [1, {"x": null}]`, k.Name)
			}
		}
		f, err := Parse("mcp", []byte(fmt.Sprintf(frame, keys.String())), Options{})
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		if f.Format != format || len(f.Warnings) > 0 || len(f.Servers) != 1 {
			t.Errorf("%s: read as %s, warnings %v, %d servers", format, f.Format, f.Warnings, len(f.Servers))
		}
	}
}

// A client's timeout that no clock can hold is a mistake, not a timeout of another length.
func TestTimeoutsOfClients(t *testing.T) {
	for text, want := range map[string]string{"0": "", "3600": "", "1e9": "", "2e9": "want a number", "-1": "want a number", `"5"`: "want a number"} {
		_, err := Parse("mcp.json", []byte(`{"mcpServers": {"a": {"command": "x", "timeout": `+text+`}}}`), Options{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Mistakes in a disabled server of a client are only warnings.
func TestDisabledServersOfClients(t *testing.T) {
	f, err := Parse("mcp.json", []byte(`{"mcpServers": {
		"a": {"command": "x"},
		"b": {"url": "nonsense", "args": 5, "disabled": true, "headers": {"A": "${UNSET}"}},
		"c": {"disabled": true}}}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Warnings) != 4 || len(f.Servers) != 3 || !f.Servers[1].Disabled || !f.Servers[2].Disabled {
		t.Errorf("%d warnings %v, servers %+v", len(f.Warnings), f.Warnings, f.Servers)
	}
}

// Names that clients allow become names that files and tools can have, and stay different.
func TestNamesOfClients(t *testing.T) {
	f, err := Parse("mcp.json", []byte(`{"mcpServers": {"My Server": {"command": "x"}, "my.server": {"command": "x"}, "my_server": {"command": "x"},
		"my-server": {"command": "x"}, "..": {"command": "x"}, "日本": {"command": "x"}, "`+strings.Repeat("long", 30)+`": {"command": "x"}}}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names, prefixes []string
	for _, s := range f.Servers {
		names, prefixes = append(names, s.Name), append(prefixes, s.Prefix)
		if message, _ := serverName.Check(s.Name); message != "" {
			t.Errorf("name %q", s.Name)
		}
		if message, _ := prefixForm.Check(s.Prefix); message != "" {
			t.Errorf("prefix %q", s.Prefix)
		}
	}
	want := []string{"My-Server", "my.server", "my_server", "my-server-2", "server", "server-2", strings.Repeat("long", 15)}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	want = []string{"My-Server", "my_server", "my_server-2", "my-server-2", "server", "server-2", strings.Repeat("long", 15)}
	if diff := cmp.Diff(want, prefixes); diff != "" {
		t.Error(diff)
	}
}

// The corpus shows every key of outlive.yaml at work.
func TestEveryKeyIsShown(t *testing.T) {
	shown := map[string]bool{}
	var walk func(n *tree.Node)
	walk = func(n *tree.Node) {
		for _, f := range n.Members() {
			shown[f.Key] = true
			walk(f)
		}
		for _, item := range n.Items() {
			walk(item)
		}
	}
	for _, name := range corpusFiles(t, "good") {
		if filepath.Ext(name) == ".yaml" {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			root, _ := tree.Read(tree.YAML, fileerror.NewSource(name, data))
			walk(root)
		}
	}
	var want func(s *schema.Shape)
	want = func(s *schema.Shape) {
		for _, k := range s.Keys {
			if !shown[k.Name] {
				t.Errorf("no good file has %s", k.Name)
			}
			want(k.Shape)
		}
		if s.Of != nil {
			want(s.Of)
		}
	}
	want(rootShape(nil))
}

// checkPlaces looks at what the fuzzers must never see: places outside the file, messages that break lines.
func checkPlaces(t *testing.T, data []byte, problems []fileerror.Problem) {
	t.Helper()
	lines := strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	s := fileerror.NewSource("f", data)
	for _, p := range problems {
		if p.Pos == (fileerror.Pos{}) {
			continue
		}
		if p.Pos.Line < 1 || p.Pos.Line > len(lines) || p.Pos.Column < 1 || p.Pos.Column > utf8.RuneCountInString(lines[p.Pos.Line-1])+1 {
			t.Errorf("%v is outside the file: %s", p.Pos, p.Message)
		}
		if shown := s.Render(p); p.Message == "" || strings.Count(shown, "\n") > 2 || strings.ContainsAny(shown, "\r\x1b") {
			t.Errorf("shows %q", shown)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, kind := range []string{"broken", "good"} {
		_ = filepath.WalkDir(filepath.Join(corpus, kind), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(path) != ".want" {
				data, _ := os.ReadFile(path)
				f.Add(filepath.Base(path), data)
			}
			return nil
		})
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		const secret = "Ju5t4Secret"
		opts := inDir("/srv/app")
		opts.Lookup = func(name string) (string, bool) { return secret, len(name)%2 == 0 }
		file, err := Parse(name, data, opts)
		var problems *fileerror.Problems
		switch {
		case err == nil:
			checkPlaces(t, data, file.Warnings)
			checkServers(t, file)
			for _, w := range file.Warnings {
				_ = file.Render(w)
			}
		case file != nil || !errors.As(err, &problems) || len(problems.List) == 0:
			t.Fatalf("file %v, error %v", file, err)
		default:
			checkPlaces(t, data, problems.List)
			if strings.Contains(err.Error(), secret) && !strings.Contains(string(data)+name, "Ju5t4Secret") {
				t.Errorf("shows what was filled in: %v", err)
			}
		}
	})
}

func FuzzDotenv(f *testing.F) {
	f.Add([]byte("A=1\nexport B='x\ny'\n# c\nC=\"a\\nb\" # d\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, value := range parseDotenv(data) {
			if name == "" || strings.ContainsAny(name, "= \t\n\x00") || strings.ContainsRune(value, 0) {
				t.Errorf("%q=%q", name, value)
			}
		}
	})
}

// checkServers looks at what every File promises.
func checkServers(t *testing.T, f *File) {
	t.Helper()
	names := map[string]bool{}
	for _, s := range f.Servers {
		message, _ := serverName.Check(s.Name)
		prefix, _ := prefixForm.Check(s.Prefix)
		if message != "" || prefix != "" || names[s.Name] || s.Instances < 1 {
			t.Errorf("a server called %q, prefix %q, %d instances", s.Name, s.Prefix, s.Instances)
		}
		names[s.Name] = true
		if s.Disabled {
			continue
		}
		if (s.Transport == Stdio) != (len(s.Command) > 0 && s.Command[0] != "") || (s.Transport == HTTP) != (s.URL != "") {
			t.Errorf("%s: transport %q, command %q, url %q", s.Name, s.Transport, s.Command, s.URL)
		}
		for _, text := range slices.Concat(s.Command, slices.Collect(maps.Keys(s.Env)), slices.Collect(maps.Values(s.Env))) {
			if strings.ContainsRune(text, 0) {
				t.Errorf("%s: NUL in %q", s.Name, text)
			}
		}
		for name, value := range s.Headers {
			if strings.ContainsAny(name+value, "\r\n") {
				t.Errorf("%s: header %q: %q", s.Name, name, value)
			}
		}
		if s.Auth != nil && s.Auth.OAuth == nil && s.Auth.Bearer == "" {
			t.Errorf("%s: credentials without any", s.Name)
		}
	}
}

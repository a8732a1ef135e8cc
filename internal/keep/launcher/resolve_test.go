package launcher

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestChoose(t *testing.T) {
	npx := process{pid: 1, argv: []string{"npm exec pkg"}, titled: true, holds: true}
	cover := process{pid: 2, parent: 1, argv: []string{"sh", "-c", "'mcp-pkg' 'a'"}, holds: true}
	server := process{pid: 3, parent: 2, argv: []string{"node", "/x/mcp-pkg", "a"}, exe: "/usr/bin/node", holds: true}
	with := func(p process, change func(*process)) process { change(&p); return p }
	for _, tc := range []struct {
		name string
		tree []process
		want int
		err  error
	}{
		{"npx, shell, server", []process{npx, cover, server}, 3, nil},
		{"a launcher behind a launcher", []process{npx, cover,
			with(server, func(p *process) { p.argv = []string{"/usr/bin/uv", "tool", "uvx", "x"} }),
			{pid: 4, parent: 3, argv: []string{"/c/bin/python", "/c/bin/x"}, holds: true}}, 4, nil},
		{"the launcher has become the server", []process{{pid: 1, argv: []string{"/v/bin/python", "/v/bin/x"}, holds: true}}, 1, nil},
		{"a watcher without our pipes", []process{npx, cover, server, {pid: 4, parent: 1, argv: []string{"sh", "-c", "trap x INT; read y"}}}, 3, nil},
		{"still on its way", []process{npx, cover}, 0, ErrNoServer},
		{"closed its pipes", []process{npx, cover, with(server, func(p *process) { p.holds = false })}, 0, ErrNoServer},
		{"a server and its helper", []process{npx, cover, server, {pid: 4, parent: 3, argv: []string{"node", "helper.js"}, holds: true}}, 0, ErrSeveral},
		{"a shell that does more", []process{npx, with(cover, func(p *process) { p.argv = []string{"sh", "-c", "mcp-pkg; true"} }), server}, 0, ErrSeveral},
		{"a script that stays", []process{npx, with(cover, func(p *process) { p.argv = []string{"sh", "/x/mcp-pkg"} }), server}, 0, ErrSeveral},
		{"a launcher that the server started", []process{npx, cover, server,
			{pid: 4, parent: 3, argv: []string{"npx", "other"}, holds: true}}, 0, ErrSeveral},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := choose(tc.tree)
			if got.pid != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %d, %v, want %d, %v", got.pid, err, tc.want, tc.err)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	paths := func(text string) string { return strings.ReplaceAll(text, ":", string(os.PathListSeparator)) }
	given := []string{paths("PATH=/bin:/usr/bin"), "SECRET=s3cret", "GONE=1", "HOME=/h", "OUTLIVE_COOKIE=a", "_=/usr/bin/npx", "NODE_PATH="}
	got := []string{paths("PATH=/cache/.bin:/bin:/usr/bin"), "SECRET=s3cret", "HOME=/h2", "npm_command=exec", "OUTLIVE_COOKIE=b", "NODE_PATH=/n"}
	e := changes(given, got)
	want := Environment{
		Set:    []string{"HOME=/h2", "NODE_PATH=/n", "npm_command=exec"},
		Unset:  []string{"GONE"},
		Before: []string{paths("PATH=/cache/.bin:")},
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	next := e.Apply([]string{"PATH=/new", "SECRET=other", "GONE=2", "OUTLIVE_COOKIE=c"})
	if diff := cmp.Diff([]string{paths("PATH=/cache/.bin:/new"), "SECRET=other", "OUTLIVE_COOKIE=c", "HOME=/h2", "NODE_PATH=/n", "npm_command=exec"}, next); diff != "" {
		t.Errorf("with another environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"PATH=/cache/.bin", "HOME=/h2", "NODE_PATH=/n", "npm_command=exec"}, e.Apply(nil)); diff != "" {
		t.Errorf("without a PATH (-want +got):\n%s", diff)
	}
}

// The changes make of what the launcher was given what the server got, and keep no value that did not change.
func TestChangesGiveTheServersEnvironment(t *testing.T) {
	name := rapid.SampledFrom([]string{"A", "B", "PATH", "NODE_PATH", "X Y", "é"})
	value := rapid.SampledFrom([]string{"", "a", "b:a", "c:b:a", ":a", "=", "a=b\n", ":"})
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.MapOf(name, value).Draw(t, "given")
		got := rapid.MapOf(name, value).Draw(t, "got")
		e := changes(list(given), list(got))
		now := map[string]string{}
		for _, kv := range e.Apply(list(given)) {
			k, v, _ := strings.Cut(kv, "=")
			if _, twice := now[k]; twice {
				t.Fatalf("%s is set twice", k)
			}
			now[k] = v
		}
		if diff := cmp.Diff(got, now); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", e, diff)
		}
		for _, kv := range append(e.Set, e.Before...) {
			k, v, _ := strings.Cut(kv, "=")
			if was, had := given[k]; had && was == v && was == got[k] {
				t.Errorf("%s did not change and is kept", k)
			}
		}
	})
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func list(m map[string]string) (env []string) {
	for k, v := range m {
		env = append(env, k+"="+v)
	}
	return env
}

// installed lays out a folder as npm does and returns the command that runs the package in it.
func installed(t *testing.T) (c Command, root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pkg := filepath.Join(root, "cache", "node_modules", "pkg")
	for path, text := range map[string]string{
		filepath.Join(root, "cache", "package-lock.json"):                  "{}",
		filepath.Join(root, "cache", "node_modules", ".package-lock.json"): "{}",
		filepath.Join(pkg, "package.json"):                                 `{"version":"1.0.0"}`,
		filepath.Join(pkg, "dist", "index.js"):                             "//",
		filepath.Join(root, "bin", "node"):                                 "#!",
		filepath.Join(root, "project", "notes.json"):                       "{}",
	} {
		write(t, path, text)
	}
	bin := filepath.Join(root, "cache", "node_modules", ".bin", "pkg")
	if err := os.MkdirAll(filepath.Dir(bin), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../pkg/dist/index.js", bin); err != nil {
		t.Skipf("npm makes a link here, which needs a right on Windows, where launchers are not replaced: %v", err)
	}
	c = Command{
		Kind: Npx, Asked: []string{"npx", "-y", "pkg"}, Version: Latest, Dir: filepath.Join(root, "project"),
		Exe: filepath.Join(root, "bin", "node"), Argv: []string{filepath.Join(root, "bin", "node"), bin, "notes.json"},
	}
	c.Stamps = stampsOf(parse(c.Asked), c.Dir, c.Exe, c.Argv)
	return c, root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestStartable(t *testing.T) {
	c, root := installed(t)
	node, js := c.Exe, c.Argv[1]
	if err := os.Symlink(node, filepath.Join(root, "called")); err != nil {
		t.Fatal(err)
	}
	path := []string{"PATH=/nowhere:" + filepath.Dir(node)}
	for _, tc := range []struct {
		name string
		p    process
		want string // the first word; "" for an error
	}{
		{"a bare name", process{argv: []string{"node", js}, env: path}, node},
		{"a bare name that leads elsewhere", process{argv: []string{"node", js}}, node},
		{"a path", process{argv: []string{node, js}}, node},
		{"a symbolic link is kept", process{argv: []string{filepath.Join(root, "called"), js}}, filepath.Join(root, "called")},
		{"a relative path", process{argv: []string{"../bin/node", js}}, node},
		{"a relative script", process{argv: []string{"node", "notes.json", "/no/such/file"}, env: path}, node},
		{"a title", process{argv: []string{"my server"}}, ""},
		{"a title with zeros behind it", process{argv: []string{"node", "", "", ""}, titled: true}, ""},
		{"nothing", process{}, ""},
		{"a script in an archive", process{argv: []string{node, "/tmp/cache/pkg.zip/index.js"}}, ""},
		{"a folder that is gone", process{argv: []string{node, js}, dir: "/srv (deleted)"}, ""},
		{"an executable that is gone", process{argv: []string{node, js}, exe: node + " (deleted)"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.p.exe, tc.p.dir = or(tc.p.exe, node), or(tc.p.dir, c.Dir)
			got, err := tc.p.startable()
			if (err != nil) != (tc.want == "") || err != nil && !errors.Is(err, ErrUnusable) {
				t.Fatalf("got %q, %v", got, err)
			}
			if err == nil && (got[0] != tc.want || len(got) != len(tc.p.argv)) {
				t.Errorf("got %q, want %q first", got, tc.want)
			}
		})
	}
}

func TestStale(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, c *Command, root string)
		stale  string // a part of the reason; "" for fresh
	}{
		{"nothing", func(*testing.T, *Command, string) {}, ""},
		{"a file the server writes", func(t *testing.T, c *Command, root string) {
			write(t, filepath.Join(root, "project", "notes.json"), `{"a":1}`)
		}, ""},
		{"another package installed", func(t *testing.T, c *Command, root string) {
			write(t, filepath.Join(root, "cache", "package-lock.json"), `{"a":1}`)
		}, "package-lock.json has changed"},
		{"the package replaced", func(t *testing.T, c *Command, root string) {
			write(t, filepath.Join(root, "cache", "node_modules", "pkg", "package.json"), `{"version":"1.0.10"}`)
		}, "package.json has changed"},
		{"the script edited", func(t *testing.T, c *Command, root string) {
			write(t, filepath.Join(root, "cache", "node_modules", "pkg", "dist", "index.js"), "// more")
		}, "pkg has changed"},
		{"the cache emptied", func(t *testing.T, c *Command, root string) {
			if err := os.RemoveAll(filepath.Join(root, "cache")); err != nil {
				t.Fatal(err)
			}
		}, "has changed"},
		{"a project began where there was none", func(t *testing.T, c *Command, root string) {
			write(t, filepath.Join(root, "project", "package.json"), "{}")
		}, "package.json has changed"},
		{"the interpreter gone", func(t *testing.T, c *Command, root string) {
			if err := os.Remove(c.Exe); err != nil {
				t.Fatal(err)
			}
		}, "is gone"},
		{"the name leads to another interpreter", func(t *testing.T, c *Command, root string) {
			link := filepath.Join(root, "node22")
			write(t, link, "#!")
			c.Argv[0] = link
		}, "leads elsewhere"},
		{"the folder gone", func(t *testing.T, c *Command, root string) {
			if err := os.RemoveAll(c.Dir); err != nil {
				t.Fatal(err)
			}
		}, "is gone"},
		{"@latest", func(t *testing.T, c *Command, root string) { c.Version = Moving }, "looked up"},
		{"no command", func(t *testing.T, c *Command, root string) { *c = Command{} }, "no command"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, root := installed(t)
			tc.change(t, &c, root)
			if got := c.Stale(); !strings.Contains(got, tc.stale) || (got == "") != (tc.stale == "") || c.Fresh() != (got == "") {
				t.Errorf("stale: %q, want %q; fresh: %v", got, tc.stale, c.Fresh())
			}
		})
	}
}

func TestCommandSurvivesJSON(t *testing.T) {
	c, _ := installed(t)
	c.Env = changes([]string{"PATH=/bin"}, []string{"PATH=/x:/bin", "A=1"})
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back Command
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" || !back.Fresh() {
		t.Errorf("stale: %q (-want +got):\n%s", back.Stale(), diff)
	}
	c.Argv = append(c.Argv, "\xff")
	if err := c.usable(); !errors.Is(err, ErrUnusable) {
		t.Errorf("an argument that JSON would change: %v", err)
	}
}

// The stamps of a virtual environment are those of the package that the script or the module belongs to.
func TestStampsOfPython(t *testing.T) {
	root := t.TempDir()
	site := filepath.Join(root, "lib", "python3.12", "site-packages")
	write(t, filepath.Join(root, "pyvenv.cfg"), "uv = 1")
	write(t, filepath.Join(root, "bin", "python"), "")
	write(t, filepath.Join(root, "bin", "mcp-x"), "")
	write(t, filepath.Join(site, "mcp_x-1.0.dist-info", "RECORD"), "../../../bin/mcp-x,sha256=a,1\nmcp_x/__init__.py,,\n")
	write(t, filepath.Join(site, "mcp_xy-1.0.dist-info", "RECORD"), "../../../bin/mcp-xy,sha256=a,1\nmcp_xy/__init__.py,,\n")
	python := filepath.Join(root, "bin", "python")
	want := []string{"bin/python", "pyvenv.cfg", "lib/python3.12/site-packages/mcp_x-1.0.dist-info/RECORD"}
	for _, tc := range []struct {
		argv []string
		want []string
	}{
		{[]string{python, filepath.Join(root, "bin", "mcp-x")}, append([]string{"bin/mcp-x"}, want...)},
		{[]string{python, "-m", "mcp_x.server"}, want},
	} {
		var got []string
		for _, s := range stampsOf(order{kind: Uvx}, root, python, tc.argv) {
			rel, err := filepath.Rel(root, s.Path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.ToSlash(rel))
		}
		less := func(a, b string) bool { return a < b }
		if diff := cmp.Diff(tc.want, got, cmpopts.SortSlices(less)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.argv[1:], diff)
		}
	}
}

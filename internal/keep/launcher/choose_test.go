package launcher

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChoose(t *testing.T) {
	npx := process{pid: 1, argv: []string{"npm exec pkg"}, exe: "/usr/bin/node", holds: true}
	uvx := process{pid: 1, argv: []string{"/opt/uv", "tool", "uvx", "x"}, exe: "/opt/uv", holds: true}
	shell := process{pid: 2, parent: 1, argv: []string{"sh", "-c", "'mcp-pkg' 'a'"}, exe: "/usr/bin/dash", holds: true}
	server := process{pid: 3, parent: 2, argv: []string{"node", "/x/mcp-pkg", "a"}, exe: "/usr/bin/node", holds: true}
	with := func(p process, change func(*process)) process { change(&p); return p }
	under := func(p process, parent int) process { return with(p, func(p *process) { p.parent = parent }) }
	for _, tc := range []struct {
		name string
		tree []process
		want int
		err  error
	}{
		{"npx, shell, server", []process{npx, shell, server}, 3, nil},
		{"uvx, server", []process{uvx, under(server, 1)}, 3, nil},
		{"uvx that was updated meanwhile", []process{with(uvx, func(p *process) { p.exe += " (deleted)" }), under(server, 1)}, 3, nil},
		{"a server elsewhere", []process{npx, shell, with(server, func(p *process) { p.dir = "/srv" })}, 0, ErrMoved},
		{"a launcher elsewhere", []process{npx, with(shell, func(p *process) { p.dir = "/srv" }), with(server, func(p *process) { p.dir = "/srv" })}, 3, nil},
		{"uvx, and a server that is run by a shell", []process{uvx, shell, server}, 0, ErrSeveral},
		{"a launcher behind a launcher", []process{npx, shell, with(uvx, func(p *process) { p.pid, p.parent = 4, 1 }), under(server, 4)}, 3, nil},
		{"a watcher without our pipes", []process{npx, shell, server, {pid: 4, parent: 1, argv: []string{"sh", "-c", "read y"}}}, 3, nil},
		{"still on its way", []process{npx, shell}, 0, ErrNoServer},
		{"closed its pipes", []process{npx, shell, with(server, func(p *process) { p.holds = false })}, 0, ErrNoServer},
		{"a server and its helper", []process{npx, shell, server, {pid: 4, parent: 3, argv: []string{"node", "helper.js"}, holds: true}}, 0, ErrSeveral},
		{"a script that stays", []process{npx, with(shell, func(p *process) { p.argv = []string{"sh", "/x/mcp-pkg"} }), server}, 0, ErrSeveral},
		{"a launcher that the server started", []process{npx, shell, server, with(npx, func(p *process) { p.pid, p.parent = 4, 3 })}, 0, ErrSeveral},
		{"npx -c, whose shell may do more", []process{with(npx, func(p *process) { p.argv = []string{"npm exec"} }), shell, server}, 0, ErrNone},
		{"no launcher", []process{under(server, 0)}, 0, ErrNone},
		{"a shell that runs a launcher", []process{under(shell, 0), with(npx, func(p *process) { p.pid, p.parent = 4, 2 })}, 0, ErrNone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := choose(tc.tree)
			if got.pid != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %d, %v, want %d, %v", got.pid, err, tc.want, tc.err)
			}
		})
	}
}

// The server's own variables stay those that its launcher gave it; outlive's are those of the new start.
func TestEnvironment(t *testing.T) {
	c := Command{env: []string{"PATH=/cache/bin:/bin", "npm_command=exec", "OUTLIVE_GENERATION=1", "OUTLIVE_COOKIE=a", "OUTLIVE=1"}}
	got := c.Environment([]string{"PATH=/bin", "GONE=1", "OUTLIVE=1", "OUTLIVE_GENERATION=2"})
	slices.Sort(got)
	want := []string{"OUTLIVE=1", "OUTLIVE_GENERATION=2", "PATH=/cache/bin:/bin", "npm_command=exec"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProgram(t *testing.T) {
	root := t.TempDir()
	node := write(t, filepath.Join(root, "bin", "node"), "#!")
	other := write(t, filepath.Join(root, "other", "my-server"), "#!")
	called := filepath.Join(root, "called")
	if err := os.Symlink(node, called); err != nil {
		t.Skipf("links need a right on Windows, where launchers are not left out: %v", err)
	}
	path := []string{"PATH=" + filepath.Dir(other) + string(os.PathListSeparator) + filepath.Dir(node)}
	for _, tc := range []struct {
		name string
		p    process
		want string // "" for an error
	}{
		{"a bare name", process{argv: []string{"node"}, env: path}, node},
		{"a bare name that is not in PATH", process{argv: []string{"node"}}, ""},
		{"a path", process{argv: []string{node}}, node},
		{"a symbolic link is kept", process{argv: []string{called}}, called},
		{"a relative path", process{argv: []string{"." + string(filepath.Separator) + "called"}}, called},
		{"a title", process{argv: []string{"my-server"}, env: path}, ""},
		{"nothing", process{}, ""},
		{"an executable that is gone", process{argv: []string{node}, exe: node + " (deleted)"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.p.dir = root
			if tc.p.exe == "" {
				tc.p.exe = node
			}
			got, err := tc.p.program()
			if got != tc.want || (err != nil) != (tc.want == "") || err != nil && !errors.Is(err, ErrUnusable) {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestGone(t *testing.T) {
	root := t.TempDir()
	program := write(t, filepath.Join(root, "bin", "node"), "#!")
	for _, tc := range []struct {
		name string
		c    Command
		want bool
	}{
		{"nothing", Command{Argv: []string{program}, Dir: root}, false},
		{"the program", Command{Argv: []string{program + "2"}, Dir: root}, true},
		{"the program is a directory", Command{Argv: []string{root}, Dir: root}, true},
		{"the directory", Command{Argv: []string{program}, Dir: program}, true},
	} {
		if got := tc.c.Gone(); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

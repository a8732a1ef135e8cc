//go:build unix

package child

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := file("plain.sh", "#!/bin/sh\n", 0o644)
	noShebang := file("noshebang", "echo hi\n", 0o755)
	noInterp := file("nointerp", "#!/no/such/python\n", 0o755)
	crlf := file("crlf", "#!/bin/sh\r\nexit\r\n", 0o755)
	file("mcp-server-time", "#!/bin/sh\n", 0o755)
	file("python3", "#!/bin/sh\n", 0o755)
	env := []string{"PATH=" + dir}

	tests := []struct {
		name string
		argv string
		dir  string
		is   error
		says []string
	}{
		{"not in PATH", "no-such-thing", "", ErrNotFound, []string{"no-such-thing", "not in PATH: " + dir, "installed?"}},
		{"near miss", "mcp-server-tiem", "", ErrNotFound, []string{`did you mean "mcp-server-time"?`}},
		{"python3", "python", "", ErrNotFound, []string{`did you mean "python3"?`}},
		{"launcher", "npx", "", ErrNotFound, []string{"Node.js"}},
		{"no such path", "./nothing", dir, ErrNotFound, []string{"no such file: " + filepath.Join(dir, "nothing"), "working directory"}},
		{"directory", dir, "", ErrNotExecutable, []string{"is a directory"}},
		{"no exec bit", plain, "", ErrNotExecutable, []string{"chmod +x " + plain}},
		{"no exec bit in PATH", "plain.sh", "", ErrNotExecutable, []string{"chmod +x " + plain}},
		{"no shebang", noShebang, "", ErrNotExecutable, []string{"#!"}},
		{"no interpreter", noInterp, "", ErrNotExecutable, []string{"/no/such/python"}},
		{"crlf", crlf, "", ErrNotExecutable, []string{"carriage return"}},
		{"bad dir", "python3", "/no/such/dir", ErrBadDir, []string{"/no/such/dir"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Start(Spec{Argv: []string{tt.argv}, Dir: tt.dir, Env: env}, func(Status) { t.Error("onExit called") })
			if !errors.Is(err, tt.is) {
				t.Fatalf("error %v, want %v", err, tt.is)
			}
			for _, s := range tt.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
	if _, err := Start(Spec{}, nil); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty command: %v", err)
	}
	if _, err := Start(Spec{Argv: []string{"x"}, Env: []string{"A=b"}}, nil); !errors.Is(err, ErrNotFound) ||
		!strings.Contains(err.Error(), "PATH is empty") {
		t.Errorf("no PATH: %v", err)
	}
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tool")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/no/such/dir:"+dir)
	for _, tt := range []struct{ argv0, dir string }{{"tool", ""}, {"./tool", dir}, {path, ""}} {
		if got, err := Resolve(tt.argv0, tt.dir); err != nil || got != path {
			t.Errorf("Resolve(%q, %q) = %q, %v", tt.argv0, tt.dir, got, err)
		}
	}
}

func TestOfEqualVariablesTheLastCounts(t *testing.T) {
	got := lastOfEach([]string{"A=1", "B=2", "A=3", "=odd", "=odd2", "C"})
	want := []string{"A=3", "B=2", "=odd", "=odd2", "C"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

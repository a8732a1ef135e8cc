package watch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write makes files below dir: names and contents in turn.
func write(t testing.TB, dir string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, filepath.FromSlash(files[i]))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAuto(t *testing.T) {
	const js, ts = "*.{js,mjs,cjs,json}", "*.{ts,tsx,mts,cts,js,jsx,mjs,cjs,json}"
	for _, tc := range []struct {
		name  string
		files string // in the root, apart by spaces
		argv  string
		want  []string
		fail  string // part of the error
	}{
		{"script", "server.py", "python server.py --port 1", []string{"**/*.py", "server.py"}, ""},
		{"version and options", "a/server.py", "/usr/bin/python3.12 -u -W ignore -X dev a/server.py", []string{"a/**/*.py", "a/server.py"}, ""},
		{"in a package", "src/__init__.py src/p/__init__.py src/p/x.py", "python src/p/x.py", []string{"src/**/*.py", "src/p/x.py"}, ""},
		{"manifests of the project", "src/x.py pyproject.toml uv.lock", "python src/x.py", []string{"pyproject.toml", "src/**/*.py", "src/x.py", "uv.lock"}, ""},
		{"module", "pkg/__main__.py", "python -m pkg.sub --x", []string{"pkg/**/*.py"}, ""},
		{"module in src", "src/pkg/__init__.py pyproject.toml", "python3 -m pkg", []string{"pyproject.toml", "src/pkg/**/*.py"}, ""},
		{"module that is a file", "serve.py", "python -m serve", []string{"**/*.py"}, ""},
		{"module elsewhere", "x.py", "python -m http.server", nil, "module http is neither in"},
		{"program on the command line", "x.py", "python -c print(1)", nil, "on the command line"},
		{"missing script", "", "python gone.py", nil, "there is no file"},
		{"no script", "", "python", nil, "no script is named"},
		{"uv run script", "server.py", "uv run --with mcp server.py", []string{"**/*.py", "server.py"}, ""},
		{"uv elsewhere", "p/server.py p/pyproject.toml", "uv --directory p run server.py", []string{"p/**/*.py", "p/pyproject.toml", "p/server.py"}, ""},
		{"uv run program", "pyproject.toml src/m/a.py", "uv run my-server", []string{"**/*.py", "pyproject.toml"}, ""},
		{"uv run module", "m/__main__.py", "uv run -m m", []string{"m/**/*.py"}, ""},
		{"uv run python", "server.py", "uv run python -u server.py", []string{"**/*.py", "server.py"}, ""},
		{"uv run mcp", "server.py", "uv run mcp run server.py:app", []string{"**/*.py", "server.py"}, ""},
		{"uvx", "", "uvx mcp-server-git", nil, "installed from elsewhere"},
		{"uvx of a directory", "pyproject.toml a.py", "uvx --from . my-server", []string{"**/*.py", "pyproject.toml"}, ""},
		{"poetry", "server.py", "poetry run python server.py", []string{"**/*.py", "server.py"}, ""},
		{"fastmcp", "s.py", "fastmcp run s.py", []string{"**/*.py", "s.py"}, ""},
		{"node", "package.json dist/index.js yarn.lock", "node --enable-source-maps dist/index.js /data",
			[]string{"**/" + js, "dist/**/" + js, "dist/index.js", "yarn.lock"}, ""},
		{"node without a package", "d/index.js", "node d/index.js", []string{"d/**/" + js, "d/index.js"}, ""},
		{"node, no extension", "index.mjs", "node -r x index", []string{"**/" + js, "index.mjs"}, ""},
		{"node, directory", "srv/index.js", "node srv", []string{"srv/**/" + js}, ""},
		{"node, installed package", "package.json node_modules/@a/b/package.json node_modules/@a/b/dist/i.js", "node node_modules/@a/b/dist/i.js",
			[]string{"node_modules/@a/b/**/" + js, "node_modules/@a/b/dist/**/" + js, "node_modules/@a/b/dist/i.js"}, ""},
		{"npx tsx", "package.json src/s.ts", "npx -y tsx src/s.ts", []string{"**/" + ts, "src/**/" + ts, "src/s.ts"}, ""},
		{"tsx watch", "s.ts", "tsx watch s.ts", []string{"**/" + ts, "s.ts"}, ""},
		{"npx package", "package.json", "npx -y @modelcontextprotocol/server-everything", nil, "installed from elsewhere"},
		{"npm start", "package.json", "npm start", []string{"**/" + ts}, ""},
		{"npm elsewhere", "a/package.json", "npm --prefix a run serve", []string{"a/**/" + ts}, ""},
		{"npm without a package", "", "npm start", nil, "there is no package.json"},
		{"bun", "s.ts", "bun run s.ts", []string{"**/" + ts, "s.ts"}, ""},
		{"deno", "s.ts", "deno run --allow-net -A s.ts", []string{"**/" + ts, "s.ts"}, ""},
		{"deno from the net", "", "deno run jsr:@a/b", nil, "not a local file"},
		{"go run", "go.mod cmd/x/main.go", "go run -race ./cmd/x", []string{"**/*.go", "go.mod"}, ""},
		{"go run elsewhere", "go.mod", "go run example.com/x@latest", nil, "installed from elsewhere"},
		{"cargo", "Cargo.toml src/main.rs", "cargo run --release", []string{"**/*.rs", "Cargo.toml"}, ""},
		{"jar", "s.jar", "java -Xmx1g -jar s.jar", []string{"s.jar"}, ""},
		{"dll", "s.dll", "dotnet s.dll", []string{"s.dll"}, ""},
		{"ruby", "s.rb", "ruby -w s.rb", []string{"**/*.rb", "s.rb"}, ""},
		{"env", "s.py", "env -u A B=1 C=2 python s.py", []string{"**/*.py", "s.py"}, ""},
		{"sh -c", "a/s.py", "sh -c|cd a && exec python s.py", []string{"a/**/*.py", "a/s.py"}, ""},
		{"sh -c, more than that", "s.py", "sh -c|python s.py | tee x", nil, "more than one plain command"},
		{"sh script", "run.sh", "bash run.sh", []string{"**/*.{sh,bash}", "run.sh"}, ""},
		{"timeout", "s.py", "timeout -k 1 5 python s.py", []string{"**/*.py", "s.py"}, ""},
		{"docker", "", "docker run -i x", nil, "runs what is elsewhere"},
		{"special characters", "a[1]{b}/s.py", "python a[1]{b}/s.py", []string{"a[[]1][{]b[}]/**/*.py", "a[[]1][{]b[}]/s.py"}, ""},
		{"no such program", "", "./gone", nil, "gone"},
		{"nothing", "", "", nil, "there is no command"},
		{"wrapped without end", "", strings.Repeat("env ", 20) + "x", nil, "around each other"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "project") // not directly in the temporary directory
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			for name := range strings.FieldsSeq(tc.files) {
				write(t, root, name, "")
			}
			argv := strings.Fields(tc.argv)
			if before, rest, ok := strings.Cut(tc.argv, "|"); ok { // the rest is one word
				argv = append(strings.Fields(before), rest)
			}
			got, err := Auto(root, argv)
			if tc.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fail) || !strings.Contains(err.Error(), "--watch '") {
					t.Errorf("got %q, %v; want an error with %q that says what to write", got, err, tc.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if _, err := newSelection(filepath.ToSlash(root), got); err != nil {
				t.Errorf("the globs are not good: %v", err)
			}
		})
	}
}

func TestAutoOfPrograms(t *testing.T) {
	root := filepath.Join(t.TempDir(), "project")
	write(t, root, "bin/server", "\x7fELF", "real/server-1.2", "\x7fELF", "pyproject.toml", "", "app/x.py", "",
		".venv/pyvenv.cfg", "", ".venv/bin/serve", "#!"+root+"/.venv/bin/python\n", "tool/run.py", "#!/usr/bin/env -S python3 -u\n")
	for _, name := range []string{"bin/server", "real/server-1.2", ".venv/bin/serve", "tool/run.py"} {
		if err := os.Chmod(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../real/server-1.2", filepath.Join(root, "bin/latest")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	for _, tc := range []struct {
		argv string
		want []string
	}{
		{"./bin/server --flag", []string{"bin/server"}},
		{"./bin/latest", []string{"bin/latest", "real/server-1.2"}},
		{".venv/bin/serve", []string{".venv/bin/serve", "**/*.py", "pyproject.toml"}},
		{"./tool/run.py", []string{"pyproject.toml", "tool/**/*.py", "tool/run.py"}},
	} {
		got, err := Auto(root, strings.Fields(tc.argv))
		if err != nil {
			t.Errorf("%s: %v", tc.argv, err)
			continue
		}
		want := map[string]bool{}
		for _, glob := range tc.want {
			want[glob] = true
		}
		have := map[string]bool{}
		for _, glob := range got {
			have[glob] = true
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s: %s", tc.argv, diff)
		}
	}
}

// A script that lies directly in the home or temporary directory must not make everything there watched.
func TestAutoIsNotTooWide(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	write(t, home, "server.py", "", "photos/x.py", "")
	got, err := Auto(home, []string{"python", "server.py"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"*.py", "server.py"}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzAuto(f *testing.F) {
	f.Add("uv --directory x run -m a.b")
	f.Add("sh -c python s.py")
	f.Add("npx -y tsx [a]{b}.ts")
	root := filepath.Join(f.TempDir(), "project")
	write(f, root, "s.py", "", "[a]{b}.ts", "", "pyproject.toml", "", "package.json", "")
	f.Fuzz(func(t *testing.T, line string) {
		got, err := Auto(root, strings.Fields(line))
		if err != nil {
			return
		}
		if _, err := newSelection(filepath.ToSlash(root), got); err != nil {
			t.Errorf("%q makes the globs %q, which are not good: %v", line, got, err)
		}
	})
}

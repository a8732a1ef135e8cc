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
		{"in a project", "src/p/x.py .gitignore", "python src/p/x.py", []string{"**/*.py", "src/p/**/*.py", "src/p/x.py"}, ""},
		{"in a repository", "a/src/x.py a/.git/HEAD", "python a/src/x.py", []string{"a/**/*.py", "a/src/**/*.py", "a/src/x.py"}, ""},
		{"the nearest project", "a/src/x.py a/.gitignore .gitignore", "python a/src/x.py", []string{"a/**/*.py", "a/src/**/*.py", "a/src/x.py"}, ""},
		{"what is compiled", "dist/index.js .gitignore", "node --enable-source-maps dist/index.js /data", []string{"**/" + js, "dist/**/" + js, "dist/index.js"}, ""},
		{"an installed package", ".gitignore node_modules/@a/b/dist/i.js", "node node_modules/@a/b/dist/i.js",
			[]string{"node_modules/@a/b/dist/**/" + js, "node_modules/@a/b/dist/i.js"}, ""},
		{"behind a launcher", "src/s.ts", "npx -y tsx src/s.ts", []string{"src/**/" + ts, "src/s.ts"}, ""},
		{"behind a wrapper", "s.py", "timeout -k 1 5 env -u A B=1 python s.py", []string{"**/*.py", "s.py"}, ""},
		{"uv run script", "server.py", "uv run --with mcp server.py", []string{"**/*.py", "server.py"}, ""},
		{"uv elsewhere", "p/server.py server.py p/.gitignore", "uv --directory p run server.py", []string{"p/**/*.py", "p/server.py"}, ""},
		{"go run", "cmd/x/main.go .gitignore", "go run -race ./cmd/x", []string{"**/*.go", "cmd/x/**/*.go"}, ""},
		{"go run of a file", "main.go", "go run main.go", []string{"**/*.go", "main.go"}, ""},
		{"go run elsewhere", "m/main.go main.go", "go -C m run .", []string{"m/**/*.go"}, ""},
		{"go run of a package that is downloaded", "main.go", "go run example.com/x@latest", nil, "no argument of it is a script"},
		{"ruby", "s.rb", "ruby -w s.rb", []string{"**/*.rb", "s.rb"}, ""},
		{"sh", "run.sh", "bash run.sh", []string{"**/*.{sh,bash}", "run.sh"}, ""},
		{"an extension in capitals", "S.PY", "python S.PY", []string{"**/*.py", "S.PY"}, ""},
		{"special characters", "a[1]{b}/s.py", "python a[1]{b}/s.py", []string{"a[[]1][{]b[}]/**/*.py", "a[[]1][{]b[}]/s.py"}, ""},
		{"data is not a script", "notes/a.txt state.db", "npx -y server notes state.db", nil, "no argument of it is a script"},
		{"a directory is not a script", "notes/a.py", "uvx server --repository notes", nil, "no argument of it is a script"},
		{"module", "pkg/__main__.py", "python -m pkg", nil, "no argument of it is a script"},
		{"program on the command line", "x.py", "python -c print(1)", nil, "no argument of it is a script"},
		{"missing script", "", "python gone.py", nil, "no argument of it is a script"},
		{"package", "package.json", "npx -y @modelcontextprotocol/server-everything", nil, "no argument of it is a script"},
		{"no such program", "", "./gone", nil, "no argument of it is a script"},
		{"nothing", "", "", nil, "there is no command"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "project") // not directly in the temporary directory
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			for name := range strings.FieldsSeq(tc.files) {
				write(t, root, name, "")
			}
			got, err := Auto(root, strings.Fields(tc.argv))
			if tc.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fail) || !strings.Contains(err.Error(), "name the files instead") {
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
	write(t, root, "bin/server", "\x7fELF", "real/server-1.2", "\x7fELF", "tool/run.py", "#!/usr/bin/env python3\n", "other/serve.py", "#!/usr/bin/env python3\n")
	for from, to := range map[string]string{"bin/latest": "../real/server-1.2", "bin/serve.py": "../other/serve.py"} {
		if err := os.Symlink(to, filepath.Join(root, from)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	for _, tc := range []struct {
		argv string
		want []string
	}{
		{"./bin/server --flag", []string{"bin/server"}},
		{"./bin/latest", []string{"bin/latest", "real/server-1.2"}},
		{"./tool/run.py", []string{"tool/**/*.py", "tool/run.py"}},
		{"./bin/serve.py", []string{"bin/serve.py", "other/**/*.py", "other/serve.py"}},
	} {
		got, err := Auto(root, strings.Fields(tc.argv))
		if err != nil {
			t.Errorf("%s: %v", tc.argv, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
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
	f.Add("uv --directory x run s.py")
	f.Add("go -C x run .")
	f.Add("npx -y tsx [a]{b}.ts")
	root := filepath.Join(f.TempDir(), "project")
	write(f, root, "s.py", "", "[a]{b}.ts", "", "x/a.go", "", ".gitignore", "")
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

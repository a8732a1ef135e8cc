package watch

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestSelection(t *testing.T) {
	top := filepath.ToSlash(t.TempDir())
	write(t, top, "root/.gitignore", "dist/\nbuild/*\n*.gen.py\nout\n", "root/src/x", "", "root/dist/x", "", "lib/x", "")
	for _, tc := range []struct {
		globs string
		yes   string // files that are watched, relative to root
		no    string
	}{
		{"**/*.py", "a.py b/c/a.py .hidden/a.py", "a.js a.gen.py dist/a.py node_modules/x/a.py .venv/lib/a.py x/__pycache__/a.py .git/a.py"},
		{"*.py", "a.py", "b/a.py"},
		{"src", "src/a src/b/c", "a srcs/a src/.a.swp src/a~ src/#a# src/.#a"},
		{"src/", "src/a", "a"},
		{"new/", "new/a new/b/c", "new"}, // not there yet
		{"src/**/*.{js,ts} !src/test/** !**/*.d.ts", "src/a.ts src/b/c.js", "src/test/a.ts src/test/b/a.ts src/b/a.d.ts a.ts"},
		{"** !src", "a b/c", "src/a src/b/c"},
		{"{src/a,lib}/**/*.py", "src/a/x.py lib/b/c.py", "src/b/x.py"},
		{"src/*/a.py", "src/b/a.py", "src/a.py src/b/c/a.py"},
		{"dist/**/*.js", "dist/a.js dist/b/a.js", "dist/a.py dist/node_modules/a.js"}, // ignored by git, but asked for
		{"build/*.js", "build/a.js", "a.js"},
		{"out", "out", "out/a"},
		{"*.gen.py", "a.gen.py", "a.py"},
		{"**/*.py dist/*.py", "a.py dist/a.py", "dist/b/a.py"},
		{"node_modules/x/**/*.js", "node_modules/x/a.js", "node_modules/x/node_modules/y/a.js node_modules/y/a.js"},
		{"swap/.a.py.swp", "swap/.a.py.swp", "swap/.b.py.swp"},
		{"../lib/**/*.py", "../lib/a.py ../lib/b/a.py", "lib/a.py a.py ../a.py"},
		{top + "/lib/*.py", "../lib/a.py", "../lib/b/a.py a.py"},
		{"./src/../src/x", "src/x", "src/y"},
		{"a[*]b.py", "a*b.py", "axb.py"},
		{"./!a.py", "!a.py", "a.py"},
	} {
		s, err := newSelection(top+"/root", strings.Fields(tc.globs))
		if err != nil {
			t.Errorf("%s: %v", tc.globs, err)
			continue
		}
		r := newRules(s.starts)
		s.apply(r)
		for _, f := range strings.Fields(tc.yes) {
			if !chosen(s, r, top+"/root", f) {
				t.Errorf("%s: %s is not watched", tc.globs, f)
			}
		}
		for _, f := range strings.Fields(tc.no) {
			if chosen(s, r, top+"/root", f) {
				t.Errorf("%s: %s is watched", tc.globs, f)
			}
		}
	}
}

// chosen asks as the survey does: from a start downwards, directory by directory.
func chosen(s *selection, r *rules, root, name string) bool {
	file := filepath.ToSlash(filepath.Join(root, name))
	for _, start := range s.starts {
		rel, ok := below(start, file)
		if !ok {
			continue
		}
		at, reached := start, true
		parts := strings.Split(rel, "/")
		for _, dir := range parts[:len(parts)-1] {
			at += "/" + dir
			reached = reached && s.hasDir(r, at)
		}
		if reached && s.hasFile(r, file) {
			return true
		}
	}
	return false
}

func TestBadGlobs(t *testing.T) {
	for _, tc := range []struct{ globs, want string }{
		{"", "says what to watch"},
		{"!*.py", "says what to watch"},
		{"a[", "malformed"},
		{"a{b", "malformed"},
		{"*/../a", "before the first wildcard"},
		{"a\x00b", "zero byte"},
		{"! *", "empty"},
	} {
		if _, err := newSelection("/r", strings.Fields(tc.globs)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.globs, err, tc.want)
		}
	}
}

// Every file that a glob means can be reached through the directories that may hold such files.
func FuzzGlob(f *testing.F) {
	f.Add("**/*.py", "a/b.py")
	f.Add("{a/b,c}/*", "a/b/c")
	f.Add("/a/[b]/**", "a")
	f.Add("../x/*.{a,b}", "../x/c.a")
	f.Add("a\\*/**/c?", "a*/b/cd")
	f.Add("{a,*}*", "b/c/d")
	f.Add("{}**", "a/b")
	f.Add("0***/", "0/0")
	f.Add("*[!b]c", "a/c")
	f.Add("*[+-0]c", "a/c")
	f.Fuzz(func(t *testing.T, glob, name string) {
		p, err := newPattern("/r/s", glob)
		if err != nil || name == "" {
			return
		}
		file := filepath.ToSlash(filepath.Join("/r/s", name))
		if !p.matches(file) {
			return
		}
		for dir := filepath.ToSlash(filepath.Dir(file)); ; dir = filepath.ToSlash(filepath.Dir(dir)) {
			if may, _ := p.mayHold(dir); !may {
				t.Fatalf("%q means %s, but %s is not looked into", glob, file, dir)
			}
			if dir == "/" {
				return
			}
		}
	})
}

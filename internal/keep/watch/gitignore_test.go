package watch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// git runs in dir, without the settings of this machine, and returns its output; status 1 is an answer, too.
func git(t interface {
	Helper()
	Fatalf(string, ...any)
	Context() context.Context
}, dir, in string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "core.ignoreCase=false", "-c", "core.quotePath=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "XDG_CONFIG_HOME="+dir, "HOME="+dir,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	cmd.Stdin = strings.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("git %q: %v %s", args, err, errs.String())
	}
	return out.String()
}

func needGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is what the rules are compared with:", err)
	}
}

// checkIgnore returns those of the paths that git ignores. A path with a slash at the end is a directory.
func checkIgnore(t *rapid.T, dir string, paths []string) []string {
	out := git(t, dir, strings.Join(paths, "\x00"), "check-ignore", "--no-index", "-z", "--stdin")
	return strings.FieldsFunc(out, func(c rune) bool { return c == 0 })
}

// unwritten are patterns that nobody writes and that git reads in a way of its own: more than two stars, two stars beside something
// else than a slash or twice in a row, and two slashes. Named classes like [[:alpha:]] and open ones are not generated either.
var unwritten = regexp.MustCompile(`\*\*[^/]|[^/]\*\*|\*\*/\*\*|//`)

// Random ignore files mean to us what they mean to git.
func TestIgnoreIsGits(t *testing.T) {
	needGit(t)
	top := t.TempDir()
	git(t, top, "", "init", "-q")
	dirs := []string{"a", "a/b", "a/b/a", "b", "b/c", "c.x", "node"}
	files := []string{"a.x", "b", "*.x", "ab", "a b", "#a", "!b", "c.x", "A.x", "a]", "-", "a1"}
	var paths []string
	for _, d := range dirs {
		if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range dirs {
		paths = append(paths, d)
		for _, f := range files {
			if st, err := os.Stat(filepath.Join(top, d, f)); err == nil && st.IsDir() {
				continue
			}
			write(t, top, d+"/"+f, "")
			paths = append(paths, d+"/"+f)
		}
	}
	piece := rapid.SampledFrom([]string{"a", "b", "c", ".x", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[a-c]", "[]a]", "[!]a]", "[!-a]", "[^0-9]",
		"\\*", "\\!", " ", "!", "#", "]", "-", "1", "{a}", "{", "}", "**/", "/**"})
	line := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), "") }).Filter(
		func(s string) bool { return !unwritten.MatchString(s) })
	file := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 4).Draw(t, "lines"), rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(t, "end")) + "\n"
	})
	rapid.Check(t, func(t *rapid.T) {
		for _, name := range []string{".gitignore", "a/.gitignore", "a/b/.gitignore", ".git/info/exclude"} {
			if err := os.WriteFile(filepath.Join(top, name), []byte(file.Draw(t, name)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want := checkIgnore(t, top, paths)
		r := newRules([]string{filepath.ToSlash(top)})
		got := []string{}
		for _, p := range paths {
			st, err := os.Stat(filepath.Join(top, p))
			if err != nil {
				t.Fatal(err)
			}
			if r.ignores(filepath.ToSlash(top)+"/"+p, st.IsDir()) {
				got = append(got, p)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("git -, we +:\n%s", diff)
		}
	})
}

func TestRulesOfRepositories(t *testing.T) {
	top := filepath.ToSlash(t.TempDir())
	write(t, top,
		".git/HEAD", "", ".git/info/exclude", "secret\n",
		".gitignore", "*.log\nvendor/\n", "src/.gitignore", "!keep.log\n",
		"sub/.git", "gitdir: ../.git/modules/sub\n", ".git/modules/sub/HEAD", "", "sub/.gitignore", "own\n",
		"tree/.git", "gitdir: "+top+"/.git/worktrees/tree\n", ".git/worktrees/tree/commondir", "../..\n",
		"vendor/x/.git/HEAD", "")
	for _, tc := range []struct {
		start, path string
		isDir, want bool
	}{
		{"", "a.log", false, true},
		{"", "src/a.log", false, true},
		{"", "src/keep.log", false, false},
		{"", "src/secret", false, true},
		{"src", "src/a.log", false, true}, // rules of the directories above the root count
		{"src", "src/keep.log", false, false},
		{"", "vendor", true, true},
		{"", "vendor/x/a.py", false, true},          // a repository in an ignored directory
		{"vendor/x", "vendor/x/a.py", false, false}, // unless the watching begins there
		{"", "sub/a.log", false, false},             // a submodule has its own rules
		{"", "sub/own", false, true},
		{"tree", "tree/secret", false, true}, // linked work trees share the exclude file
		{"tree", "tree/a.log", false, false},
	} {
		r := newRules([]string{strings.TrimSuffix(top+"/"+tc.start, "/")})
		if got := r.ignores(top+"/"+tc.path, tc.isDir); got != tc.want {
			t.Errorf("from %q: %s ignored: %v, want %v", tc.start, tc.path, got, tc.want)
		}
	}
}

// Without a repository, .gitignore files count from the root on.
func TestRulesWithoutRepository(t *testing.T) {
	top := filepath.ToSlash(t.TempDir())
	write(t, top, ".gitignore", "*.py\n", "base/.gitignore", "gen/\n")
	r := newRules([]string{top + "/base"})
	if !r.ignores(top+"/base/gen/a.py", false) || r.ignores(top+"/base/a.py", false) {
		t.Error("the root's own file counts, the one above does not")
	}
}

// However odd, a pattern takes no long time.
func FuzzIgnore(f *testing.F) {
	f.Add([]byte("*.log\n!keep\n/a/**/b/\n\\#x\n[a-z]*\n"), "a/b/c.log")
	f.Add([]byte(strings.Repeat("a*", 40)+"b"), strings.Repeat("a", 200))
	f.Add([]byte(strings.Repeat("**/a", 30)), strings.Repeat("a/", 100)+"b")
	f.Add([]byte("[[:alpha:]-\\]x]?"), "a")
	f.Fuzz(func(t *testing.T, text []byte, p string) {
		if len(p) > 4096 {
			return
		}
		lines := parseIgnore(text)
		v := judge(lines, p, false)
		if v != undecided && len(lines) == 0 {
			t.Error("nothing cannot decide")
		}
		for _, l := range lines {
			if l.glob == "" {
				t.Errorf("an empty pattern in %q", text)
			}
		}
	})
}

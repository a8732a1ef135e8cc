package watch

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// TestMain lets many tests run at once, unless somebody wants another number: they wait for quiet times, and need little of a processor.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// patience is how long something that must happen may take on a busy machine.
const patience = 2 * time.Minute

// watching is a watcher on a directory, and what it has told.
type watching struct {
	t    *testing.T
	root string
	*Watcher
	told      chan []string
	writes    atomic.Int32 // one of the following
	sentinels int          // how often the sentinel was written anew
}

// What the test does: it waits for what is told; it has written just now; it writes.
const (
	waits int32 = iota
	wrote
	writing
)

// held holds up what is told while the test writes, and for one quiet time more: a busy machine may stop a writer for longer than
// that in the middle of a save, and what it has saved so far would rightly be told for itself.
func (w *watching) held() bool {
	return w.writes.CompareAndSwap(wrote, waits) || w.writes.Load() == writing
}

type addFunc = func(*fsnotify.Watcher, string) error

// watch starts a watcher and waits until it knows the files' content. The file "sentinel" is always watched.
func watch(t *testing.T, root string, opts Options, quiet time.Duration, add addFunc) *watching {
	t.Helper()
	write(t, root, "sentinel", "0")
	w := &watching{t: t, root: root, told: make(chan []string, 100)}
	opts.Root = root
	opts.Globs = append(opts.Globs, "sentinel")
	known := make(chan struct{})
	how := setup{quiet: quiet, interval: 20 * time.Millisecond, mostFiles: 1000, add: add, held: w.held, ready: func() { close(known) }}
	var err error
	if w.Watcher, err = newWatcher(opts, how, func(paths []string) { w.told <- paths }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	select {
	case <-known:
	case <-time.After(patience):
		t.Fatal("the files were not read")
	}
	w.writes.Store(writing)
	return w
}

// next waits for what is told of what the test has written.
func (w *watching) next() []string {
	w.t.Helper()
	w.writes.Store(wrote)
	defer w.writes.Store(writing)
	select {
	case paths := <-w.told:
		for i, p := range paths {
			paths[i] = filepath.ToSlash(p)
		}
		return paths
	case <-time.After(patience):
		w.t.Fatal("no change was told")
		return nil
	}
}

// want waits for one change of exactly these paths.
func (w *watching) want(paths ...string) {
	w.t.Helper()
	if diff := cmp.Diff(paths, w.next()); diff != "" {
		w.t.Fatal(diff)
	}
}

// wantNothing changes the sentinel and finds that nothing else was told.
func (w *watching) wantNothing() {
	w.t.Helper()
	w.sentinels++
	write(w.t, w.root, "sentinel", fmt.Sprint("sentinel ", w.sentinels))
	w.want("sentinel")
}

func (w *watching) path(name string) string { return filepath.Join(w.root, filepath.FromSlash(name)) }

func (w *watching) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// change changes a directory. Windows refuses that at a moment at which a program, such as the watcher, looks into it: tools try again there.
func (w *watching) change(do func() error) {
	w.t.Helper()
	var err error
	await.Until(w.t, "a directory can be changed", func() bool {
		err = do()
		return err == nil || runtime.GOOS != "windows"
	})
	w.must(err)
}

// quietTime is the debounce of the tests: within it, the events of what was written have to come in.
const quietTime = 300 * time.Millisecond

// modes are the ways in which changes come to be known. What is told is the same.
var modes = []struct {
	name string
	add  addFunc
}{
	{name: "events", add: (*fsnotify.Watcher).Add},
	{name: "polling"},
	{name: "no watches left", add: func(*fsnotify.Watcher, string) error { return syscall.ENOSPC }},
}

// inModes runs a test on a project in each of the ways.
func inModes(t *testing.T, globs []string, test func(w *watching)) {
	t.Helper()
	inModesAfter(t, quietTime, globs, test)
}

// inModesAfter is inModes with a debounce of its own: that of many files is longer, since a busy machine takes long to look at them.
func inModesAfter(t *testing.T, quiet time.Duration, globs []string, test func(w *watching)) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, root, "a.py", "a", "b.py", "b", "src/c.py", "c", "src/deep/d.py", "d", "note.txt", "n", "node_modules/x/e.py", "e")
			test(watch(t, root, Options{Globs: globs}, quiet, mode.add))
		})
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	inModes(t, []string{"**/*.py"}, func(w *watching) {
		write(w.t, w.root, "a.py", "changed")
		w.want("a.py")
		write(w.t, w.root, "src/deep/d.py", "changed", "src/c.py", "changed", "note.txt", "changed", "node_modules/x/e.py", "changed")
		w.want("src/c.py", "src/deep/d.py")
		write(w.t, w.root, "new.py", "", "src/new/er/e.py", "")
		w.want("new.py", "src/new/er/e.py")
		write(w.t, w.root, "src/new/er/e.py", "1")
		w.want("src/new/er/e.py")
		w.must(os.Remove(w.path("b.py")))
		w.want("b.py")
		w.change(func() error { return os.RemoveAll(w.path("src/new")) })
		w.want("src/new/er/e.py")
		w.change(func() error { return os.Rename(w.path("src"), w.path("lib")) })
		w.want("lib/c.py", "lib/deep/d.py", "src/c.py", "src/deep/d.py")
		write(w.t, w.root, "lib/deep/d.py", "again")
		w.want("lib/deep/d.py")
		w.wantNothing()
	})
}

func TestNoChange(t *testing.T) {
	t.Parallel()
	inModes(t, []string{"**/*.py"}, func(w *watching) {
		later := time.Now().Add(time.Hour)
		w.must(os.Chtimes(w.path("a.py"), later, later))
		w.wantNothing()
		w.must(os.Chmod(w.path("a.py"), 0o600))
		write(w.t, w.root, "b.py", "b") // the same content
		w.must(os.Remove(w.path("src/c.py")))
		write(w.t, w.root, "src/c.py", "c") // back again
		write(w.t, w.root, ".a.py.swp", "x", "a.py~", "x", "4913", "x", ".#a.py", "x", "src/__pycache__/c.cpython-312.pyc", "x", ".git/x.py", "x", ".venv/x.py", "x")
		w.wantNothing()
		w.must(os.MkdirAll(w.path("empty/er"), 0o755))
		w.wantNothing()
	})
}

// An event is believed, even where size and time are as before, as in packages that are built with a fixed time.
func TestSameSizeAndTime(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "a.py", "1")
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(root, "a.py"), long, long); err != nil {
		t.Fatal(err)
	}
	w := watch(t, root, Options{Globs: []string{"*.py"}}, quietTime, (*fsnotify.Watcher).Add)
	write(t, root, "a.py", "2")
	w.must(os.Chtimes(w.path("a.py"), long, long))
	w.want("a.py")
}

// Editors write in several steps. The user has saved one file, once.
func TestEditors(t *testing.T) {
	t.Parallel()
	for name, save := range map[string]func(w *watching, content string){
		"in place": func(w *watching, content string) { write(w.t, w.root, "a.py", content) },
		"rename over": func(w *watching, content string) {
			write(w.t, w.root, "tmp.12.py", content)
			w.must(os.Rename(w.path("tmp.12.py"), w.path("a.py")))
		},
		"temporary elsewhere": func(w *watching, content string) {
			write(w.t, w.root, "a.py.tmp", content)
			w.must(os.Rename(w.path("a.py.tmp"), w.path("a.py")))
		},
		"vim": func(w *watching, content string) {
			write(w.t, w.root, ".a.py.swp", "swap", "4913", "")
			w.must(os.Remove(w.path("4913")))
			w.must(os.Rename(w.path("a.py"), w.path("a.py~")))
			write(w.t, w.root, "a.py", content)
			w.must(os.Remove(w.path("a.py~")))
			w.must(os.Remove(w.path(".a.py.swp")))
		},
		"in pieces": func(w *watching, content string) {
			f, err := os.Create(w.path("a.py"))
			w.must(err)
			for i := range len(content) {
				_, err := f.WriteString(content[i : i+1])
				w.must(err)
			}
			w.must(f.Close())
		},
		"removed and written": func(w *watching, content string) {
			w.must(os.Remove(w.path("a.py")))
			write(w.t, w.root, "a.py", content)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModes(t, []string{"**/*.py"}, func(w *watching) {
				for i := range 3 {
					save(w, fmt.Sprintf("content %d", i))
					w.want("a.py")
				}
				save(w, "content 2")
				w.wantNothing()
			})
		})
	}
}

// A directory that another one replaces: its watches are new, too.
func TestReplacedDirectory(t *testing.T) {
	t.Parallel()
	inModes(t, []string{"src/**/*.py", "!src/next"}, func(w *watching) {
		write(w.t, w.root, "src/next/c.py", "c", "src/next/deep/d.py", "d2")
		w.wantNothing()
		w.change(func() error { return os.Rename(w.path("src/next"), w.path("next")) })
		w.change(func() error { return os.Rename(w.path("src"), w.path("old")) })
		w.change(func() error { return os.Rename(w.path("next"), w.path("src")) })
		w.want("src/deep/d.py")
		write(w.t, w.root, "old/deep/d.py", "not ours any more", "src/deep/d.py", "d3")
		w.want("src/deep/d.py")
		write(w.t, w.root, "src/c.py", "c2")
		w.want("src/c.py")
		w.change(func() error { return os.RemoveAll(w.path("src")) })
		w.want("src/c.py", "src/deep/d.py")
		write(w.t, w.root, "src/c.py", "c3")
		w.want("src/c.py")
		w.wantNothing()
	})
}

// A compiled program, outside of the root, in a directory that is not there yet.
func TestBinary(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			write(t, top, "root/x", "")
			bin := filepath.Join(top, "out", "bin", "server")
			w := watch(t, filepath.Join(top, "root"), Options{Globs: []string{filepath.ToSlash(bin)}}, quietTime, mode.add)
			write(t, top, "out/bin/server", strings.Repeat("1", 2<<20), "out/bin/other", "")
			w.want(filepath.ToSlash(bin))
			write(t, top, "out/bin/server.new", strings.Repeat("2", 2<<20))
			w.must(os.Rename(bin+".new", bin))
			w.want(filepath.ToSlash(bin))
			w.change(func() error { return os.RemoveAll(filepath.Join(top, "out")) })
			w.want(filepath.ToSlash(bin))
			write(t, top, "out/bin/server", "3")
			w.want(filepath.ToSlash(bin))
			w.wantNothing()
		})
	}
}

// A file that is linked to, in a directory that is not watched.
func TestFileBehindALink(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			write(t, top, "root/a.py", "a", "shared/lib.py", "1")
			target := filepath.Join(top, "shared", "lib.py")
			if err := os.Symlink(target, filepath.Join(top, "root", "lib.py")); err != nil {
				t.Skipf("links need a right on Windows: %v", err)
			}
			w := watch(t, filepath.Join(top, "root"), Options{Globs: []string{"*.py"}}, quietTime, mode.add)
			write(t, top, "shared/lib.py", "2")
			w.want("lib.py")
			w.must(os.Remove(target))
			w.want("lib.py")
			write(t, top, "shared/lib.py", "3")
			w.want("lib.py")
			write(t, top, "root/a.py", "2", "shared/lib.py", "4")
			w.want("a.py", "lib.py")
			w.wantNothing()
		})
	}
}

func TestIgnoreFilesChange(t *testing.T) {
	t.Parallel()
	inModes(t, []string{"**/*.py"}, func(w *watching) {
		write(w.t, w.root, ".gitignore", "src/\n")
		w.wantNothing()
		write(w.t, w.root, "src/c.py", "unseen")
		w.wantNothing()
		write(w.t, w.root, ".gitignore", "# nothing\n")
		w.wantNothing() // what is seen again did not change
		write(w.t, w.root, "src/c.py", "seen")
		w.want("src/c.py")
		write(w.t, w.root, "src/.gitignore", "deep\n")
		w.wantNothing()
		write(w.t, w.root, "src/deep/d.py", "unseen", "src/c.py", "seen 2")
		w.want("src/c.py")
	})
}

// Changing branches is one change, however many files it touches.
func TestGitCheckout(t *testing.T) {
	t.Parallel()
	needGit(t)
	inModesAfter(t, 2*time.Second, []string{"**/*.py"}, func(w *watching) {
		run := func(args ...string) { git(w.t, w.root, "", args...) }
		run("init", "-q", "-b", "one")
		run("add", "a.py", "b.py", "src")
		run("commit", "-qm", "1")
		run("checkout", "-qb", "two")
		var want []string
		for i := range 300 {
			write(w.t, w.root, fmt.Sprintf("gen%d/f%03d.py", i%7, i), "x")
		}
		run("add", "gen0", "gen1", "gen2", "gen3", "gen4", "gen5", "gen6")
		run("commit", "-qm", "2")
		for told := 0; told < 300; { // writing them was not one operation
			told += len(w.next())
		}
		run("checkout", "-q", "one")
		for d := range 7 {
			for i := d; i < 300; i += 7 {
				want = append(want, fmt.Sprintf("gen%d/f%03d.py", d, i))
			}
		}
		w.want(want...)
		run("checkout", "-q", "two")
		run("checkout", "-q", "one")
		w.wantNothing()
	})
}

// While git holds its lock nothing is told, and then everything at once.
func TestIndexLock(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, ".git/HEAD", "", "a.py", "a", "b.py", "b")
	w := watch(t, root, Options{Globs: []string{"*.py"}}, quietTime, (*fsnotify.Watcher).Add)
	write(w.t, w.root, ".git/index.lock", "", "a.py", "2")
	w.writes.Store(waits)
	timer := time.NewTimer(5 * quietTime)
	defer timer.Stop()
	select {
	case paths := <-w.told:
		t.Fatalf("told %q while git is at work", paths)
	case <-timer.C:
	}
	w.writes.Store(writing)
	write(w.t, w.root, "b.py", "2")
	w.must(os.Remove(w.path(".git/index.lock")))
	w.want("a.py", "b.py")
}

// A lock that a dead git left behind holds nothing up.
func TestStaleIndexLock(t *testing.T) {
	r := newRules(nil)
	root := filepath.ToSlash(t.TempDir())
	write(t, root, ".git/index.lock", "")
	r.of(root)
	if now := time.Now(); !r.locked(now) || r.locked(now.Add(2*lockPatience)) {
		t.Error("a new lock counts, an old one does not")
	}
}

// begin is the survey of a directory whose events do not come.
func begin(t testing.TB, root string, globs ...string) *survey {
	t.Helper()
	sel, err := Options{Root: root, Globs: globs}.selection()
	if err != nil {
		t.Fatal(err)
	}
	s := &survey{sel: sel, seen: &state{}, mostFiles: maxFiles, add: func(string) error { return nil }}
	if s.notify, err = fsnotify.NewWatcher(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	s.told = s.scan(false)
	s.seen = s.told
	s.readContents(t.Context())
	return s
}

// TestBackSinceTheScan: what was away during a scan and is back before it is compared is not forgotten: the next comparison would take it
// for new. What an ignore rule hides since then is no change.
func TestBackSinceTheScan(t *testing.T) {
	root := t.TempDir()
	write(t, root, "src/a.py", "a", "hidden/b.py", "b")
	s := begin(t, root, "**/*.py")
	before, src, away := s.told, filepath.Join(root, "src"), filepath.Join(t.TempDir(), "src")
	if err := os.Rename(src, away); err != nil {
		t.Fatal(err)
	}
	write(t, root, ".gitignore", "hidden/\n")
	s.lost()
	now := s.scan(true)
	if err := os.Rename(away, src); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join("src", "a.py")}, s.changes(before, now)); diff != "" {
		t.Error(diff)
	}
}

// Lost events: everything is looked at.
func TestOverflow(t *testing.T) {
	root := t.TempDir()
	write(t, root, "src/a.py", "a", "gone/b.py", "b")
	s := begin(t, root, "**/*.py")
	write(t, root, "src/a.py", "2", "src/new/c.py", "c")
	if err := os.RemoveAll(filepath.Join(root, "gone")); err != nil {
		t.Fatal(err)
	}
	if quiet := s.settle(); len(quiet) != 0 {
		t.Errorf("told %q without an event", quiet)
	}
	s.lost()
	told := s.settle()
	for i := range told {
		told[i] = filepath.ToSlash(told[i])
	}
	if diff := cmp.Diff([]string{"gone/b.py", "src/a.py", "src/new/c.py"}, told); diff != "" {
		t.Error(diff)
	}
	if again := s.settle(); len(again) != 0 {
		t.Errorf("told again: %q", again)
	}
}

// With few watches left some directories are polled.
func TestFewWatches(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for i := range 10 {
		write(t, root, fmt.Sprintf("d%d/a.py", i), "a")
	}
	left := 5
	w := watch(t, root, Options{Globs: []string{"**/*.py"}}, quietTime, func(n *fsnotify.Watcher, dir string) error {
		if left--; left < 0 {
			return syscall.ENOSPC
		}
		return n.Add(dir)
	})
	for i := range 10 {
		write(t, root, fmt.Sprintf("d%d/a.py", i), "changed")
		w.want(fmt.Sprintf("d%d/a.py", i))
	}
}

// onChange runs by itself, and not after Close has returned.
func TestCallsDoNotOverlap(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "a.py", "")
	var inside, closed atomic.Bool
	entered := make(chan struct{}, 100)
	release := make(chan struct{})
	how := usual()
	how.quiet = time.Millisecond
	w, err := newWatcher(Options{Root: root, Globs: []string{"*.py"}}, how, func([]string) {
		if closed.Load() || !inside.CompareAndSwap(false, true) {
			t.Error("called after Close, or twice at once")
		}
		entered <- struct{}{}
		<-release
		inside.Store(false)
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, "a.py", "1")
	<-entered
	write(t, root, "a.py", "2")
	release <- struct{}{}
	<-entered
	write(t, root, "a.py", "3")
	done := make(chan struct{})
	go func() {
		w.Close()
		closed.Store(true)
		close(done)
	}()
	<-w.ctx.Done()
	close(release)
	<-done
	w.Close()
	if inside.Load() {
		t.Error("Close did not wait")
	}
}

func TestNewRefuses(t *testing.T) {
	root := t.TempDir()
	write(t, root, "file", "")
	for _, tc := range []struct {
		name string
		opts Options
		want string
	}{
		{"no globs", Options{Root: root}, "says what to watch"},
		{"no root", Options{Root: filepath.Join(root, "gone"), Globs: []string{"*"}}, "gone"},
		{"root is a file", Options{Root: filepath.Join(root, "file"), Globs: []string{"*"}}, "not a directory"},
		{"auto finds nothing", Options{Root: root, Auto: []string{"npx", "x"}}, "name the files instead"},
	} {
		if _, err := New(tc.opts, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestTooMuch(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "")
	how := usual()
	how.mostFiles = 0
	_, err := newWatcher(Options{Root: root, Globs: []string{"**"}}, how, nil)
	if err == nil || !strings.Contains(err.Error(), "too much to watch") {
		t.Errorf("got %v", err)
	}
}

// From a command line to the change of a file: what is told is the program's own, and not what git ignores.
func TestAutoIsWatched(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, argv, script, beside, project, not string }{
		{"python", "python server/main.py", "server/main.py", "server/lib.py", "shared/a.py", "server/state.json build/a.py .venv/a.py"},
		{"typescript", "npx -y tsx server/main.ts", "server/main.ts", "server/lib.ts", "shared/a.ts", "server/state.db build/a.ts node_modules/x/a.ts"},
		{"compiled", "node build/main.js", "build/main.js", "build/lib.js", "shared/a.js", "server/main.ts build/state.db"},
		{"go", "go run ./server", "server/main.go", "server/lib.go", "shared/a.go", "server/state.json build/a.go"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(t.TempDir(), "project")
			write(t, root, ".gitignore", "build/\n", tc.script, "1", tc.project, "1")
			w := watch(t, root, Options{Auto: strings.Fields(tc.argv)}, quietTime, (*fsnotify.Watcher).Add)
			for name := range strings.FieldsSeq(tc.not) {
				write(t, root, name, "2")
			}
			write(t, root, tc.script, "2", tc.beside, "2", tc.project, "2")
			w.want(tc.beside, tc.script, tc.project)
		})
	}
}

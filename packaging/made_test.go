package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/outlive-mcp/outlive/bench/figures"
)

// table is what installing took, for people.
var table struct {
	sync.Mutex
	rows []string
}

// TestMain prints the table, and with OUTLIVE_DIST_PAGE writes it into that page of the documentation.
func TestMain(m *testing.M) {
	code := m.Run()
	slices.Sort(table.rows)
	if len(table.rows) > 0 {
		text := "| from | size | installed | in | tried | removed in |\n|---|---|---|---|---|---|\n" + strings.Join(table.rows, "\n") + "\n"
		fmt.Print(text)
		if page := os.Getenv("OUTLIVE_DIST_PAGE"); page != "" && code == 0 {
			machine := fmt.Sprintf("Written by `packaging/test.sh` on %d processors that others used as well (%s/%s).\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
			if err := figures.WriteSection(page, "installed", machine+text); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// made is the folder with what was made.
func made(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("OUTLIVE_DIST")
	if dir == "" {
		t.Skip("OUTLIVE_DIST does not say where the packages are; make dist makes and tests them")
	}
	if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// one is the file of this machine's processor that a pattern names; ARCH, NPM, RPM and PY stand for its name there.
func one(t *testing.T, pattern string) string {
	t.Helper()
	rpm := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	pattern = strings.NewReplacer("ARCH", runtime.GOARCH, "NPM", nodes(runtime.GOARCH), "RPM", rpm).Replace(pattern)
	found, err := filepath.Glob(filepath.Join(made(t), pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

// isVersion is the version of what was made: what its archives are called.
func isVersion(t *testing.T) string {
	t.Helper()
	_, rest, _ := strings.Cut(filepath.Base(one(t, "outlive_*_linux_ARCH.tar.gz")), "_")
	version, _, _ := strings.Cut(rest, "_")
	return version
}

// place is an empty environment: a home with the configuration of one AI client, a folder to install into, and no variables
// but these.
type place struct {
	*testing.T
	home, dir string
	empty     []string // folders that outlive may use, and leaves empty
	env       []string
	row       struct{ what, size, installed, tried, removed string }
}

const sample = `{"mcpServers": {"files": {"command": "npx", "args": ["-y", "files"]}}}` + "\n"

func newPlace(t *testing.T, env ...string) *place {
	t.Helper()
	top := t.TempDir()
	p := &place{T: t, home: filepath.Join(top, "home"), dir: filepath.Join(top, "dir")}
	for _, dir := range []string{filepath.Join(p.home, ".cursor"), p.dir, filepath.Join(top, "tmp")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.home, ".cursor", "mcp.json"), []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	p.empty = []string{filepath.Join(top, "tmp"), filepath.Join(top, "state")}
	p.env = append([]string{"HOME=" + p.home, "TMPDIR=" + p.empty[0], "OUTLIVE_STATE_HOME=" + p.empty[1]}, env...)
	return p
}

// run returns what a command prints, on both streams.
func (p *place) run(name string, args ...string) string {
	p.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// tryOut does with an installed outlive what a new user does first.
func (p *place) tryOut(command ...string) {
	p.Helper()
	begin := time.Now()
	outlive := func(args ...string) string {
		p.Helper()
		return p.run(command[0], append(slices.Clone(command[1:]), args...)...)
	}
	if out := outlive("--version"); !strings.HasPrefix(out, "outlive v"+isVersion(p.T)) {
		p.Errorf("--version says %q, not %s", out, isVersion(p.T))
	}
	if out := outlive("version"); !strings.Contains(out, "commit ") || !strings.Contains(out, "T") {
		p.Errorf("version says %q: no commit, no date", out)
	}
	if out := outlive("demo"); !strings.Contains(out, " 0 errors. 4 restarts") {
		p.Errorf("demo:\n%s", out)
	}
	if out := outlive("wrap", "--dry-run"); !strings.Contains(out, "files: wrapped") {
		p.Errorf("wrap --dry-run:\n%s", out)
	}
	p.row.tried = seconds(time.Since(begin))
	p.unchanged()
}

// unchanged wants the client's configuration as it was.
func (p *place) unchanged() {
	p.Helper()
	if text, err := os.ReadFile(filepath.Join(p.home, ".cursor", "mcp.json")); err != nil || string(text) != sample {
		p.Errorf("the client's configuration is now %s, %v", text, err)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// installed times an installation from files; what is what people call it.
func (p *place) installed(what string, install func(), from ...string) {
	p.Helper()
	begin := time.Now()
	install()
	took, packed, size := time.Since(begin), int64(0), int64(0)
	for _, name := range from {
		info, err := os.Stat(name)
		if err != nil {
			p.Fatal(err)
		}
		packed += info.Size()
	}
	for _, name := range p.files() {
		if i, err := os.Stat(filepath.Join(p.dir, name)); err == nil {
			size += i.Size()
		}
	}
	p.row.what, p.row.size, p.row.installed = what, megabytes(packed), megabytes(size)+" | "+seconds(took)
}

// removed times a removal, after which nothing of ours is left: a row of the table.
func (p *place) removed(remove func()) {
	p.Helper()
	begin := time.Now()
	remove()
	p.row.removed = seconds(time.Since(begin))
	p.nothingLeft()
	table.Lock()
	defer table.Unlock()
	table.rows = append(table.rows, fmt.Sprintf("| %s | %s | %s | %s | %s |", p.row.what, p.row.size, p.row.installed, p.row.tried, p.row.removed))
}

// files are all files in the folder to install into.
func (p *place) files() []string {
	p.Helper()
	var all []string
	err := filepath.WalkDir(p.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			path, err = filepath.Rel(p.dir, path)
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	return all
}

// nothingLeft wants no file of ours where it was installed, none in the home but the client's, and none elsewhere.
func (p *place) nothingLeft() {
	p.Helper()
	for _, name := range p.files() {
		if strings.Contains(name, "outlive") {
			p.Errorf("left after removal: %s", name)
		}
	}
	for _, dir := range p.empty {
		if left, err := os.ReadDir(dir); len(left) > 0 || (err != nil && !errors.Is(err, fs.ErrNotExist)) {
			p.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
	if _, err := os.Stat(p.home); errors.Is(err, fs.ErrNotExist) {
		return // it was in what is removed
	}
	err := filepath.WalkDir(p.home, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && path != filepath.Join(p.home, ".cursor", "mcp.json") {
			p.Errorf("left in the home: %s", path)
		}
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
}

// The tests that install are worth something only without a network: CI takes it away.
func TestThereIsNoNetwork(t *testing.T) {
	if os.Getenv("OUTLIVE_NO_NETWORK") != "1" {
		t.Skip("OUTLIVE_NO_NETWORK is not 1: the tests run with a network")
	}
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			t.Errorf("the interface %s is up", i.Name)
		}
	}
}

// Another clone, elsewhere, gives the same bytes of every file. With OUTLIVE_DIST_COLD=1 nothing of the first build is used, not
// even what is compiled.
func TestBuildsAreReproducible(t *testing.T) {
	p := newPlace(t)
	p.run("/usr/bin/tar", "-xzf", one(t, "outlive_*_linux_ARCH.tar.gz"), "--strip-components=1")
	info, err := buildinfo.ReadFile(filepath.Join(p.dir, "outlive"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := versionOf(info)
	if err != nil {
		t.Fatal(err)
	}
	if v.modified {
		t.Skip("files were changed since the commit: another clone does not have them")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"COUNT": "1", "KEY_0": "safe.directory", "VALUE_0": "*"} { // another user's clone
		t.Setenv("GIT_CONFIG_"+name, value)
	}
	clone := filepath.Join(t.TempDir(), "elsewhere")
	if out, err := exec.Command("git", "clone", "-q", "--no-hardlinks", root, clone).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("git", "-C", clone, "checkout", "-q", v.commit).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Setenv("GOPROXY", "off")
	if os.Getenv("OUTLIVE_DIST_COLD") == "1" {
		t.Setenv("GOCACHE", t.TempDir())
	}
	second := filepath.Join(t.TempDir(), "dist")
	again := exec.Command("go", "run", ".", "-out", second, "-targets", targetsMade(t))
	again.Dir = filepath.Join(clone, "packaging")
	if out, err := again.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(made(t), marker))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(second, marker))
	if err != nil || string(got) != string(want) {
		t.Errorf("%v, and the files of two builds differ:\n%s", err, cmp.Diff(string(want), string(got)))
	}
}

// targetsMade are the targets of which there is an archive, as -targets takes them.
func targetsMade(t *testing.T) string {
	t.Helper()
	var all []string
	for _, target := range every {
		if found, err := filepath.Glob(filepath.Join(made(t), "outlive_*_"+target.os+"_"+target.arch+".*")); err != nil {
			t.Fatal(err)
		} else if len(found) > 0 {
			all = append(all, target.String())
		}
	}
	return strings.Join(all, ",")
}

// What people get names no folder of the machine that built it.
func TestProgramsNameNoMachine(t *testing.T) {
	p := newPlace(t)
	p.run("/usr/bin/tar", "-xzf", one(t, "outlive_*_linux_ARCH.tar.gz"), "--strip-components=1")
	text, err := os.ReadFile(filepath.Join(p.dir, "outlive"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := output(".", "go", "env", "GOMODCACHE")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, cache} {
		if strings.Contains(string(text), dir) {
			t.Errorf("the program names %s", dir)
		}
	}
}

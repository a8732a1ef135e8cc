package logline

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "server.log")
	var passed strings.Builder
	k := OpenKept(path, KeptOptions{Pass: func(p []byte) { passed.Write(p) }})
	if k.Tail(3) != nil {
		t.Errorf("tail of nothing: %q", k.Tail(3))
	}
	fmt.Fprintf(k, "one\ntwo\r\nthr")
	fmt.Fprintf(k, "ee %s\nfour\xff\n", strings.Repeat("x", 2000))
	want := []string{"two", "three " + strings.Repeat("x", tailLine-6) + "…", "four\uFFFD"}
	if d := cmp.Diff(want, k.Tail(3)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := k.Tail(100); len(got) != 4 || got[0] != "one" {
		t.Errorf("tail: %q", got)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || string(b) != passed.String() || !strings.HasPrefix(string(b), "one\ntwo\r\nthree x") {
		t.Errorf("file %.40q, passed %.40q, %v", b, passed.String(), err)
	}
	private := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	wanted, _ := os.Stat(private)
	if st, _ := os.Stat(filepath.Dir(path)); st.Mode() != wanted.Mode() {
		t.Errorf("directory mode %v", st.Mode())
	}
}

func TestTailIsBoundedAndStartsWithAWholeLine(t *testing.T) {
	k := OpenKept("", KeptOptions{})
	for i := range 20000 {
		fmt.Fprintf(k, "line %d\n", i)
	}
	if len(k.tail) > 2*tailLimit {
		t.Errorf("%d bytes kept", len(k.tail))
	}
	got := k.Tail(1 << 20)
	if got[len(got)-1] != "line 19999" || !strings.HasPrefix(got[0], "line ") || len(got) < 4000 {
		t.Errorf("%d lines, first %q, last %q", len(got), got[0], got[len(got)-1])
	}
	if _, err := k.Write([]byte(strings.Repeat("y", 1<<20))); err != nil || len(k.Tail(2)) != 1 {
		t.Errorf("one endless line: %d lines", len(k.Tail(2)))
	}
	if err := k.Close(); err != nil || k.Lost() != 0 || k.Path() != "" {
		t.Errorf("close %v, lost %d, path %q", err, k.Lost(), k.Path())
	}
}

func TestKeptUnwritable(t *testing.T) {
	blocker := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failures := make(chan error, 10)
	k := OpenKept(filepath.Join(blocker, "x.log"), KeptOptions{OnFailure: func(err error) { failures <- err }})
	fmt.Fprintln(k, "one")
	first := <-failures
	fmt.Fprintln(k, "two")
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if k.Lost() != 2 || len(failures) != 0 || !strings.Contains(first.Error(), blocker) {
		t.Errorf("lost %d, %d more failures, first %v", k.Lost(), len(failures), first)
	}
	if got := k.Tail(2); len(got) != 2 {
		t.Errorf("the tail must not depend on the file: %q", got)
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for _, f := range []struct {
		name string
		size int
		age  time.Duration
	}{
		{"mine.log", 100, 99 * time.Hour}, {"new.log", 100, 0}, {"middle.log", 100, time.Hour},
		{"older.log", 100, 2 * time.Hour}, {"old.log", 1, 48 * time.Hour}, {"state.json", 900, 99 * time.Hour},
	} {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, make([]byte, f.size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(-f.age)); err != nil {
			t.Fatal(err)
		}
	}
	mine := func(path string) bool { return path == filepath.Join(dir, "mine.log") }
	if err := Prune(dir, now, 300, 24*time.Hour, mine); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if d := cmp.Diff([]string{"middle.log", "mine.log", "new.log", "state.json"}, left); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := Prune(filepath.Join(dir, "nothing"), now, 1, time.Hour, mine); err != nil {
		t.Errorf("no directory: %v", err)
	}
}

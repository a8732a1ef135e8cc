package clients

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// found writes a file and finds it.
func found(t *testing.T, path, text string) File {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	files := Find([]Place{{Client: Named("cursor"), Path: path}})
	if len(files) != 1 || files[0].Err != nil || string(files[0].Text) != text {
		t.Fatalf("found %+v", files)
	}
	return files[0]
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A file that somebody wrote after it was read is not written over.
func TestSaveRefusesWhatChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	file := found(t, path, "old")
	if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := file.Save([]byte("new")); !errors.Is(err, ErrChanged) {
		t.Errorf("saved over it: %v", err)
	}
	if got := content(t, path); got != "theirs" {
		t.Errorf("the file holds %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

// Saving through a link writes its target; the mode stays.
func TestSaveThroughLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "mcp.json")
	found(t, target, "old")
	if err := os.Symlink("real.json", link); err != nil {
		t.Skip("needs symbolic links: ", err)
	}
	file := Find([]Place{{Client: Named("cursor"), Path: link}})[0]
	before, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	backup, err := file.Backup(noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Save([]byte("new")); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(target)
	if err != nil || after.Mode() != before.Mode() || content(t, target) != "new" {
		t.Errorf("mode %v instead of %v, %q, %v", after.Mode(), before.Mode(), content(t, target), err)
	}
	if to, err := os.Readlink(link); err != nil || to != "real.json" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if info, err := os.Stat(backup); err != nil || info.Mode() != before.Mode() || content(t, backup) != "old" || !strings.HasPrefix(backup, target) {
		t.Errorf("back-up %s: %v, %v", backup, info, err)
	}
}

// There is one back-up for each content, and none once the file has that content again.
func TestBackups(t *testing.T) {
	file := found(t, filepath.Join(t.TempDir(), "mcp.json"), "one")
	first, err := file.Backup(noon)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := file.Backup(noon.Add(time.Hour)); err != nil || again != first {
		t.Errorf("a second back-up of the same: %s, %v", again, err)
	}
	if err := file.Save([]byte("two")); err != nil {
		t.Fatal(err)
	}
	second, err := file.Backup(noon)
	if err != nil || second == first || content(t, first) != "one" || content(t, second) != "two" {
		t.Fatalf("%s, %s, %v", first, second, err)
	}
	dropped, err := file.DropBackups([]byte("one"))
	if err != nil || len(dropped) != 1 || dropped[0] != first || exists(first) || !exists(second) {
		t.Errorf("dropped %q, %v", dropped, err)
	}
}

// Patterns find what is there, files that are not there are no error, and what is no file is told.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		found(t, filepath.Join(dir, name, "mcp.json"), name)
	}
	all := filepath.Join(dir, "*", "mcp.json")
	files := Find([]Place{{Path: filepath.Join(dir, "none")}, {Path: dir}, {Path: filepath.Join(dir, "b", "mcp.json")}, {Path: all, Pattern: true}})
	if len(files) != 2 || string(files[0].Text) != "b" || string(files[1].Text) != "a" || files[1].Pattern {
		t.Errorf("%+v", files)
	}
}

package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names lists all files of the folder, including hidden ones that may have been left.
func names(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// What another program wrote after the reading is not overwritten or removed.
func TestOnlyWhatWasReadIsChanged(t *testing.T) {
	for _, tc := range []struct {
		name, now, was string
		none           bool // there is no file
		changed        bool
	}{
		{name: "as it was", now: "one", was: "one"},
		{name: "another text", now: "two", was: "one", changed: true},
		{name: "a longer one", now: "one and more", was: "one", changed: true},
		{name: "a shorter one", now: "on", was: "one", changed: true},
		{name: "gone", none: true, was: "one", changed: true},
		{name: "there all at once", now: "one", changed: true},
		{name: "empty", now: ""},
		{name: "a new one", none: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "f")
			if !tc.none {
				writeFile(t, path, tc.now)
			}
			err := Replace(path, []byte(tc.was), []byte("new"))
			switch {
			case tc.changed != errors.Is(err, ErrChanged), !tc.changed && err != nil:
				t.Errorf("replace: %v", err)
			case !tc.changed && content(t, path) != "new":
				t.Errorf("the file holds %q", content(t, path))
			case tc.changed && tc.none && names(t, folder) != "":
				t.Errorf("left: %s", names(t, folder))
			case tc.changed && !tc.none && (content(t, path) != tc.now || names(t, folder) != "f"):
				t.Errorf("the file holds %q; left: %s", content(t, path), names(t, folder))
			}
			if tc.none || tc.changed {
				return
			}
			if err := Remove(path, []byte(tc.was)); !errors.Is(err, ErrChanged) {
				t.Errorf("removed although it holds something else: %v", err)
			}
			if err := Remove(path, []byte("new")); err != nil || names(t, folder) != "" {
				t.Errorf("remove: %v; left: %s", err, names(t, folder))
			}
		})
	}
}

// A reader sees the old text or the new one, never a part.
func TestReplaceIsAtomic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	texts := []string{strings.Repeat("a", 1<<16), strings.Repeat("b", 1<<17)}
	writeFile(t, path, texts[0])
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			time.Sleep(100 * time.Microsecond) // a reader that never lets go is another test
			if b, err := Read(path, 1<<20); err != nil || string(b) != texts[0] && string(b) != texts[1] {
				t.Errorf("%d bytes, %v", len(b), err)
				return
			}
		}
	})
	for i := range 40 {
		if err := Replace(path, []byte(texts[i%2]), []byte(texts[(i+1)%2])); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	reader.Wait()
}

// A file that a reader of ours holds all the time is replaced nevertheless; the reader has the old text.
func TestReplacedWhileItIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	writeFile(t, path, "old")
	reader, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := Replace(path, []byte("old"), []byte("new")); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 10)
	if n, err := reader.Read(text); err != nil || string(text[:n]) != "old" || content(t, path) != "new" {
		t.Errorf("%q, %v; the file holds %q", text[:n], err, content(t, path))
	}
}

// A log that somebody reads can be renamed, removed and begun anew.
func TestRenamedWhileItIsRead(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "log")
	writeFile(t, path, "one")
	reader, err := OpenShared(path, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	appender, err := OpenShared(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer appender.Close()
	for _, s := range []string{"two", "three"} {
		if _, err := appender.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(path + ".1"); err != nil {
		t.Error(err)
	}
	text := make([]byte, 10)
	if n, err := reader.Read(text); err != nil || string(text[:n]) != "one" || content(t, path) != "twothree" {
		t.Errorf("%q, %v, %q", text[:n], err, content(t, path))
	}
	if _, err := OpenShared(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, os.ErrExist) {
		t.Errorf("made although it is there: %v", err)
	}
	if _, err := OpenShared(filepath.Join(folder, "none"), os.O_RDONLY, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

// Replacing through a link writes its target, and the back-up is next to the target; the mode is kept.
func TestThroughALink(t *testing.T) {
	folder := t.TempDir()
	file, link := filepath.Join(folder, "real.json"), filepath.Join(folder, "mcp.json")
	writeFile(t, file, "old")
	if err := os.Symlink("real.json", link); err != nil {
		t.Skip("needs symbolic links: ", err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	backup, err := Backup(link, []byte("old"), noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := Replace(link, []byte("old"), []byte("new")); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(file)
	if err != nil || after.Mode() != before.Mode() || content(t, file) != "new" {
		t.Errorf("mode %v instead of %v, %q, %v", after.Mode(), before.Mode(), content(t, file), err)
	}
	if to, err := os.Readlink(link); err != nil || to != "real.json" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if info, err := os.Stat(backup); err != nil || info.Mode() != before.Mode() || content(t, backup) != "old" || filepath.Base(backup) != "real.json.outlive-backup-20261121T120000Z" {
		t.Errorf("back-up %s: %v, %v", backup, info, err)
	}
}

// A file is written completely, for its owner only, and no other file is left, also when it cannot be written.
func TestWrite(t *testing.T) {
	for name, write := range map[string]func(string, []byte) error{"fleeting": Write, "durable": WriteDurably} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "f")
			for _, text := range []string{"one", "two"} {
				if err := write(path, []byte(text)); err != nil || content(t, path) != text || names(t, folder) != "f" {
					t.Errorf("%v; holds %q; left: %s", err, content(t, path), names(t, folder))
				}
			}
			want, err := os.CreateTemp(t.TempDir(), "*") // a system's own way of saying: mine alone
			if err != nil {
				t.Fatal(err)
			}
			defer want.Close()
			mine, _ := want.Stat()
			if info, err := os.Stat(path); err != nil || info.Mode() != mine.Mode() {
				t.Errorf("mode %v, want %v", info.Mode(), mine.Mode())
			}
			if err := os.Mkdir(filepath.Join(folder, "d"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := write(filepath.Join(folder, "d"), []byte("x")); err == nil || names(t, folder) != "d f" {
				t.Errorf("over a folder: %v; left: %s", err, names(t, folder))
			}
			if err := write(filepath.Join(folder, "none", "f"), []byte("x")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("into no folder: %v", err)
			}
		})
	}
}

func TestRead(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "f")
	writeFile(t, path, "12345")
	if text, err := Read(path, 5); err != nil || string(text) != "12345" {
		t.Errorf("as long as wanted: %q, %v", text, err)
	}
	if text, err := Read(path, 4); !errors.Is(err, ErrTooLong) || text != nil {
		t.Errorf("longer: %q, %v", text, err)
	}
	if _, err := Read(folder, 5); !errors.Is(err, ErrIrregular) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Read(filepath.Join(folder, "none"), 5); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	writeFile(t, path, "")
	if text, err := Read(path, 0); err != nil || text == nil {
		t.Errorf("an empty file: %v, %v", text, err)
	}
}

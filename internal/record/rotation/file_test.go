package rotation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// file is one whose next one begins at 1 MiB.
func file(path string, backups int) *File { return &File{path: path, limit: 1 << 20, backups: backups} }

func write(t *testing.T, f *File, text string) {
	t.Helper()
	if n, err := f.Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("%d of %d bytes written: %v", n, len(text), err)
	}
}

func beside(t *testing.T, path string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func TestRotationKeepsWhatIsPromisedAndNoMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "mcp_audit.log")
	f := file(path, 2)
	defer f.Close()
	const lines = 1300
	for n := range lines { // about 4 KiB each: five files' worth
		write(t, f, fmt.Sprintf("%d %s\n", n, strings.Repeat("x", 4000)))
	}
	files := beside(t, path)
	if len(files) != 3 {
		t.Fatalf("files: %v", files)
	}
	for _, one := range files {
		st, err := os.Stat(one)
		if err != nil || st.Size() > 1<<20 || st.Mode() != private(t) {
			t.Errorf("%s: %v, %v", one, st, err)
		}
	}
	if want := append(Older(path), path); !slices.Equal(files, want) {
		t.Errorf("files %v, told %v", files, want)
	}
	next := lines // every line that is kept is there once, in order
	for _, one := range slices.Backward(files) {
		for _, line := range slices.Backward(linesOf(t, one)) {
			if next--; !strings.HasPrefix(line, fmt.Sprint(next, " xxx")) {
				t.Fatalf("%s has %.20q, want line %d", one, line, next)
			}
		}
	}
}

// private is the mode of a file that its owner alone may read.
func private(t *testing.T) os.FileMode {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "*")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return st.Mode()
}

func TestSeveralProcessesWriteOnePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp_audit.log")
	const writers, each = 4, 400
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			f := file(path, 100)
			defer f.Close()
			for n := range each {
				write(t, f, fmt.Sprintf("%d/%d %s\n", w, n, strings.Repeat("x", 3000)))
			}
		})
	}
	wg.Wait()
	files := beside(t, path)
	if len(files) < 3 {
		t.Errorf("not rotated: %v", files)
	}
	seen := map[string]bool{}
	for _, one := range files {
		for _, line := range linesOf(t, one) {
			number, text, _ := strings.Cut(line, " ")
			if text != strings.Repeat("x", 3000) {
				t.Errorf("%s has the line %.40q", one, line)
			}
			seen[number] = true
		}
	}
	if len(seen) != writers*each {
		t.Errorf("%d different lines, want %d", len(seen), writers*each)
	}
}

// The next writer makes the new file, whichever process it belongs to: a file made by the rotation could be emptied by it, with the lines
// that another process had written meanwhile. Only rotated files are removed.
func TestRotationMakesNoFile(t *testing.T) {
	f := file(filepath.Join(t.TempDir(), "mcp_audit.log"), 2)
	defer f.Close()
	notes := filepath.Join(filepath.Dir(f.path), "mcp_audit-notes.log")
	old := filepath.Join(filepath.Dir(f.path), "mcp_audit-2026-11-01T09-00-00.000-size.log")
	for _, path := range []string{notes, old} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().AddDate(0, 0, -15)); err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		write(t, f, fmt.Sprintln(n))
		if err := f.rotate(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(f.path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("rotated, and the path names something: %v", err)
		}
	}
	write(t, f, fmt.Sprintln(4))
	var kept []string
	files := beside(t, f.path)
	for _, path := range files {
		if path != notes {
			kept = append(kept, linesOf(t, path)...)
		}
	}
	if want := []string{"2", "3", "4"}; !slices.Equal(kept, want) || len(files) != 4 {
		t.Errorf("kept %q of %q, want %q and the other file", kept, files, want)
	}
}

// What a full disk has left of a line is taken away again, through the handle that only appends.
func TestPartOfALineIsCut(t *testing.T) {
	f := file(filepath.Join(t.TempDir(), "mcp_audit.log"), 2)
	if err := f.open(); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.f.WriteString("{}\n{\"a"); err != nil {
		t.Fatal(err)
	}
	if err := cut(f.f, 3); err != nil {
		t.Error(err)
	}
	if _, err := f.f.WriteString("{}\n"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(f.path); err != nil || string(text) != "{}\n{}\n" {
		t.Errorf("%q, %v", text, err)
	}
}

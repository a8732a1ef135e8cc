package sessionstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

type store interface {
	Load(key string) ([]byte, error)
	Save(key string, record []byte, until time.Time) error
	Drop(key string) error
}

func each(t *testing.T, test func(t *testing.T, s store)) {
	t.Run("memory", func(t *testing.T) { test(t, New("", 0)) })
	t.Run("file", func(t *testing.T) { test(t, open(t, filepath.Join(t.TempDir(), "a", "log"), 100)) })
}

func open(t *testing.T, path string, most int) *Store {
	t.Helper()
	f := New(path, most)
	if err := f.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// ends closes the log, as the end of a process does: Windows does not replace a file that is open.
func ends(t *testing.T, f *Store) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func save(t *testing.T, s store, key, record string, until time.Time) {
	t.Helper()
	if err := s.Save(key, []byte(record), until); err != nil {
		t.Fatal(err)
	}
}

// has checks what a store has under a key; "": nothing.
func has(t *testing.T, s store, key, want string) {
	t.Helper()
	got, err := s.Load(key)
	if string(got) != want || want == "" && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %q, %v; want %q", key, got, err, want)
	}
}

// The latest record of a session counts, until its time is over or it is dropped; one session is nothing to another.
func TestRecords(t *testing.T) {
	each(t, func(t *testing.T, s store) {
		later := time.Now().Add(time.Hour)
		has(t, s, "a", "")
		save(t, s, "a", "1", later)
		save(t, s, "b", "2", later)
		save(t, s, "a", `{"three":3}`, later)
		save(t, s, "old", "4", time.Now().Add(-time.Second))
		has(t, s, "a", `{"three":3}`)
		has(t, s, "b", "2")
		has(t, s, "old", "")
		for range 2 {
			if err := s.Drop("a"); err != nil {
				t.Error(err)
			}
		}
		has(t, s, "a", "")
		has(t, s, "b", "2")
	})
}

// Another process finds what the one before has stored, and nobody else may read it.
func TestRecordsOutliveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions", "log")
	later := time.Now().Add(time.Hour)
	f := open(t, path, 10)
	save(t, f, "a", "1", later)
	save(t, f, "b", "2", later)
	save(t, f, "c", "3", time.Now().Add(-time.Second))
	if err := f.Drop("b"); err != nil {
		t.Error(err)
	}
	ends(t, f)
	f = open(t, path, 10)
	has(t, f, "a", "1")
	has(t, f, "b", "")
	has(t, f, "c", "")
	for path, want := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want && os.PathSeparator == '/' {
			t.Errorf("%s: %v, %v; want %v", path, st.Mode(), err, want)
		}
	}
}

// Whatever was written of the log when its process was killed: all changes but the last are there, and what is written next
// is not lost either.
func TestACutLogLosesTheLastChangeOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	later := time.Now().Add(time.Hour)
	f := open(t, path, 10)
	save(t, f, "a", `"one"`, later)
	save(t, f, "b", `"two"`, later)
	before := f.size
	save(t, f, "a", `"three"`, later)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ends(t, f)
	for cut := before; cut <= int64(len(whole)); cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		f := open(t, path, 10)
		damaged := 1
		if cut == before || cut >= int64(len(whole))-1 {
			damaged = 0
		}
		if f.Damaged() != damaged {
			t.Errorf("cut at %d of %d: %d damaged, want %d", cut, len(whole), f.Damaged(), damaged)
		}
		want := `"one"`
		if cut >= int64(len(whole))-1 { // but for the newline, all of it is there
			want = `"three"`
		}
		has(t, f, "a", want)
		has(t, f, "b", `"two"`)
		save(t, f, "c", "4", later)
		ends(t, f)
		f = open(t, path, 10)
		has(t, f, "c", "4")
		ends(t, f)
	}
	garbage := append(bytes.Repeat([]byte{0}, 100), '\n') // after a loss of power
	if err := os.WriteFile(path, append(garbage, whole...), 0o600); err != nil {
		t.Fatal(err)
	}
	f = open(t, path, 10)
	has(t, f, "a", `"three"`)
	if f.Damaged() != 1 {
		t.Errorf("%d damaged, want 1", f.Damaged())
	}
}

// Somebody cuts the log of a running gateway, as to make room: what is whole in it counts, and what is saved from then on.
func TestALogThatIsCutMeanwhile(t *testing.T) {
	path, later := filepath.Join(t.TempDir(), "log"), time.Now().Add(time.Hour)
	f := open(t, path, 10)
	save(t, f, "a", `"one"`, later)
	whole := f.size
	save(t, f, "b", `"two"`, later)
	if err := os.Truncate(path, whole+5); err != nil {
		t.Fatal(err)
	}
	f.cleared = time.Time{} // it is time to write it anew
	save(t, f, "c", `"three"`, later)
	for range 2 {
		for key, want := range map[string]string{"a": `"one"`, "b": "", "c": `"three"`} {
			has(t, f, key, want)
		}
		ends(t, f)
		f = open(t, path, 10)
	}
	if f.Damaged() != 0 {
		t.Errorf("%d lines are still damaged", f.Damaged())
	}
}

// A log that cannot be opened is tried again with each change; what was saved meanwhile is not lost.
func TestALogThatOpensLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // no folder can be there
		t.Fatal(err)
	}
	path, later := filepath.Join(dir, "log"), time.Now().Add(time.Hour)
	f := New(path, 2)
	if err := f.Open(); err == nil {
		t.Fatal("it was opened")
	}
	has(t, f, "a", "")
	for _, key := range []string{"a", "b", "over the limit"} {
		if err := f.Save(key, []byte("1"), later); err == nil {
			t.Errorf("%s was saved", key)
		}
	}
	if err := f.Drop("b"); err == nil {
		t.Error("b was dropped")
	}
	has(t, f, "a", "1")
	has(t, f, "b", "")
	has(t, f, "over the limit", "")
	if n := len(f.Unsaved()); n != 2 {
		t.Errorf("%d unsaved, want 2", n)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	save(t, f, "c", "3", later)
	if n := len(f.Unsaved()); n != 0 {
		t.Errorf("%d unsaved, want none", n)
	}
	ends(t, f)
	f = open(t, path, 10)
	has(t, f, "a", "1")
	has(t, f, "b", "")
	has(t, f, "c", "3")
}

// The log does not grow with changes, nor with sessions that nobody uses any more.
func TestTheLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := open(t, path, 100)
	record := fmt.Sprintf("%q", bytes.Repeat([]byte("x"), 1000))
	largest := int64(0)
	for i := range 5000 {
		save(t, f, fmt.Sprint(i%50), record, time.Now().Add(time.Hour))
		if st, err := os.Stat(path); err == nil {
			largest = max(largest, st.Size())
		}
	}
	if most := int64(2*outdatedMost + 60*1100); largest > most {
		t.Errorf("the log had up to %d bytes, want %d", largest, most)
	}
	for i := range 50 {
		has(t, f, fmt.Sprint(i), record)
	}
	for i := range 1000 {
		save(t, f, fmt.Sprint("more", i), "1", time.Now().Add(time.Hour+time.Duration(i)*time.Second))
	}
	if n := len(f.lines); n > 113 {
		t.Errorf("%d records, want about 100", n)
	}
	has(t, f, "more999", "1")
}

func BenchmarkSave(b *testing.B) {
	f := New(filepath.Join(b.TempDir(), "log"), 1<<20)
	if err := f.Open(); err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	record := fmt.Appendf(nil, "%q", bytes.Repeat([]byte("x"), 1000))
	until := time.Now().Add(time.Hour)
	i := 0
	for b.Loop() {
		i++
		if err := f.Save(fmt.Sprint(i%1000), record, until); err != nil {
			b.Fatal(err)
		}
	}
}

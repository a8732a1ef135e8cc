package sessionstore

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// whileFull runs do while no file of this process can have more than so many bytes: the kernel then writes as much as fits, and
// refuses the rest, as on a full disk.
func whileFull(t *testing.T, bytes int64, do func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(bytes), Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

// On a full disk the records that are there are read, and changes count at once; the disk gets them when there is room. What a
// failed write has left of a record damages no other.
func TestAFullDisk(t *testing.T) {
	path, later := filepath.Join(t.TempDir(), "log"), time.Now().Add(time.Hour)
	f := open(t, path, 10)
	save(t, f, "a", `"one"`, later)
	save(t, f, "b", `"two"`, later)
	size := f.size
	ends(t, f)
	for _, room := range []int64{0, 10} { // none, and some for the beginning of a record
		whileFull(t, size+room, func() {
			f = New(path, 10)
			if err := f.Open(); err != nil {
				t.Errorf("opened: %v", err)
			}
			has(t, f, "a", `"one"`)
			if f.Save("c", []byte(`"three"`), later) == nil || f.Drop("b") == nil {
				t.Error("the full disk has taken it")
			}
			has(t, f, "b", "")
			has(t, f, "c", `"three"`)
		})
		ends(t, f) // killed: nothing of that is on the disk
		f = open(t, path, 10)
		has(t, f, "b", `"two"`)
		has(t, f, "c", "")
		if f.Damaged() != 0 {
			t.Errorf("%d damaged", f.Damaged())
		}
		ends(t, f)
	}
	whileFull(t, 0, func() {
		f = New(path, 10)
		if err := f.Open(); err == nil {
			t.Error("it was written anew")
		}
		has(t, f, "a", `"one"`)
		if f.Save("c", []byte(`"three"`), later) == nil || f.Drop("b") == nil {
			t.Error("the full disk has taken it")
		}
	})
	save(t, f, "d", `"four"`, later)
	ends(t, f)
	f = open(t, path, 10)
	for key, want := range map[string]string{"a": `"one"`, "b": "", "c": `"three"`, "d": `"four"`} {
		has(t, f, key, want)
	}
}

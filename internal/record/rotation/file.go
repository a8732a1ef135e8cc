package rotation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

const (
	sizeLimit   = 10 << 20 // bytes: what would make the file longer begins the next one
	backupsKept = 5        // rotated files
	keptFor     = 14 * 24 * time.Hour
)

// File is the file at a path: opened when needed, appended to under its lock, rotated by the process that finds it full. It is one
// goroutine's, and may be up to twice as long as its limit where it cannot be rotated.
type File struct {
	path    string
	limit   int64
	backups int
	f       *os.File  // nil: not open
	rotated time.Time // that the last rotated file is named after
}

// New returns the file at path. The file and its directory, which only the user may read, are made by the first Write.
func New(path string) *File { return &File{path: path, limit: sizeLimit, backups: backupsKept} }

// Close closes the file until the next Write.
func (f *File) Close() {
	if f.f != nil {
		_ = f.f.Close()
		f.f = nil
	}
}

// Write appends p. After an error the file has what was written of it; nothing, if that could be taken back.
func (f *File) Write(p []byte) (n int, err error) {
	size, locked, err := f.acquire()
	if err != nil {
		return 0, err
	}
	if size > 0 && size+int64(len(p)) > f.limit && locked {
		if err := f.rotate(); err != nil && size > 2*f.limit {
			return 0, fmt.Errorf("file is full and cannot be rotated: %w", err)
		}
		if _, locked, err = f.acquire(); err != nil {
			return 0, err
		}
	}
	if locked {
		defer unlock(f.f)
	}
	n, err = f.f.Write(p)
	if err != nil && n > 0 && locked {
		// A part of a line would break every reader of the file. Under the lock no other process has written after it.
		if st, statErr := f.f.Stat(); statErr == nil && cut(f.f, st.Size()-int64(n)) == nil {
			n = 0
		}
	}
	return n, err
}

// acquire makes f.f the file that the path names now, and locks it. locked is false if the holder of the lock does
// not release it in time: appending is still safe then, rotating is not.
func (f *File) acquire() (size int64, locked bool, err error) {
	for range 8 {
		if f.f == nil {
			if err := f.open(); err != nil {
				return 0, false, err
			}
		}
		locked = lockSoon(f.f)
		ours, err := f.f.Stat()
		if err != nil {
			f.Close()
			return 0, false, err
		}
		theirs, err := os.Stat(f.path)
		if err == nil && os.SameFile(ours, theirs) {
			return ours.Size(), locked, nil
		}
		f.Close() // rotated or removed by another process; closing releases the lock
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, false, err
		}
	}
	return 0, false, errors.New("the file keeps being replaced")
}

func (f *File) open() error {
	fd, err := atomicfile.OpenShared(f.path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(f.path), 0o700); err == nil {
			fd, err = atomicfile.OpenShared(f.path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
		}
	}
	if err != nil {
		return err
	}
	f.f = fd
	f.prune()
	return nil
}

// rotate renames the full file and leaves f closed. The path names nothing then, and whoever writes next creates it: a file that rotate
// itself made could already have lines of another process. The lock of the renamed file is held meanwhile.
func (f *File) rotate() error {
	defer f.Close()
	stem, extension := ends(f.path)
	to := ""
	at := time.Now()
	if next := f.rotated.Add(time.Millisecond); at.Before(next) {
		at = next // a name that was free again would be that of the oldest
	}
	for ; ; at = at.Add(time.Millisecond) {
		to = stem + at.UTC().Format(rotatedAt) + "-size" + extension
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
	}
	if err := os.Rename(f.path, to); err != nil {
		return err
	}
	f.rotated = at
	return nil
}

// rotatedAt is the time in the name of a rotated file: sorted by name, the oldest is the first.
const rotatedAt = "2006-01-02T15-04-05.000"

// ends are what the names of a file's rotated ones begin and end with.
func ends(path string) (stem, extension string) {
	extension = filepath.Ext(path)
	return strings.TrimSuffix(path, extension) + "-", extension
}

// Older returns the paths of the rotated files of the one at path, as far as they still exist, the oldest first.
func Older(path string) (paths []string) {
	stem, extension := ends(path)
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil
	}
	for _, e := range entries {
		at, found := strings.CutPrefix(e.Name(), filepath.Base(stem))
		if !found || !strings.HasSuffix(at, extension) || len(at) < len(rotatedAt) {
			continue // another file of the directory
		}
		if _, err := time.Parse(rotatedAt, at[:len(rotatedAt)]); err == nil {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// prune removes rotated files that are too many or too old. One that cannot be removed stays until the file is opened again.
func (f *File) prune() {
	paths := Older(f.path)
	for i, path := range paths {
		st, err := os.Lstat(path)
		if err == nil && (i < len(paths)-f.backups || time.Since(st.ModTime()) > keptFor) {
			_ = os.Remove(path)
		}
	}
}

// lockSoon tries for a short time, because another process may have been stopped while it holds the lock.
func lockSoon(f *os.File) bool {
	for range 20 {
		if tryLock(f) {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

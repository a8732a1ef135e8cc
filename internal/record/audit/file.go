package audit

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

// ErrFull is the error when the file has reached twice its limit and cannot be rotated.
var ErrFull = errors.New("file is full and cannot be rotated")

// file is the shared file: opened when needed, appended to under its lock, rotated by the process that finds it full.
type file struct {
	path    string
	opts    Options
	f       *os.File  // nil: not open
	rotated time.Time // that the last rotated file is named after
}

func (f *file) close() {
	if f.f != nil {
		_ = f.f.Close()
		f.f = nil
	}
}

// Write writes complete lines, or nothing.
func (f *file) Write(lines []byte) (int, error) {
	if err := f.append(lines); err != nil {
		return 0, err
	}
	return len(lines), nil
}

func (f *file) append(lines []byte) error {
	locked, err := f.acquire()
	if err != nil {
		return err
	}
	if locked {
		defer func() {
			if f.f != nil {
				unlock(f.f)
			}
		}()
	}
	st, err := f.f.Stat()
	if err != nil {
		f.close()
		return err
	}
	size, limit := st.Size(), int64(f.opts.MaxSizeMiB)<<20
	if size > 0 && size+int64(len(lines)) > limit && locked {
		if err := f.rotate(); err != nil && size > 2*limit {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
		if locked, err = f.acquire(); err != nil {
			return err
		}
	}
	n, err := f.f.Write(lines)
	if err != nil && n > 0 && locked {
		// A part of a line would break every reader of the file. Under the lock no other process has written after it.
		if st, statErr := f.f.Stat(); statErr == nil {
			_ = cut(f.f, st.Size()-int64(n))
		}
	}
	return err
}

// acquire makes f.f the file that the path names now, and locks it. locked is false if the holder of the lock does
// not release it in time: appending is still safe then, rotating is not.
func (f *file) acquire() (locked bool, err error) {
	for range 8 {
		if f.f == nil {
			if err := f.open(); err != nil {
				return false, err
			}
		}
		locked = lockSoon(f.f)
		ours, err := f.f.Stat()
		if err != nil {
			f.close()
			return false, err
		}
		theirs, err := os.Stat(f.path)
		if err == nil && os.SameFile(ours, theirs) {
			return locked, nil
		}
		f.close() // rotated or removed by another process; closing releases the lock
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return false, errors.New("the file keeps being replaced")
}

func (f *file) open() error {
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
	return nil
}

// rotate renames the full file, removes the oldest and leaves f closed. The path names nothing then, and whoever writes next creates
// it: a file that rotate itself made could already have lines of another process. The lock of the renamed file is held meanwhile.
func (f *file) rotate() error {
	old := f.f
	f.f = nil
	defer old.Close()
	extension := filepath.Ext(f.path)
	stem := strings.TrimSuffix(f.path, extension) + "-"
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
	f.prune(stem, extension)
	return nil
}

// rotatedAt is the time in the name of a rotated file: sorted by name, the oldest is the first.
const rotatedAt = "2006-01-02T15-04-05.000"

// prune removes rotated files that are too many or too old. One that cannot be removed stays until the next rotation.
func (f *file) prune(stem, extension string) {
	entries, err := os.ReadDir(filepath.Dir(f.path)) // sorted
	if err != nil {
		return
	}
	var rotated []fs.FileInfo
	for _, e := range entries {
		at, found := strings.CutPrefix(e.Name(), filepath.Base(stem))
		at, _, sized := strings.Cut(at, "-size"+extension)
		if _, err := time.Parse(rotatedAt, at); !found || !sized || err != nil {
			continue // another file of the directory
		}
		if info, err := e.Info(); err == nil {
			rotated = append(rotated, info)
		}
	}
	for i, info := range rotated {
		if i < len(rotated)-f.opts.MaxBackups || time.Since(info.ModTime()) > time.Duration(f.opts.MaxAgeDays)*24*time.Hour {
			_ = os.Remove(filepath.Join(filepath.Dir(f.path), info.Name()))
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

package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/DeRuina/timberjack"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// ErrFull is the error when the file has reached twice its limit and cannot be rotated.
var ErrFull = errors.New("file is full and cannot be rotated")

// file is the shared file: opened when needed, appended to under its lock, rotated by the process that finds it full.
type file struct {
	path string
	opts Options
	f    *os.File // nil: not open
}

func (f *file) close() {
	if f.f != nil {
		_ = f.f.Close()
		f.f = nil
	}
}

// append writes one complete line, or nothing.
func (f *file) append(line []byte) error {
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
	if size > 0 && size+int64(len(line)) > limit && locked {
		if err := f.rotate(); err != nil && size > 2*limit {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
		if locked, err = f.acquire(); err != nil {
			return err
		}
	}
	n, err := f.f.Write(line)
	if err != nil && n > 0 && locked {
		// A partial line would break every reader of the file. Under the lock no other process has written after it.
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

// rotate renames the full file, removes the oldest and leaves f closed. The lock of the renamed file is held until
// the new one exists. A process that opens the path for the first time in between may lose its first line.
func (f *file) rotate() error {
	old := f.f
	f.f = nil
	defer old.Close()
	r := &timberjack.Logger{
		Filename:   f.path,
		MaxSize:    f.opts.MaxSizeMiB,
		MaxBackups: f.opts.MaxBackups,
		MaxAge:     f.opts.MaxAgeDays,
		FileMode:   0o600,
	}
	err := r.RotateWithReason("size")
	if closeErr := r.Close(); err == nil {
		err = closeErr
	}
	return err
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

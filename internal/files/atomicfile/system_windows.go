package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows"
)

const (
	// withoutWaiting is 0: there are no named pipes among files on Windows.
	withoutWaiting = 0

	// busyPatience is how long a file may be held by somebody else before that is an error. Readers hold one for
	// milliseconds; virus scanners and indexers, who look at every new file, for some tens of them.
	busyPatience = time.Second
)

// OpenShared is [os.OpenFile] for files that others rename, replace or remove while they are open, which os.OpenFile
// prevents on Windows. O_TRUNC is not supported.
func OpenShared(path string, flag int, _ fs.FileMode) (*os.File, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	name, err := windows.UTF16PtrFromString(`\\?\` + full)
	if filepath.VolumeName(full) == "" || full[0] == '\\' {
		name, err = windows.UTF16PtrFromString(full) // a device, or a share, which has another long form
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	access := uint32(windows.GENERIC_READ)
	if flag&os.O_WRONLY != 0 {
		access = 0
	}
	switch {
	case flag&os.O_APPEND != 0: // without the right to write elsewhere the system appends in one step
		access |= windows.FILE_APPEND_DATA | windows.FILE_WRITE_ATTRIBUTES | windows.SYNCHRONIZE
	case flag&(os.O_WRONLY|os.O_RDWR) != 0:
		access |= windows.GENERIC_WRITE
	}
	mode := uint32(windows.OPEN_EXISTING)
	switch {
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		mode = windows.CREATE_NEW
	case flag&os.O_CREATE != 0:
		mode = windows.OPEN_ALWAYS
	}
	var handle windows.Handle
	err = whileBusy(func() (err error) {
		handle, err = windows.CreateFile(name, access, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
			nil, mode, windows.FILE_ATTRIBUTE_NORMAL, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(handle), path), nil
}

// openUnlinked opens a file for reading unless it is a link. Windows has no flag for that: the file can be replaced between the
// check and the opening, but only by a program that may write there anyway.
func openUnlinked(path string) (*os.File, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, ErrIrregular)
	}
	return OpenShared(path, os.O_RDONLY, 0)
}

// Rename is [os.Rename] within a folder that waits up to a second for others who have one of the files open: on Windows they
// prevent it.
func Rename(from, to string) error {
	return whileBusy(func() error {
		err := os.Rename(from, to)
		if err == nil || !busy(err) || filepath.Dir(from) != filepath.Dir(to) {
			return err
		}
		// This one replaces files that were opened by OpenShared, where the system and the file system know how.
		root, rootErr := os.OpenRoot(filepath.Dir(to))
		if rootErr != nil {
			return err
		}
		defer root.Close()
		if root.Rename(filepath.Base(from), filepath.Base(to)) == nil {
			return nil
		}
		return err
	})
}

// remove is [os.Remove] that waits as [Rename] does.
func remove(path string) error { return whileBusy(func() error { return os.Remove(path) }) }

// whileBusy tries again for a short time what fails because somebody else has the file open.
func whileBusy(try func() error) error {
	for end := time.Now().Add(busyPatience); ; time.Sleep(time.Millisecond) {
		if err := try(); err == nil || !busy(err) || time.Now().After(end) {
			return err
		}
	}
}

// busy reports whether an error may be one of a file that is open elsewhere. "Access denied" is also said of a file that is
// about to vanish, and of one that is to be replaced while it is open.
func busy(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED) ||
		errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}

// keepOwner does nothing: a new file belongs to its creator, and gets the access list of its directory.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

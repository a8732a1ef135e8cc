//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// withoutWaiting opens a pipe at once, even if no process writes into it.
const withoutWaiting = syscall.O_NONBLOCK

// OpenShared is [os.OpenFile] for files that others rename, replace or remove while they are open, which os.OpenFile
// prevents on Windows. O_TRUNC is not supported.
func OpenShared(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}

// openUnlinked opens a file for reading unless it is a link. It does not block on a pipe.
func openUnlinked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|withoutWaiting, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) || errors.Is(err, syscall.ENXIO) {
		err = fmt.Errorf("%w: %w", ErrIrregular, err)
	}
	return f, err
}

// Rename is [os.Rename] within a folder that waits up to a second for others who have one of the files open: on Windows they
// prevent it.
func Rename(from, to string) error { return os.Rename(from, to) }

// remove is [os.Remove] that waits as [Rename] does.
func remove(path string) error { return os.Remove(path) }

// keepOwner gives a new file the owner of the one it replaces. Only for root can that be another user.
func keepOwner(file *os.File, model fs.FileInfo) error {
	want, ok := model.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	have, ok := info.Sys().(*syscall.Stat_t)
	if ok && have.Uid == want.Uid && have.Gid == want.Gid {
		return nil
	}
	err = file.Chown(int(want.Uid), int(want.Gid))
	if ok && have.Uid == want.Uid {
		return nil // a user can set only groups that it belongs to; its own file stays readable to it
	}
	return err
}

//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

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

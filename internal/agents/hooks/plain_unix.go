//go:build unix

package hooks

import (
	"fmt"
	"os"
	"syscall"
)

// private checks that no other user can put files into a folder: they could decide in the user's name.
func private(folder string) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", folder)
	case ok && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to the user %d, not to you", folder, st.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others can write into %s: chmod go-w it", folder)
	}
	return nil
}

//go:build unix

package control

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// shortTemp is a temporary directory with a short path.
func shortTemp() string { return "/tmp" }

// ours reports whether the file belongs to the user.
func ours(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Getuid()
}

// othersWrite reports whether others may put files into the directory.
func othersWrite(st fs.FileInfo) bool { return st.Mode().Perm()&0o022 != 0 }

// refused reports whether a connection failed because nobody listens.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// protect makes the socket the user's alone; its directory is so already.
func protect(path string) error { return os.Chmod(path, 0o600) }

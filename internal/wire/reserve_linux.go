package wire

import (
	"os"

	"golang.org/x/sys/unix"
)

// reserve allocates the file's blocks, so that a full disk is an error here and not a fault later.
func reserve(f *os.File, size int64) error {
	return unix.Fallocate(int(f.Fd()), 0, 0, size)
}

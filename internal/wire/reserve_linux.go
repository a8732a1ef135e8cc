package wire

import (
	"os"

	"golang.org/x/sys/unix"
)

// adviseSmall asks for small pages: a huge one would be resident as a whole for the sake of its first byte.
func adviseSmall(b []byte) {
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE) // only advice
	_ = unix.Madvise(b, unix.MADV_RANDOM)
}

// reserve allocates the file's blocks, so that a full disk is an error here and not a fault later.
func reserve(f *os.File, size int64) error {
	return unix.Fallocate(int(f.Fd()), 0, 0, size)
}

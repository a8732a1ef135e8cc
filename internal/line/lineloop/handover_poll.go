//go:build unix && !outlive_stream

package lineloop

import (
	"os"
	"syscall"
)

// HandsOver says that the descriptors of a [Loop] can be passed to another image of the same program: everything that
// was read has been passed on, except for what [Source.Whole] reports.
const HandsOver = true

// Reopen makes an os.File of a descriptor that another image of this program had in its loop. The descriptor is made
// blocking until the loop takes it, so that the runtime does not add it to its own poller.
func Reopen(fd int, name string) *os.File {
	_ = syscall.SetNonblock(fd, false) // if it fails, the descriptor was blocking
	return os.NewFile(uintptr(fd), name)
}

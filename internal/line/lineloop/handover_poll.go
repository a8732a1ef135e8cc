//go:build unix && !outlive_stream

package lineloop

import (
	"os"
	"syscall"
)

// HandsOver says that the descriptors of a [Loop] can be given to another image of the same program: nothing has been
// read that was not handed out, but what [Source.Whole] tells of.
const HandsOver = true

// Reopen makes a descriptor a file again that another image of this program had in its loop. The runtime's own poller
// must not know it, so it is a blocking one until the loop takes it.
func Reopen(fd int, name string) *os.File {
	_ = syscall.SetNonblock(fd, false) // what cannot be set has never been otherwise
	return os.NewFile(uintptr(fd), name)
}

//go:build !unix || outlive_stream

package lineloop

import "os"

// HandsOver says that descriptors cannot be passed to another image of this program: goroutines read ahead of the
// loop.
const HandsOver = false

// Reopen makes an os.File of a descriptor.
func Reopen(fd int, name string) *os.File { return os.NewFile(uintptr(fd), name) }

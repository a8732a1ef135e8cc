//go:build unix

package heartbeat

import (
	"os"
	"syscall"
)

// openPlain opens a file that another program may have created: it does not follow links, and does not block on
// pipes.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

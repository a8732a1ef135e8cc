//go:build unix

package heartbeat

import (
	"os"
	"syscall"
)

// openPlain opens a file that anybody may have put there: it follows no link, and no pipe holds it up.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

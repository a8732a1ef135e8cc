//go:build unix

package agentcli

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openNoFollow opens a file unless it is a symbolic link. It does not block on a pipe.
func openNoFollow(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) || errors.Is(err, syscall.ENXIO) {
		return nil, fmt.Errorf("open %s: %w", path, errNotRegular)
	}
	return file, err
}

//go:build unix

package cli

import (
	"fmt"
	"os"
	"syscall"
)

// become runs another program in this process, so that signals reach it.
func become(_ streams, path string, args []string) error {
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, append([]string{path}, args...), os.Environ()))
}

package hooks

import (
	"fmt"
	"os"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// openPlain opens a file for reading. A symbolic link is an error; making one takes a right that users do not have.
func openPlain(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	return atomicfile.OpenShared(path, os.O_RDONLY, 0)
}

// private checks that folder is a folder. Only its user can write there because it is in the user's profile.
func private(folder string) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", folder)
	}
	return nil
}

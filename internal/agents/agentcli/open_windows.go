package agentcli

import (
	"fmt"
	"os"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// openNoFollow opens a file unless it is a symbolic link. Windows has no flag for that: the file can be replaced
// between the check and the opening, but only by a program that may write there anyway.
func openNoFollow(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: %w", path, errNotRegular)
	}
	return atomicfile.OpenShared(path, os.O_RDONLY, 0)
}

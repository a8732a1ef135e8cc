package heartbeat

import (
	"fmt"
	"os"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// openPlain opens a file that another program may have created. It checks for links before opening, which leaves a
// race, but only administrators can create links by default: that is good enough in the user's own directory.
func openPlain(path string) (*os.File, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file: %w", path, ErrNoBeat)
	}
	return atomicfile.OpenShared(path, os.O_RDONLY, 0)
}

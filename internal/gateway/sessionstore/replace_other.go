//go:build !windows

package sessionstore

import (
	"os"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// replace writes the log anew, opens the new one and closes the old one, which goes on if it fails.
func (f *File) replace(text []byte) (*os.File, error) {
	if err := atomicfile.Write(f.path, text); err != nil {
		return nil, err
	}
	log, err := openLog(f.path)
	if err != nil {
		return nil, err
	}
	if f.log != nil {
		_ = f.log.Close() // it is no longer there
	}
	return log, nil
}

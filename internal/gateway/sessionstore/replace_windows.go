package sessionstore

import (
	"errors"
	"os"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// replace writes the log anew, opens the new one and closes the old one, which is opened again if it fails. Windows does not
// replace a file that is open, so the old one is closed first.
func (f *File) replace(text []byte) (*os.File, error) {
	if f.log != nil {
		_ = f.log.Close()
	}
	err := atomicfile.Write(f.path, text)
	if err != nil && f.log == nil {
		return nil, err
	}
	log, openErr := openLog(f.path)
	if openErr != nil {
		return nil, errors.Join(err, openErr)
	}
	if err != nil {
		f.log = log
		return nil, err
	}
	return log, nil
}

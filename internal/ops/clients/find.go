package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// maxFile is the maximum size of a configuration file that is read, in bytes. Those of most clients have a few
// kilobytes, Claude Code's a few megabytes of history.
const maxFile = 64 << 20

// File is a configuration file that was found.
type File struct {
	Place
	Text []byte // as it was read
	// Err says why the file cannot be read; nil if it can. Text is empty then.
	Err error
}

// Find reads the existing files at the places, in order. A file at two places is read only for the first.
func Find(places []Place) []File {
	var files []File
	seen := map[string]bool{}
	for _, p := range places {
		paths := []string{p.Path}
		if p.Pattern {
			paths, _ = filepath.Glob(p.Path) // it fails only for an invalid pattern
		}
		for _, path := range paths {
			if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() || seen[path] {
				continue
			}
			seen[path] = true
			f := File{Place: p}
			f.Path, f.Pattern = path, false
			if f.Text, f.Err = atomicfile.Read(path, maxFile); f.Err != nil {
				f.Err = fmt.Errorf("read configuration: %w", f.Err)
			}
			files = append(files, f)
		}
	}
	return files
}

package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// SettingsFile is a settings file as it was read.
type SettingsFile struct {
	Path string
	Text []byte // nil: the file does not exist
}

// maxSettings is the maximum size in bytes of a settings file that is read; real ones have a few kilobytes.
const maxSettings = 4 << 20

// ReadSettings reads a settings file. It is no error if there is none.
func ReadSettings(path string) (*SettingsFile, error) {
	text, err := atomicfile.Read(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return &SettingsFile{Path: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return &SettingsFile{path, text}, nil
}

// Save replaces what was read by text, atomically; nil removes the file. Mode and links are kept. If another program
// has changed the file since, nothing is written, and the error wraps [atomicfile.ErrChanged].
func (f *SettingsFile) Save(text []byte) error {
	switch {
	case text == nil:
		if err := atomicfile.Remove(f.Path, f.Text); err != nil {
			return err
		}
		f.Text = nil
		return nil
	case f.Text == nil:
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return fmt.Errorf("save settings: %w", err)
		}
	}
	if err := atomicfile.Replace(f.Path, f.Text, text); err != nil {
		return fmt.Errorf("save settings: %w", err)
	}
	f.Text = text
	return nil
}

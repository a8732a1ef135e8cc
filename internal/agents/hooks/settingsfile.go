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
	Text []byte // nil: there is none
}

// maxSettings is the most bytes of a settings file that are read; people write a few kilobytes.
const maxSettings = 4 << 20

// ReadSettings reads a settings file, which need not be there.
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

// Save puts text in the place of what was read, all at once; nil removes the file. Mode and links stay. When somebody else
// has written meanwhile nothing is changed, and the error wraps [atomicfile.ErrChanged].
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

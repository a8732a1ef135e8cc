package hooks

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/piv"
)

// SettingsFile is a settings file as it was read.
type SettingsFile struct {
	Path string
	Text []byte // nil: there is none
}

// ReadSettings reads a settings file, which need not be there.
func ReadSettings(path string) (*SettingsFile, error) {
	text, err := piv.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &SettingsFile{Path: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	if text == nil {
		text = []byte{}
	}
	return &SettingsFile{path, text}, nil
}

// backupMark stands in the names of back-ups, before the time.
const backupMark = ".outlive-backup-"

// Backup copies the file, as it was read, beside itself and returns the copy's path; a back-up with this content that is
// there already is taken instead. "" when there was no file.
func (f *SettingsFile) Backup(now time.Time) (string, error) {
	if f.Text == nil {
		return "", nil
	}
	if same := f.backups(f.Text); len(same) > 0 {
		return same[0], nil
	}
	stem := f.target() + backupMark + now.UTC().Format("20060102T150405Z")
	path := stem
	for i := 2; ; i++ { // two edits in one second
		err := writeNew(path, f.Text)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("back up %s: %w", f.Path, err)
		}
		path = fmt.Sprintf("%s-%d", stem, i)
	}
}

// target is the file itself, where a link leads to it.
func (f *SettingsFile) target() string {
	if real, err := filepath.EvalSymlinks(f.Path); err == nil {
		return real
	}
	return f.Path
}

func (f *SettingsFile) backups(text []byte) []string {
	folder, base := filepath.Split(f.target())
	names, err := namesIn(filepath.Clean(folder))
	if err != nil {
		return nil
	}
	var same []string
	for _, name := range names {
		if !strings.HasPrefix(name, base+backupMark) {
			continue
		}
		if had, err := readRegular(filepath.Join(folder, name), piv.SizeLimit); err == nil && bytes.Equal(had, text) {
			same = append(same, filepath.Join(folder, name))
		}
	}
	return same
}

// DropBackups removes the back-ups that have the file's content: they say nothing new any more.
func (f *SettingsFile) DropBackups() error {
	if f.Text == nil {
		return nil
	}
	for _, path := range f.backups(f.Text) {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("drop back-up: %w", err)
		}
	}
	return nil
}

// Save puts text in the place of what was read, all at once; nil removes the file. Mode and links stay. When somebody else
// has written meanwhile nothing is changed, and the error wraps piv.ErrChanged.
func (f *SettingsFile) Save(text []byte) error {
	if text == nil {
		now, err := piv.ReadFile(f.Path)
		if err == nil && !bytes.Equal(now, f.Text) {
			err = piv.ErrChanged
		}
		if err == nil {
			err = os.Remove(f.Path)
		}
		if err != nil {
			return fmt.Errorf("remove %s: %w", f.Path, err)
		}
		f.Text = nil
		return nil
	}
	if f.Text == nil {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return fmt.Errorf("save settings: %w", err)
		}
	}
	if err := piv.Replace(f.Path, f.Text, text); err != nil {
		return fmt.Errorf("save settings: %w", err)
	}
	f.Text = text
	return nil
}

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// halfWrittenFor is the age from which a hidden file next to another is considered abandoned.
const halfWrittenFor = time.Hour

// Sweep removes the hidden files that killed writers of path have left. Files with other names, or younger than an
// hour, are kept.
func Sweep(path string, now time.Time) error {
	prefix := "." + filepath.Base(path) + "."
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		digits, ours := strings.CutPrefix(e.Name(), prefix)
		if !ours || digits == "" || strings.Trim(digits, "0123456789") != "" || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err != nil || now.Sub(info.ModTime()) < halfWrittenFor {
			continue
		}
		if err := os.Remove(filepath.Join(filepath.Dir(path), e.Name())); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

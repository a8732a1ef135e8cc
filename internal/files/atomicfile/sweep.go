package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// halfWrittenFor is how old a hidden file beside another must be until nobody can be writing it any more.
const halfWrittenFor = time.Hour

// Sweep removes the hidden files that writers of path have left behind when they were killed. What is not named as they
// name theirs, or is younger than an hour, stays.
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

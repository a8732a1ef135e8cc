package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// backupMark is in the names of back-ups, before the time.
const backupMark = ".outlive-backup-"

// Backup writes text, which is what the file contained when it was read, to a copy next to the file, with its mode
// and owner, and returns the copy's path. An existing back-up with this content is used instead. A nil text means
// that there was no file: nothing is copied, and the path is "".
func Backup(path string, text []byte, now time.Time) (string, error) {
	if text == nil {
		return "", nil
	}
	path = target(path)
	if same := backups(path, text); len(same) > 0 {
		return same[0], nil
	}
	model, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("back up: %w", err)
	}
	stem := path + backupMark + now.UTC().Format("20060102T150405Z")
	name := stem
	for i := 2; ; i++ { // if there were two edits in one second
		err := create(name, model, text)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("back up %s: %w", path, err)
		}
		name = fmt.Sprintf("%s-%d", stem, i)
	}
}

// DropBackups removes the back-ups of a file whose content is text: once the file has that content again they are not
// needed. It returns the paths of the removed ones.
func DropBackups(path string, text []byte) ([]string, error) {
	var dropped []string
	if text == nil {
		return nil, nil // there is no file
	}
	for _, name := range backups(path, text) {
		if err := os.Remove(name); err != nil {
			return dropped, fmt.Errorf("drop back-up: %w", err)
		}
		dropped = append(dropped, name)
	}
	return dropped, nil
}

// backups returns the back-ups of a file that have this content.
func backups(path string, text []byte) []string {
	return slices.DeleteFunc(Backups(path), func(name string) bool {
		had, err := Read(name, int64(len(text)))
		return err != nil || !bytes.Equal(had, text)
	})
}

// Backups returns all back-ups of a file.
func Backups(path string) (all []string) {
	folder, base := filepath.Split(target(path))
	entries, err := os.ReadDir(filepath.Clean(folder))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), base+backupMark) && e.Type().IsRegular() {
			all = append(all, filepath.Join(folder, e.Name()))
		}
	}
	return all
}

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

package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxFile is the most bytes of a configuration file that are read; those of the clients have a few kilobytes, and
// Claude Code's a few megabytes of history.
const maxFile = 64 << 20

// File is a configuration file that was found.
type File struct {
	Place
	Text []byte // as it was read
	// Err says why the file cannot be read, nil when it can. Text is empty then.
	Err error
}

// Find reads the files that there are at the places, in their order. A file at two places is read for the first.
func Find(places []Place) []File {
	var files []File
	seen := map[string]bool{}
	for _, p := range places {
		paths := []string{p.Path}
		if p.Pattern {
			paths, _ = filepath.Glob(p.Path) // fails for a bad pattern only
		}
		for _, path := range paths {
			if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() || seen[path] {
				continue
			}
			seen[path] = true
			f := File{Place: p}
			f.Path, f.Pattern = path, false
			f.Text, f.Err = read(path)
			files = append(files, f)
		}
	}
	return files
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("read configuration %s: no regular file of at most %d MiB", path, maxFile>>20)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return text, nil
}

// ErrChanged is returned by [File.Save] when somebody else has written the file since it was read.
var ErrChanged = errors.New("the file was changed meanwhile")

// backupMark stands in the names of back-ups, before the time.
const backupMark = ".outlive-backup-"

// Backup copies the file, as it was read, to a back-up beside it, with the same mode and owner, and returns its path.
// When a back-up with this content is there already, that one is returned.
func (f *File) Backup(now time.Time) (string, error) {
	target, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return "", fmt.Errorf("back up %s: %w", f.Path, err)
	}
	if same := backupsLike(target, f.Text); len(same) > 0 {
		return same[0], nil
	}
	path := target + backupMark + now.UTC().Format("20060102T150405Z")
	for i := 2; exists(path); i++ { // two edits in one second
		path = fmt.Sprintf("%s%s%s-%d", target, backupMark, now.UTC().Format("20060102T150405Z"), i)
	}
	if err := writeLike(target, path, f.Text); err != nil {
		return "", fmt.Errorf("back up %s: %w", f.Path, err)
	}
	return path, nil
}

// DropBackups removes the back-ups of the file whose content is text: once the file has it again they say nothing new.
// It returns their paths.
func (f *File) DropBackups(text []byte) ([]string, error) {
	target, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return nil, fmt.Errorf("drop back-ups of %s: %w", f.Path, err)
	}
	var dropped []string
	for _, path := range backupsLike(target, text) {
		if err := os.Remove(path); err != nil {
			return dropped, fmt.Errorf("drop back-up: %w", err)
		}
		dropped = append(dropped, path)
	}
	return dropped, nil
}

// backupsLike returns the back-ups of target with this content.
func backupsLike(target string, text []byte) []string {
	dir, base := filepath.Split(target)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return nil
	}
	var same []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), base+backupMark) {
			continue
		}
		if had, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil && bytes.Equal(had, text) {
			same = append(same, filepath.Join(dir, e.Name()))
		}
	}
	return same
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Save writes text in the place of what was read, in one step: whoever reads the file sees the old or the new one.
// Mode and owner stay, a symbolic link stays one and its target is written. It returns [ErrChanged] when the file is not
// as it was read. There is a moment between that check and the replacement in which a client may write: it is a
// few microseconds long, and the back-up has what was there before.
func (f *File) Save(text []byte) error {
	target, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return fmt.Errorf("save %s: %w", f.Path, err)
	}
	temp, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".outlive-*")
	if err != nil {
		return fmt.Errorf("save %s: %w", f.Path, err)
	}
	name := temp.Name()
	_ = temp.Close()
	_ = os.Remove(name) // only its name is wanted; writeLike makes it anew
	if err := writeLike(target, name, text); err != nil {
		return fmt.Errorf("save %s: %w", f.Path, err)
	}
	now, err := os.ReadFile(target)
	if err == nil && !bytes.Equal(now, f.Text) {
		err = ErrChanged
	}
	if err == nil {
		err = os.Rename(name, target)
	}
	if err != nil {
		_ = os.Remove(name)
		return fmt.Errorf("save %s: %w", f.Path, err)
	}
	f.Text = text
	return nil
}

// writeLike writes a new file with the mode and owner of model.
func writeLike(model, path string, text []byte) (err error) {
	info, err := os.Stat(model)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	if _, err = file.Write(text); err != nil {
		return err
	}
	if err = keepOwner(file, info); err != nil {
		return err
	}
	if err = file.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	return file.Sync()
}

package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"
)

// variable returns the form of a variable's name in which equal names are equal; case does not count here ("Path").
func variable(name string) string { return strings.ToUpper(name) }

// resolve looks for a name with and without the extensions of PATHEXT, in the folders of path. The working directory, which the
// system would search first, is not one of them.
func resolve(argv0, dir, path string) (string, error) {
	if !strings.ContainsAny(argv0, `/\:`) {
		for _, folder := range filepath.SplitList(path) {
			if !filepath.IsAbs(folder) {
				continue
			}
			if full, err := exec.LookPath(filepath.Join(folder, argv0)); err == nil {
				return full, nil
			}
		}
		return "", notFoundInPath(argv0, path)
	}
	name := argv0
	if !filepath.IsAbs(name) && dir != "" {
		name = filepath.Join(dir, name)
	}
	full, err := exec.LookPath(name)
	switch {
	case err == nil:
		return filepath.Abs(full)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return "", &StartError{Command: argv0, Err: ErrNotFound, Detail: "no such file: " + name}
	}
	return "", &StartError{Command: argv0, Err: ErrNotExecutable, Detail: err.Error()}
}

// executable reports why the file at path cannot be executed; nil if it can.
func executable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return syscall.EISDIR
	}
	return nil
}

// explainStart makes an error for people from the system's.
func explainStart(argv0, path string, err error) error {
	if errors.Is(err, windows.ERROR_BAD_EXE_FORMAT) {
		return &StartError{Command: argv0, Err: ErrNotExecutable, Detail: path + " is not a program of this machine",
			Hint: "name the interpreter in the command"}
	}
	if errors.Is(err, fs.ErrPermission) {
		return &StartError{Command: argv0, Err: ErrNotExecutable, Detail: err.Error()}
	}
	return fmt.Errorf("start %s: %w", argv0, err)
}

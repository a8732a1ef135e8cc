//go:build unix

package child

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// variable returns the form of a variable's name in which equal names are equal.
func variable(name string) string { return name }

func resolve(argv0, dir, path string) (string, error) {
	if strings.Contains(argv0, "/") {
		full := argv0
		if !filepath.IsAbs(full) && dir != "" {
			full = filepath.Join(dir, full)
		}
		if err := executable(full); err != nil {
			return "", explainFile(argv0, full, err)
		}
		return filepath.Abs(full) // the child's working directory is another one
	}
	var blocked string // a non-executable file of that name, which shells report
	for _, d := range filepath.SplitList(path) {
		if d == "" {
			d = "."
		}
		full := filepath.Join(d, argv0)
		switch err := executable(full); {
		case err == nil:
			return filepath.Abs(full)
		case errors.Is(err, fs.ErrPermission) && blocked == "":
			blocked = full
		}
	}
	if blocked != "" {
		return "", explainFile(argv0, blocked, fs.ErrPermission)
	}
	return "", notFoundInPath(argv0, path)
}

// executable reports why the file at path cannot be executed by us; nil if it can.
func executable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return syscall.EISDIR
	}
	if unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) != nil || st.Mode().Perm()&0o111 == 0 {
		return fs.ErrPermission
	}
	return nil
}

// explainFile makes an error for people from the result of executable.
func explainFile(argv0, full string, err error) error {
	e := &StartError{Command: argv0, Err: ErrNotExecutable}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Err = ErrNotFound
		e.Detail = "no such file"
		if full != argv0 {
			e.Detail += ": " + full
		}
		if !filepath.IsAbs(argv0) {
			e.Hint = "a relative path is taken from the working directory of the command"
		}
	case errors.Is(err, syscall.EISDIR):
		e.Detail = full + " is a directory"
	case errors.Is(err, fs.ErrPermission):
		e.Detail = full + " is not executable"
		e.Hint = "chmod +x " + full
	default:
		e.Detail = err.Error()
	}
	return e
}

// explainStart makes an error for people from the kernel's.
func explainStart(argv0, path string, err error) error {
	e := &StartError{Command: argv0, Err: ErrNotExecutable}
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		e.Detail = path + " is neither a program of this machine nor a script with a #! line"
		e.Hint = "add a first line such as #!/bin/sh, or name the interpreter in the command"
	case errors.Is(err, syscall.ENOENT):
		interp, crlf := interpreter(path)
		e.Detail = path + " exists, but what it needs to run does not"
		if interp != "" {
			e.Detail = fmt.Sprintf("%s wants the interpreter %s, which does not exist", path, interp)
		}
		if crlf {
			e.Hint = "its first line ends with a carriage return: save it with Unix line ends"
		}
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		e.Detail = fmt.Sprintf("%s: %v", path, errors.Unwrap(err))
		e.Hint = "is its file system mounted noexec, or its interpreter not executable?"
	default:
		return fmt.Errorf("start %s: %w", argv0, err)
	}
	return e
}

// interpreter returns what the #! line of a script names.
func interpreter(path string) (name string, crlf bool) {
	f, err := atomicfile.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	buf := make([]byte, 256)
	n, _ := f.Read(buf)
	line, _, _ := bytes.Cut(buf[:n], []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	if !ok {
		return "", false
	}
	crlf = bytes.HasSuffix(rest, []byte("\r"))
	if fields := strings.Fields(string(rest)); len(fields) > 0 {
		name = fields[0]
	}
	return name, crlf
}

package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrIrregular is wrapped by the errors about what is not a regular file, such as a pipe or a folder.
var ErrIrregular = errors.New("not a regular file")

// ErrTooLong is wrapped by the error of [Read] about a file over the limit.
var ErrTooLong = errors.New("too long")

// Open opens a regular file for reading; links are followed. Anything else is an error that wraps [ErrIrregular]:
// opening a pipe in a file's place could block for ever.
func Open(path string) (*os.File, error) {
	st, err := os.Stat(path) // a device must not be opened: that may have an effect
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, ErrIrregular)
	}
	f, err := OpenShared(path, os.O_RDONLY|withoutWaiting, 0)
	if err == nil {
		_, err = regular(f)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// OpenPlain opens a regular file for reading that other programs may have put there. A link is not followed, and a pipe does
// not block: both are errors that wrap [ErrIrregular].
func OpenPlain(path string) (*os.File, fs.FileInfo, error) {
	f, err := openUnlinked(path)
	if err != nil {
		return nil, nil, err
	}
	st, err := regular(f)
	if err != nil {
		return nil, nil, err
	}
	return f, st, nil
}

// regular closes a file that is not regular. It may have been replaced since it was looked at.
func regular(f *os.File) (fs.FileInfo, error) {
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("read %s: %w", f.Name(), ErrIrregular)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return st, nil
}

// Read reads a file of at most limit bytes, opened by [Open]. The result for an empty file is not nil.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	return whole(f, limit)
}

// ReadPlain is [Read] of a file that is opened by [OpenPlain].
func ReadPlain(path string, limit int64) ([]byte, error) {
	f, _, err := OpenPlain(path)
	if err != nil {
		return nil, err
	}
	return whole(f, limit)
}

// whole reads a file, and closes it.
func whole(f *os.File, limit int64) ([]byte, error) {
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("read %s: %w: it has more than %d bytes", f.Name(), ErrTooLong, limit)
	}
	return text, nil
}

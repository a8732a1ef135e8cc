package atomicfile

import (
	"errors"
	"fmt"
	"io"
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
	if err != nil {
		return nil, err
	}
	if st, err = f.Stat(); err == nil && !st.Mode().IsRegular() { // the file may have been replaced since
		err = fmt.Errorf("read %s: %w", path, ErrIrregular)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Read reads a file of at most limit bytes, opened by [Open]. The result for an empty file is not nil.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("read %s: %w: it has more than %d bytes", path, ErrTooLong, limit)
	}
	return text, nil
}

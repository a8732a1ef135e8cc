package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrIrregular is wrapped by the error of [Read] about what is not a regular file, such as a pipe or a folder.
var ErrIrregular = errors.New("not a regular file")

// ErrTooLong is wrapped by the error of [Read] about a file that is longer than its reader wants.
var ErrTooLong = errors.New("too long")

// Open opens an ordinary file for reading; links are followed. Anything else is an error that wraps [ErrIrregular]: to open a
// pipe that somebody has put in a file's place would wait for a writer, perhaps for ever.
func Open(path string) (*os.File, error) {
	st, err := os.Stat(path) // not to open a device, which may notice
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, ErrIrregular)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	if st, err = f.Stat(); err == nil && !st.Mode().IsRegular() { // it has just taken the file's place
		err = fmt.Errorf("read %s: %w", path, ErrIrregular)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Read reads a file of at most limit bytes, which [Open] opens. The text of an empty file is not nil.
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

package wholefile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrIrregular is wrapped by the error of [Read] about what is no ordinary file, such as a pipe or a folder.
var ErrIrregular = errors.New("no ordinary file")

// ErrTooLong is wrapped by the error of [Read] about a file that is longer than its reader wants.
var ErrTooLong = errors.New("too long")

// Read reads a file of at most limit bytes; links are followed. What is no ordinary file is not opened: a pipe in its place
// would hold the reader up. The text of an empty file is not nil.
func Read(path string, limit int64) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, ErrIrregular)
	}
	f, err := os.Open(path)
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

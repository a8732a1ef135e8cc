package piv

import (
	"errors"
	"fmt"

	"github.com/outlive-mcp/outlive/internal/wholefile"
)

// ReadFile reads a file of at most [SizeLimit] bytes. What is longer, or no ordinary file, is none of S4's: the error wraps
// [ErrBroken].
func ReadFile(path string) ([]byte, error) {
	text, err := wholefile.Read(path, SizeLimit)
	if errors.Is(err, wholefile.ErrIrregular) || errors.Is(err, wholefile.ErrTooLong) {
		err = fmt.Errorf("%w: %w", err, ErrBroken)
	}
	return text, err
}

package piv

import (
	"errors"
	"fmt"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// ReadFile reads a file of at most [SizeLimit] bytes. What is longer, or no ordinary file, is none of PIV's: the error wraps
// [ErrBroken].
func ReadFile(path string) ([]byte, error) {
	text, err := atomicfile.Read(path, SizeLimit)
	if errors.Is(err, atomicfile.ErrIrregular) || errors.Is(err, atomicfile.ErrTooLong) {
		err = fmt.Errorf("%w: %w", err, ErrBroken)
	}
	return text, err
}

//go:build !windows

package restart

import (
	"errors"
	"testing"
)

func TestCodesEndAt255(t *testing.T) {
	for _, text := range []string{"256", "300", "1-256", "3221225477"} {
		if got, err := ParseCodes(text); !errors.Is(err, ErrCodes) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
}

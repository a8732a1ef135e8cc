//go:build !windows

package restart

import (
	"strings"
	"testing"
)

func TestCodesEndAt255(t *testing.T) {
	for _, text := range []string{"256", "300", "1-256", "3221225477"} {
		if got, err := ParseCodes(text); err == nil || !strings.Contains(err.Error(), "exit codes: cannot read") {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
}

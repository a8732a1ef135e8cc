package restart

import (
	"slices"
	"strings"
	"testing"
)

func TestCodesOfWindowsHave32Bits(t *testing.T) {
	if got, err := ParseCodes("3221225477,4294967295-4294967295"); err != nil || !slices.Equal(got, []int{3221225477, 4294967295}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := ParseCodes("0-5000"); err == nil || !strings.Contains(err.Error(), "name fewer") {
		t.Errorf("got %v", err)
	}
}

//go:build unix

package hooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Windows has no such modes: there a folder is its user's because it is in the user's profile.
func TestFoldersOfOthersAreNotUsed(t *testing.T) {
	dir := announced(t)
	if err := os.Chmod(filepath.Join(dir, answersFolder), 0o777); err != nil {
		t.Fatal(err)
	}
	reply, err := Run(t.Context(), Options{Vendor: VendorNamed("claude"), Dir: dir, Ask: true}, []byte(askPayload))
	if len(reply) != 0 || err == nil || !strings.Contains(err.Error(), "others can write") {
		t.Errorf("said %q, error %v", reply, err)
	}
}

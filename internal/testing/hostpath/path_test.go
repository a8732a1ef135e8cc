package hostpath

import (
	"path/filepath"
	"testing"
)

// A path of a test is absolute on every system, within a text, too, and the same again afterwards.
func TestPathsAreAbsolute(t *testing.T) {
	const path = "/home/u/my shop"
	if got := Abs(path); !filepath.IsAbs(got) || Slashed(got) != path {
		t.Errorf("%s, and back %s", got, Slashed(got))
	}
	if got := InText(path, "/home/u"); !filepath.IsAbs(got) || filepath.Clean(got) != Abs(path) {
		t.Errorf("in a text: %s", got)
	}
	if got := Slashed("docs/x"); got != "docs/x" {
		t.Errorf("a relative path: %s", got)
	}
}

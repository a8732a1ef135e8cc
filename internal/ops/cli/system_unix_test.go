//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// $BROWSER may be a list, or have arguments, which the desktop's command understands: that opens the page.
func TestBrowserThatIsNoProgram(t *testing.T) {
	t.Setenv("DISPLAY", ":0")
	desktops := browserCommand("http://page")
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, name := range []string{desktops[0], "own"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for browser, want := range map[string]string{"": desktops[0], "own:other": desktops[0], "own --new-window %s": desktops[0], "own": "own"} {
		t.Setenv("BROWSER", browser)
		if got := pageOpener("http://page"); len(got) < 2 || filepath.Base(got[0]) != want || got[len(got)-1] != "http://page" {
			t.Errorf("with BROWSER=%q: %q", browser, got)
		}
	}
}

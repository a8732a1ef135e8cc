// Overlay writes copies of a few files of Go's standard library, changed, and an overlay.json for `go build -overlay` that names them:
// programs of ours that run under Wine, or with a clock that is wrong.
//
// Usage: overlay wine|clock FOLDER
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// change replaces the only place in a file of the standard library that reads old.
type change struct{ file, old, new string }

// sets are the changes, by what they are for.
var sets = map[string][]change{"wine": underWine, "clock": wrongClock}

func main() {
	if len(os.Args) != 3 || sets[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: overlay wine|clock FOLDER")
		os.Exit(2)
	}
	if err := write(sets[os.Args[1]], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "overlay:", err)
		os.Exit(1)
	}
}

func write(changes []change, folder string) error {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("ask go for its root: %w", err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "src")
	texts := map[string]string{}
	for _, c := range changes {
		text, ok := texts[c.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, c.file))
			if err != nil {
				return err
			}
			text = string(b)
		}
		if n := strings.Count(text, c.old); n != 1 {
			return fmt.Errorf("%s has %d places that read %q, want 1: Go has changed, see what the change is for", c.file, n, c.old)
		}
		texts[c.file] = strings.Replace(text, c.old, c.new, 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		copied := filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(root, file)] = copied
	}
	b, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "overlay.json"), b, 0o600)
}

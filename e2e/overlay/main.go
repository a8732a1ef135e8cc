// Overlay writes copies of a few source files, changed, and an overlay.json for `go build -overlay` that names them: programs of ours
// that run under Wine, with a clock that is wrong, or with times so short that tests can wait for them.
//
// Usage: overlay wine|clock|quick FOLDER
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// change replaces the only place in a file that reads old.
type change struct{ file, old, new string }

// set are changes that go together.
type set struct {
	ours    bool // the files are this repository's, not those of Go's standard library
	changes []change
}

// sets are the changes, by what they are for.
var sets = map[string]set{"wine": {changes: underWine}, "clock": {changes: wrongClock}, "quick": {ours: true, changes: quick}}

func main() {
	if len(os.Args) != 3 || sets[os.Args[1]].changes == nil {
		fmt.Fprintln(os.Stderr, "usage: overlay wine|clock|quick FOLDER")
		os.Exit(2)
	}
	if err := sets[os.Args[1]].write(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "overlay:", err)
		os.Exit(1)
	}
}

// root is the folder that the names of the set's files begin at.
func (s set) root() (string, error) {
	if s.ours {
		out, err := exec.Command("go", "env", "GOMOD").Output() // that of e2e
		if err != nil {
			return "", fmt.Errorf("ask go for its module: %w", err)
		}
		return filepath.Dir(filepath.Dir(strings.TrimSpace(string(out)))), nil
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("ask go for its root: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src"), nil
}

func (s set) write(folder string) error {
	root, err := s.root()
	if err != nil {
		return err
	}
	texts, err := changed(root, s.changes)
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for file, text := range texts {
		copied := filepath.Join(folder, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return err
		}
		replace[filepath.Join(root, filepath.FromSlash(file))] = copied
	}
	b, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "overlay.json"), b, 0o600)
}

// changed are the texts of the files with their changes, by file.
func changed(root string, changes []change) (map[string]string, error) {
	texts := map[string]string{}
	for _, c := range changes {
		text, ok := texts[c.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(c.file)))
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, c.old); n != 1 {
			return nil, fmt.Errorf("%s has %d places that read %q, want 1: the file has changed, see what the change is for", c.file, n, c.old)
		}
		texts[c.file] = strings.Replace(text, c.old, c.new, 1)
	}
	return texts, nil
}

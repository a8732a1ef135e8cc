package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Each change has its one place in the sources as they are: whoever moves what it names learns of it here, before a build.
func TestChangesHaveTheirPlaces(t *testing.T) {
	for name, one := range sets {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := one.write(folder); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(folder, "overlay.json")); err != nil {
				t.Error(err)
			}
		})
	}
}

// A place that is missing, or there twice, is said, and nothing is written.
func TestChangesWithoutTheirPlace(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("x = 1\ny = 1\ny = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for old, ok := range map[string]bool{"x = 1": true, "y = 1": false, "z = 1": false} {
		texts, err := changed(root, []change{{"a.go", old, "x = 2"}})
		if (err == nil) != ok || ok && texts["a.go"] != "x = 2\ny = 1\ny = 1\n" {
			t.Errorf("%s: %q, %v", old, texts["a.go"], err)
		}
	}
}

package clients

import (
	"os"
	"path/filepath"
	"testing"
)

// found writes a file and finds it.
func found(t *testing.T, path, text string) File {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	files := Find([]Place{{Client: Named("cursor"), Path: path}})
	if len(files) != 1 || files[0].Err != nil || string(files[0].Text) != text {
		t.Fatalf("found %+v", files)
	}
	return files[0]
}

// Patterns find existing files, missing files are no error, and what is not a file is reported.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		found(t, filepath.Join(dir, name, "mcp.json"), name)
	}
	all := filepath.Join(dir, "*", "mcp.json")
	files := Find([]Place{{Path: filepath.Join(dir, "none")}, {Path: dir}, {Path: filepath.Join(dir, "b", "mcp.json")}, {Path: all, Pattern: true}})
	if len(files) != 2 || string(files[0].Text) != "b" || string(files[1].Text) != "a" || files[1].Pattern {
		t.Errorf("%+v", files)
	}
}

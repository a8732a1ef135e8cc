package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestConcurrent(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             bool
	}{
		{"nothing", "a.go", "package p\n\nfunc F() int { return 1 }\n", false},
		{"only the words", "a.go", "package p\n\n// go func() {}() and import \"sync\"\nvar S = \"go func() {}()\"\n", false},
		{"go statement", "a.go", "package p\n\nfunc F() { go F() }\n", true},
		{"go statement within a function value", "a.go", "package p\n\nvar F = func() { go func() {}() }\n", true},
		{"in a test", "a_test.go", "package p\n\nfunc f() { go f() }\n", true},
		{"in an external test", "a_test.go", "package p_test\n\nfunc f() { go f() }\n", true},
		{"method Go", "a.go", "package p\n\ntype group interface{ Go(func()) }\n\nfunc F(g group) { g.Go(func() {}) }\n", true},
		{"AfterFunc", "a.go", "package p\n\nimport \"time\"\n\nfunc F() { time.AfterFunc(1, func() {}) }\n", true},
		{"parallel tests", "a_test.go", "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Parallel() }\n", true},
		{"sync", "a.go", "package p\n\nimport \"sync\"\n\nvar M sync.Mutex\n", true},
		{"sync under another name", "a.go", "package p\n\nimport s \"sync\"\n\nvar M s.Mutex\n", true},
		{"sync/atomic", "a.go", "package p\n\nimport \"sync/atomic\"\n\nvar N atomic.Int32\n", true},
		{"httptest", "a_test.go", "package p\n\nimport _ \"net/http/httptest\"\n", true},
		{"another system's", "a_windows.go", "package p\n\nfunc F() { go F() }\n", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := module(t, map[string]string{"p/" + test.file: test.text, "p/doc.go": "package p\n", "q/q.go": "package q\n\nimport _ \"sync\"\n"})
			_, got, err := concurrent(dir)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(got, "example.org/m/p") != test.want || !slices.Contains(got, "example.org/m/q") {
				t.Errorf("listed %q", got)
			}
		})
	}
}

// What cannot be listed, and an empty list, end the run instead of leaving the race detector without work.
func TestNoListIsAnError(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"nothing concurrent": {"p/a.go": "package p\n"},
		"no Go":              {"p/a.go": "package p\n", "p/b.go": "package"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got, err := concurrent(module(t, files)); err == nil {
				t.Errorf("listed %q", got)
			}
		})
	}
}

// This module's own list has the rooms that are known to have goroutines, and is not everything.
func TestThisModule(t *testing.T) {
	_, got, err := concurrent("../..")
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/outlive-mcp/outlive/internal/"
	for path, want := range map[string]bool{"line/lineloop": true, "keep/child": true, "keep/backoff": false, "protocol/mcp": false} {
		if slices.Contains(got, module+path) != want {
			t.Errorf("%s is listed: %v, want %v", path, !want, want)
		}
	}
}

func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.org/m\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

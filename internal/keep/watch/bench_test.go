package watch

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// project makes 10,000 source files of 4 KiB in 500 directories, and half as many that are ignored.
func project(b *testing.B) string {
	root := b.TempDir()
	text := strings.Repeat("x = 1\n", 4096/6)
	write(b, root, ".gitignore", "gen/\n*.log\n")
	for i := range 10_000 {
		write(b, root, fmt.Sprintf("d%d/e%d/f%d.py", i%20, i%500, i), text)
		if i%2 == 0 {
			write(b, root, fmt.Sprintf("gen/d%d/f%d.py", i%20, i), text)
		}
	}
	return root
}

func benchSurvey(b *testing.B, root string) *survey {
	s := begin(b, root, "**/*.py")
	if s.told.files != 10_000 {
		b.Fatalf("%d files", s.told.files)
	}
	return s
}

// How long New keeps its caller waiting, with events.
func BenchmarkStart(b *testing.B) {
	root := project(b)
	for b.Loop() {
		w, err := New(Options{Root: root, Globs: []string{"**/*.py"}}, func([]string) {})
		if err != nil {
			b.Fatal(err)
		}
		w.Close()
	}
}

// The first scan, and reading the content of all files, which is done after New in the background.
func BenchmarkContent(b *testing.B) {
	root := project(b)
	for b.Loop() {
		benchSurvey(b, root)
	}
}

// What a save costs. With events, idle costs nothing: nothing wakes the goroutine.
func BenchmarkSave(b *testing.B) {
	root := project(b)
	s := benchSurvey(b, root)
	name := filepath.Join(root, "d1", "e1", "f1.py")
	for b.Loop() {
		s.note(fsnotify.Event{Name: name, Op: fsnotify.Write})
		if n := len(s.settle()); n != 0 {
			b.Fatalf("%d changes", n)
		}
	}
}

// Looking at everything, as after lost events and in each round of polling.
func BenchmarkLookAtEverything(b *testing.B) {
	s := benchSurvey(b, project(b))
	for b.Loop() {
		s.lost()
		if n := len(s.settle()); n != 0 {
			b.Fatalf("%d changes", n)
		}
	}
}

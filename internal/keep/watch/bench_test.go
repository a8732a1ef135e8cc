package watch

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
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
	sel, err := newSelection(filepath.ToSlash(root), []string{"**/*.py"})
	if err != nil {
		b.Fatal(err)
	}
	s := newSurvey(sel, slog.New(slog.DiscardHandler))
	if err := s.begin(); err != nil {
		b.Fatal(err)
	}
	if s.files != 10_000 {
		b.Fatalf("%d files", s.files)
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

// Reading the content of all files, which is done after New in the background.
func BenchmarkContent(b *testing.B) {
	root := project(b)
	for b.Loop() {
		s := benchSurvey(b, root)
		for s.spare() {
		}
	}
}

// One round of polling in which nothing changed. With events, idle costs nothing: nothing wakes the goroutine.
func BenchmarkPoll(b *testing.B) {
	s := benchSurvey(b, project(b))
	for b.Loop() {
		if s.poll() {
			b.Fatal("something changed")
		}
	}
}

// Looking at everything, as after lost events.
func BenchmarkLookAtEverything(b *testing.B) {
	s := benchSurvey(b, project(b))
	for b.Loop() {
		s.everything = true
		if n := len(s.settle()); n != 0 {
			b.Fatalf("%d changes", n)
		}
	}
}

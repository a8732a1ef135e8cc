package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/keep/watch"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// watchFiles restarts the server when the files of --watch change. The returned function ends that.
func watchFiles(p restartable, s *settings, k *sinks) (stop func(), err error) {
	if len(s.watch.Globs) == 0 && s.watch.Auto == nil {
		return func() {}, nil
	}
	opts := s.watch
	ctx, cancel := context.WithCancel(context.Background())
	w, err := watch.New(opts, func(paths []string) {
		what := changedText(paths)
		k.Emit(event.Event{Type: event.FilesChanged, Time: time.Now(), Level: slog.LevelInfo, Message: "Files changed: " + what,
			Attrs: []slog.Attr{slog.Any(event.KeyFiles, paths)}})
		go func() { _ = p.Restart(ctx, supervise.SourceWatch, what+" changed") }() // its events tell how it went
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("--watch: %w", err)
	}
	return func() {
		cancel()
		w.Close()
	}, nil
}

// filesNamed is how many changed files a log line names.
const filesNamed = 3

func changedText(paths []string) string {
	if more := len(paths) - filesNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:filesNamed], ", "), more)
	}
	return strings.Join(paths, ", ")
}

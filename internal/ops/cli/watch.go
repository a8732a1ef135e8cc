package cli

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/keep/watch"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// watchFiles restarts a server when the files of its --watch change, and tells k of it, until the returned function is called.
func watchFiles(opts watch.Options, k *sinks, restart func(context.Context, supervise.Source, string) error) (stop func(), err error) {
	if len(opts.Globs) == 0 && opts.Auto == nil {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	w, err := watch.New(opts, func(paths []string) {
		what := changedText(paths)
		k.say(event.FilesChanged, "Files changed: "+what, slog.Any(event.KeyFiles, paths))
		go func() { _ = restart(ctx, supervise.SourceWatch, what+" changed") }() // its events tell how it went
	})
	if err != nil {
		cancel()
		return func() {}, err
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

// watchConfig reads the configuration again when its file changes, until the returned function is called. If the file
// cannot be watched, SIGHUP and `outlive reload` still work.
func (g *endpoint) watchConfig() (stop func()) {
	abs, err := filepath.Abs(g.path)
	if err != nil || g.path == "" {
		return func() {}
	}
	w, err := watch.New(watch.Options{Root: filepath.Dir(abs), Globs: []string{filepath.Base(abs)}}, func([]string) {
		if g.differs() {
			_ = g.Reload() // the result is reported as an event
		}
	})
	if err != nil {
		g.sinks.say(event.ServerLogLost, "the configuration cannot be watched: "+err.Error())
		return func() {}
	}
	return w.Close
}

// differs reports whether the configuration has changed since it was last read, possibly by a reload on request.
func (g *endpoint) differs() bool {
	text, err := os.ReadFile(g.path)
	g.mu.Lock()
	defer g.mu.Unlock()
	return err != nil || sha256.Sum256(text) != g.read
}

// watchServer restarts a server when the files of its "watch" change, until the returned function is called.
func (g *endpoint) watchServer(name string, one *served) (stop func()) {
	stop, err := watchFiles(one.watch, one.sinks, func(ctx context.Context, source supervise.Source, reason string) error {
		return g.Restart(ctx, name, source, reason)
	})
	if err != nil {
		one.sinks.say(event.ServerLogLost, "files cannot be watched: "+err.Error())
	}
	return stop
}

// watched is a server whose files are watched.
type watched struct {
	digest string
	stop   func()
}

// rewatch watches the files of the present configuration's servers. The caller holds g.mu, or no other goroutine uses
// g yet.
func (g *endpoint) rewatch() {
	next := map[string]watched{}
	for name, one := range g.served.current() {
		was, ok := g.watched[name]
		if ok && was.digest == one.digest {
			next[name] = was
			continue
		}
		next[name] = watched{one.digest, g.watchServer(name, one)}
	}
	for name, was := range g.watched {
		if next[name].digest != was.digest {
			was.stop()
		}
	}
	g.watched = next
}

func (g *endpoint) unwatch() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.watched {
		one.stop()
	}
	g.watched = nil
}

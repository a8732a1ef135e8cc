package cli

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/keep/watch"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// watchConfig reads the configuration again when its file changes, until the returned function is called. If the file
// cannot be watched, SIGHUP and `outlive reload` still work.
func (g *endpoint) watchConfig() (stop func()) {
	return watchFile(g.path, g.sinks, func() {
		if g.differs() {
			_ = g.Reload() // the result is reported as an event
		}
	})
}

// watchFile calls changed whenever a configuration may have changed, until the returned function is called. Nothing is watched at "".
func watchFile(path string, k *sinks, changed func()) (stop func()) {
	abs, err := filepath.Abs(path)
	if err != nil || path == "" {
		return func() {}
	}
	w, err := watch.New(watch.Options{Root: filepath.Dir(abs), Globs: []string{filepath.Base(abs)}}, func([]string) { changed() })
	if err != nil {
		k.say(event.ServerLogLost, "the configuration cannot be watched: "+err.Error())
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
func (g *endpoint) watchServer(name string, opts watch.Options) (stop func()) {
	if len(opts.Globs) == 0 && opts.Auto == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	w, err := watch.New(opts, func(paths []string) {
		what := changedText(paths)
		g.sinks.Emit(event.Event{Type: event.FilesChanged, Time: time.Now(), Level: slog.LevelInfo, Message: name + ": Files changed: " + what,
			Attrs: []slog.Attr{slog.Any(event.KeyFiles, paths), slog.String(event.KeyServer, name)}})
		go func() { _ = g.Restart(ctx, name, supervise.SourceWatch, what+" changed") }() // it emits events
	})
	if err != nil {
		cancel()
		g.sinks.say(event.ServerLogLost, name+": files cannot be watched: "+err.Error(), slog.String(event.KeyServer, name))
		return func() {}
	}
	return func() {
		cancel()
		w.Close()
	}
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
		next[name] = watched{one.digest, g.watchServer(name, one.watch)}
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

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

// watchConfig reads the configuration again when its file changes, until the returned function is called. Without it, SIGHUP
// and `outlive reload` still do.
func (g *endpoint) watchConfig() (stop func()) {
	path, err := filepath.Abs(g.path)
	if err != nil || g.path == "" {
		return func() {}
	}
	w, err := watch.New(watch.Options{Root: filepath.Dir(path), Globs: []string{filepath.Base(path)}}, func([]string) {
		if g.differs() {
			_ = g.Reload() // its event tells how it went
		}
	})
	if err != nil {
		g.sinks.say(event.ServerLogLost, "the configuration cannot be watched: "+err.Error())
		return func() {}
	}
	return w.Close
}

// differs reports whether the configuration is not what was read last: it may have been read on request already.
func (g *endpoint) differs() bool {
	text, err := os.ReadFile(g.path)
	g.mu.Lock()
	defer g.mu.Unlock()
	return err != nil || sha256.Sum256(text) != g.read
}

// watchServer restarts a server when the files of its "watch" change. The returned function ends that.
func (g *endpoint) watchServer(name string, opts watch.Options) (stop func()) {
	if len(opts.Globs) == 0 && opts.Auto == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	w, err := watch.New(opts, func(paths []string) {
		what := changedText(paths)
		g.sinks.Emit(event.Event{Type: event.FilesChanged, Time: time.Now(), Level: slog.LevelInfo, Message: name + ": Files changed: " + what,
			Attrs: []slog.Attr{slog.Any(event.KeyFiles, paths), slog.String(event.KeyServer, name)}})
		go func() { _ = g.Restart(ctx, name, supervise.SourceWatch, what+" changed") }() // its events tell how it went
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

// rewatch watches the files of the servers that are configured now. The caller holds g.mu, or nobody else is there yet.
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

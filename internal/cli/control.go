package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/control"
	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/logline"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// followEvery is how often a followed log is looked at.
const followEvery = 100 * time.Millisecond

// askPatience is how long a running outlive may take to say how it stands.
const askPatience = 2 * time.Second

// reachable is a running proxy as the control socket offers it.
type reachable struct {
	proxy    *upgrader
	settings *settings
	sinks    *sinks
}

// serveControl opens the control socket, and closes it when the returned function is called. The socket is a
// convenience: without it the run goes on, and says so.
func serveControl(p *upgrader, s *settings, k *sinks) (closeIt func()) {
	opened := make(chan *control.Server, 1)
	go func() { // beside the first start of the server, which must not wait for it
		srv, err := control.Listen(socketDir(), s.backend.Name, os.Getpid(), reachable{p, s, k})
		if err != nil {
			k.say(event.ServerLogLost, fmt.Sprintf("control socket: %v; outlive status cannot see this run", err))
		}
		opened <- srv
	}()
	return func() {
		if srv := <-opened; srv != nil {
			_ = srv.Close() // the socket's file is looked after by the next discovery
		}
	}
}

// Status implements control.Source.
func (r reachable) Status() control.Status {
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	b, err := r.proxy.Status(ctx)
	if err != nil {
		b.Name, b.Command, b.State = r.settings.backend.Name, r.settings.backend.Command, "ending"
	}
	s := control.Status{
		Status: b, PID: os.Getpid(), StartedAt: r.sinks.start, Version: version(), Upgrades: r.proxy.upgrades, Dir: r.settings.dir,
		Lost:    control.Lost{Stderr: r.sinks.log.Lost(), Log: r.sinks.kept.Lost()},
		LogPath: r.sinks.kept.Path(),
	}
	if r.sinks.audit != nil {
		s.AuditPath, s.Lost.Audit = r.sinks.audit.Path(), r.sinks.audit.Lost()
	}
	return s
}

// Restart implements control.Source.
func (r reachable) Restart(ctx context.Context, _, reason string) (control.Result, error) {
	begun := time.Now()
	if err := r.proxy.Restart(ctx, supervise.SourceControl, reason); err != nil {
		return control.Result{}, err
	}
	s, err := r.proxy.Status(ctx)
	if err != nil {
		return control.Result{}, err
	}
	return control.Result{Generation: s.Generation, ServerPID: s.ServerPID, TookMS: time.Since(begun).Milliseconds()}, nil
}

// Reload implements control.Source.
func (r reachable) Reload() error {
	return errors.New("there is nothing to reload: only a gateway has a configuration")
}

// Upgrade implements control.Source.
func (r reachable) Upgrade(ctx context.Context) error { return r.proxy.Upgrade(ctx) }

// Log implements control.Source.
func (r reachable) Log(ctx context.Context, _ string, w io.Writer, follow bool) error {
	return copyLog(ctx, w, r.sinks.kept, follow)
}

// copyLog writes the file that keeps a server's stderr to w, and with follow what comes, until ctx ends. A rotation
// on the way begins the new file.
func copyLog(ctx context.Context, w io.Writer, kept *logline.Kept, follow bool) error {
	var f *os.File
	defer func() { closeFile(f) }()
	for {
		if f == nil {
			opened, err := os.Open(kept.Path())
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("read server log: %w", err)
			}
			f = opened
		}
		if f != nil {
			if _, err := io.Copy(w, f); err != nil {
				return fmt.Errorf("copy server log: %w", err)
			}
			if rotated(f, kept.Path()) {
				closeFile(f)
				f = nil
				continue
			}
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
	}
}

// rotated reports whether path is another file by now.
func rotated(f *os.File, path string) bool {
	was, err := f.Stat()
	if err != nil {
		return false
	}
	is, err := os.Stat(path)
	return err == nil && !os.SameFile(was, is)
}

func closeFile(f *os.File) {
	if f != nil {
		_ = f.Close() // only read from
	}
}

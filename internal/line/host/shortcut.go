package host

import (
	"errors"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// shortcut is the way around a launcher. npx asks the registry at each start: a crash would wait for it, fail without it,
// and come back as another version. Once a server is ready its real command is known. Loop goroutine only.
type shortcut struct {
	hidden  bool              // a server that was ready is not seen behind its launcher, if there is one
	off     bool              // there is no launcher, or the real command did not come up without it
	command *launcher.Command // nil: not known yet
}

// commandLine is what a process is started with: the real command if it is known, else as asked. A restart for the sake
// of new code asks the launcher again.
func (h *Host) commandLine(env []string, anew bool) (argv []string, dir string, environ []string, direct bool) {
	c := h.shortcut.command
	if h.shortcut.off || c == nil || anew || c.Gone() {
		return h.opts.Backend.Command, h.opts.Dir, env, false
	}
	return c.Argv, c.Dir, c.Environment(env), true
}

// findShortcut looks for the real command of a server that is ready.
func (h *Host) findShortcut(gen int) {
	s := h.byGen(gen)
	if s == nil {
		return
	}
	s.ready = true
	k := &h.shortcut
	if k.off || s.direct {
		return
	}
	k.command = nil // the launcher may have found another version than before
	go func() {
		c, err := launcher.Resolve(s.process.PID(), s.process.Stdin(), s.process.Stdout())
		if errors.Is(err, launcher.ErrNoServer) {
			select {
			case <-s.left: // it ended after its server
				err = launcher.ErrGone
			case <-time.After(afterServer):
			}
		}
		h.loop.Post(func() {
			if err == nil || !s.ending {
				h.foundShortcut(c, err)
			}
		})
	}()
}

// afterServer is how long a launcher may take to end after its server.
const afterServer = time.Second

func (h *Host) foundShortcut(c launcher.Command, err error) {
	k := &h.shortcut
	switch {
	case errors.Is(err, launcher.ErrGone): // the next one that is ready shows it
	case err == nil:
		k.command = &c
		h.tell(event.LauncherResolved, slog.LevelInfo, "Restarts after a crash will skip the launcher: "+secret.Line(c.Argv),
			slog.Any(event.KeyCommand, secret.Words(c.Argv)))
	case errors.Is(err, launcher.ErrNone):
		k.off, k.hidden = true, true
	default:
		k.off, k.hidden = true, errors.Is(err, launcher.ErrNoServer)
		h.tell(event.LauncherKept, slog.LevelDebug, "The launcher is needed at each start: "+err.Error(), slog.String(event.KeyError, err.Error()))
	}
}

// neverReady gives the shortcut up if s was started by it and does not come up.
func (h *Host) neverReady(s *server) {
	if s != nil && s.direct && !s.ready {
		h.directFailed()
	}
}

// directFailed gives the shortcut up: what it started did not come up.
func (h *Host) directFailed() {
	if h.shortcut.off {
		return
	}
	h.shortcut.off = true
	h.tell(event.LauncherKept, slog.LevelWarn, "The server did not come up without its launcher, which is used again")
}

// tell emits an event of the host's own.
func (h *Host) tell(t event.Type, level slog.Level, message string, attrs ...slog.Attr) {
	h.events.Emit(event.Event{Type: t, Time: time.Now(), Level: level, Message: message, Generation: h.Backend.Generation(), Attrs: attrs})
}

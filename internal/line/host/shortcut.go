package host

import (
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// shortcut is the way around a launcher: npx and its like cost up to a second a start, and stay in memory. Once a server
// behind one is ready its real command is known, and the next start does without the launcher. Loop goroutine only.
type shortcut struct {
	off     bool              // there is no launcher, or the real command did not come up by itself
	command *launcher.Command // nil: not known yet
	looking bool
}

// commandLine is what a process is started with: the real command if it is known and still the same, else as asked. A
// restart for the sake of new code asks the launcher again, unless the version is pinned.
func (h *Host) commandLine(env []string, anew bool) (argv []string, dir string, environ []string, direct bool) {
	c := h.shortcut.command
	if h.shortcut.off || c == nil || !c.Fresh() || anew && c.Version != launcher.Pinned {
		return h.opts.Backend.Command, h.opts.Dir, env, false
	}
	return c.Argv, c.Dir, c.Env.Apply(env), true
}

// findShortcut looks for the real command of a server that is ready.
func (h *Host) findShortcut(gen int) {
	s := h.byGen(gen)
	if s == nil {
		return
	}
	s.ready = true
	k := &h.shortcut
	if k.off || k.looking || k.command != nil && k.command.Fresh() || s.direct {
		return
	}
	asked := h.opts.Backend.Command
	if _, is := launcher.Is(asked); !is {
		k.off = true
		return
	}
	k.looking = true
	go func() {
		c, err := launcher.Resolve(launcher.Request{
			Leader: s.process.PID(), Asked: asked, Env: s.env, Stdin: s.process.Stdin(), Stdout: s.process.Stdout(),
		})
		h.loop.Post(func() {
			k.looking = false
			if err != nil {
				k.off = true
				h.tell(event.LauncherKept, slog.LevelDebug, "The launcher is needed at each start: "+err.Error(),
					slog.String(event.KeyError, err.Error()))
				return
			}
			k.command = &c
			h.tell(event.LauncherResolved, slog.LevelInfo, "Restarts will skip "+string(c.Kind)+": "+secret.Line(c.Argv),
				slog.Any(event.KeyCommand, secret.Words(c.Argv)))
		})
	}()
}

// directFailed gives the shortcut up: what it started ended before it was ready.
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

package backend

import (
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

const (
	// triesTold is how many tries to reach a remote server are told of in full.
	triesTold = 3
	// tryToldEvery is how often a further try is told of: an hour of a server that is away is sixty lines.
	tryToldEvery = time.Minute
)

// reconnects counts the tries to reach a remote server since it last answered, and so keeps the log of its absence short.
type reconnects struct {
	lost int       // connections
	told time.Time // when the last of them was told of
}

// level is the level of an event about the server: of most tries after the first few, that of debugging.
func (r *reconnects) level(now time.Time, t event.Type, level slog.Level) slog.Level {
	switch t {
	case event.ServerReady:
		*r = reconnects{}
	case event.ServerStarting, event.ServerSpawned, event.ServerExited, event.StartTimeout:
		if r.lost >= triesTold {
			return slog.LevelDebug
		}
	case event.ConnectionLost:
		r.lost++
		if r.lost > triesTold && now.Sub(r.told) < tryToldEvery {
			return slog.LevelDebug
		}
		r.told = now
	}
	return level
}

// restarts is how often the server was restarted. A connection that was lost and opened again is no restart.
func (c *core) restarts() int {
	if !c.opts.Remote {
		return c.machine.Restarts()
	}
	n := int64(0)
	for cause, one := range c.tally.restarts {
		if cause != supervise.ProbeExit.String() && cause != supervise.Replace.String() { // they count as nothing there either
			n += one
		}
	}
	return int(n)
}

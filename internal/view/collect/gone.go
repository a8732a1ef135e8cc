package collect

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	// goneFor is how long a server is still shown that is not there any more.
	goneFor = time.Minute
	// returnWithin is how long an outlive may be away while it goes on with a newer program.
	returnWithin = 3 * time.Second
)

// departed is a server that is not there any more.
type departed struct {
	server overview.Server
	at     time.Time
	until  time.Time // it is shown
}

// awaitReturn tells that an outlive was killed: it is not there any more, and has not said that it ends.
func (c *Collector) awaitReturn(ctx context.Context, i control.Instance) {
	if !sleep(ctx, returnWithin) {
		return
	}
	c.mu.Lock()
	back := c.followed[i.Path] != nil
	c.mu.Unlock()
	if !back {
		c.add(overview.Event{
			At: time.Now(), Level: "ERROR", Type: event.ProxyLost, PID: i.PID, Instance: i.Label(),
			Message: "outlive has ended without a word: it was killed, or has crashed",
		}, nil)
	}
}

// seeGone adds the servers that were there a moment ago and are not any more, so that nothing vanishes unseen. Those of a gateway that
// does not answer stay until it does, and as long as all others after that.
func (c *Collector) seeGone(s *overview.State) {
	there := map[string]*overview.Server{}
	for n := range s.Servers {
		there[s.Servers[n].Key] = &s.Servers[n]
	}
	left := map[string]bool{}
	for _, d := range c.gone {
		left[d.server.Key] = true
	}
	if was := c.state.Load(); was != nil {
		for _, one := range was.Servers {
			if there[one.Key] == nil && !one.Gone && !left[one.Key] {
				c.gone = append(c.gone, departed{one, s.At, s.At.Add(goneFor)})
			}
		}
	}
	for n := range c.gone {
		if silent(there[c.gone[n].server.Of]) {
			c.gone[n].until = s.At.Add(goneFor)
		}
	}
	c.gone = slices.DeleteFunc(c.gone, func(d departed) bool { return there[d.server.Key] != nil || s.At.After(d.until) })
	for label, at := range c.killed {
		if s.At.Sub(at) > goneFor {
			delete(c.killed, label)
		}
	}
	list := make([]overview.Server, len(c.gone))
	for n, d := range c.gone {
		list[n] = c.ended(d, there[d.server.Of])
	}
	s.Leave(list)
}

// silent reports whether an outlive does not answer; nil is none.
func silent(of *overview.Server) bool { return of != nil && of.State == control.NoAnswer }

// ended is how a server stands that is not there any more. of is its gateway, or the daemon that has it; nil: that is not there either.
func (c *Collector) ended(d departed, of *overview.Server) overview.Server {
	one := d.server
	one.Since, one.Next, one.InFlight, one.Queued, one.Memory, one.Processes, one.Clients = d.at, time.Time{}, 0, 0, 0, nil, nil
	if silent(of) {
		one.State, one.Health, one.Why = "not known", overview.Unknown, "its outlive does not answer"
		return one
	}
	one.Gone, one.State, one.Health = true, "has ended", overview.Idle
	switch {
	case of == nil:
		one.Why = "its outlive is not there any more"
	case of.State != "serving": // it is ending
		one.Why = "its outlive has it no more"
	case of.Config != "":
		one.Why = "it is not in the configuration any more"
	default:
		one.Why = "no run shares it any more"
	}
	for label := range c.killed {
		if one.Key == label || strings.HasPrefix(one.Key, label+"/") {
			one.Health, one.Why = overview.Bad, "its outlive has ended without a word: it was killed, or has crashed"
		}
	}
	return one
}

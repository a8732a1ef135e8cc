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
	// goneFor is how long a server is still shown whose outlive is not there any more.
	goneFor = time.Minute
	// returnWithin is how long an outlive may be away while it goes on with a newer program.
	returnWithin = 3 * time.Second
)

// departed is a server whose outlive is not there any more.
type departed struct {
	server overview.Server
	at     time.Time
}

// awaitReturn tells that an outlive was killed: it is not there any more, and has not said that it ends.
func (c *Collector) awaitReturn(ctx context.Context, i control.Instance) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(returnWithin):
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

// seeGone adds the servers that were there a moment ago and whose outlive is not there any more, so that nothing vanishes unseen.
func (c *Collector) seeGone(s *overview.State) {
	there := map[string]bool{}
	for _, one := range s.Servers {
		there[one.Key] = true
	}
	if was := c.state.Load(); was != nil {
		for _, one := range was.Servers {
			if !one.Gone && !there[one.Key] {
				c.gone = append(c.gone, departed{one, s.At})
			}
		}
	}
	c.gone = slices.DeleteFunc(c.gone, func(d departed) bool { return there[d.server.Key] || s.At.Sub(d.at) > goneFor })
	for label, at := range c.killed {
		if s.At.Sub(at) > goneFor {
			delete(c.killed, label)
		}
	}
	list := make([]overview.Server, len(c.gone))
	for n, d := range c.gone {
		list[n] = c.ended(d)
	}
	s.Leave(list)
}

// ended is how a server stands whose outlive is not there any more.
func (c *Collector) ended(d departed) overview.Server {
	one := d.server
	one.Gone, one.State, one.Health, one.Since, one.Next = true, "has ended", overview.Idle, d.at, time.Time{}
	one.Why, one.InFlight, one.Queued, one.Memory, one.Processes, one.Clients = "its outlive is not there any more", 0, 0, 0, nil, nil
	for label := range c.killed {
		if one.Key == label || strings.HasPrefix(one.Key, label+"/") {
			one.Health, one.Why = overview.Bad, "its outlive has ended without a word: it was killed, or has crashed"
		}
	}
	return one
}

package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// Remote is another machine, which says by itself how everything stands there and what happens.
type Remote interface {
	// Name is what the machine is called.
	Name() string
	// Follow hands on the lines of "outlive watch --json --state" there until ctx ends or the connection does. Each line is valid
	// until the next one. The error says why it has ended, and word the same for a table; it may have a method Since, if that
	// was earlier.
	Follow(ctx context.Context, each func(line []byte)) (word string, err error)
}

// The pause before a machine that has not answered is tried again, and the longest: each further one is twice as long.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// stateLine is how a line with a snapshot begins.
var stateLine = []byte(`{"state":`)

// stated is such a line.
type stated struct {
	State *overview.Snapshot `json:"state"`
	Last  bool               `json:"last,omitempty"` // of a machine that does not answer: it is shown as that
}

// StateLine is the line with a snapshot. last says that the machine does not answer any more.
func StateLine(s overview.Snapshot, last bool) ([]byte, error) {
	line, err := json.Marshal(stated{&s, last})
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return line, nil
}

// join adds a machine, if there is none of that name, and follows it until ctx ends.
func (c *Collector) join(ctx context.Context, r Remote) {
	c.mu.Lock()
	n := len(c.machines)
	known := slices.ContainsFunc(c.machines, func(m overview.Machine) bool { return m.Name == r.Name() })
	if !known {
		c.machines = append(c.machines, overview.Machine{Name: r.Name(), Word: "connecting", Since: time.Now()})
	}
	c.mu.Unlock()
	if !known {
		c.done.Go(func() { c.followRemote(ctx, n, r) })
	}
}

// followRemote follows a machine until ctx ends.
func (c *Collector) followRemote(ctx context.Context, n int, r Remote) {
	pause := firstPause
	for {
		f := following{c: c, n: n, host: r.Name()}
		word, err := r.Follow(ctx, f.line)
		if ctx.Err() != nil {
			return
		}
		if f.answered {
			pause = firstPause
		}
		c.lost(n, word, err)
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// lost notes that a machine does not answer, and why.
func (c *Collector) lost(n int, word string, err error) {
	c.mu.Lock()
	m := &c.machines[n]
	news := m.Answers || m.Why == ""
	if news {
		m.Since = time.Now()
	}
	m.Answers, m.Word, m.Why = false, word, "it has ended"
	var lasts interface{ Since() time.Time }
	if news && errors.As(err, &lasts) && !lasts.Since().IsZero() {
		m.Since = lasts.Since()
	}
	if err != nil {
		m.Why = err.Error()
	}
	e := hostEvent(m.Name, event.HostLost, "WARNING", word+": "+strings.ReplaceAll(m.Why, "\n", "; "))
	c.mu.Unlock()
	if news {
		c.add(e, nil)
		c.LookSoon()
	}
}

func hostEvent(host string, t event.Type, level, message string) overview.Event {
	return overview.Event{At: time.Now(), Level: level, Type: t, Host: host, Message: message}
}

// following is one connection to a machine.
type following struct {
	c        *Collector
	n        int
	host     string
	answered bool
	changed  bool // something has happened since the last snapshot
}

// line takes what the machine says. What is not understood is passed over: another version may say it.
func (f *following) line(line []byte) {
	if bytes.HasPrefix(line, stateLine) {
		var l stated
		err := hosts.Decode(line, &l)
		if errors.Is(err, hosts.ErrTooMuch) {
			f.answered = false // the next one that can be read connects it
			f.c.lost(f.n, hosts.Unreadable.Word(), fmt.Errorf("%w: outlive dashboard on that machine shows it", err))
			return
		}
		var other *json.UnmarshalTypeError // all else is read
		if l.State == nil || err != nil && !errors.As(err, &other) {
			return
		}
		if err != nil {
			l.State.Trouble = append(l.State.Trouble, "outlive there is another version, and not all that it says is understood: "+err.Error())
		}
		if l.Last {
			f.c.remember(f.n, *l.State)
			return
		}
		f.snapshot(*l.State)
		return
	}
	if e, err := overview.ParseEvent(line); err == nil && e.Type != "" {
		f.changed = true
		f.c.add(f.placed(e), line)
	}
}

// remember takes how everything stood on a machine that does not answer.
func (c *Collector) remember(n int, s overview.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Events = nil
	c.machines[n].Seen, c.machines[n].Heard = s, s.At
}

// placed says where an event was.
func (f *following) placed(e overview.Event) overview.Event {
	e.Host = f.host
	if e.Instance != "" {
		e.Instance = f.host + "/" + e.Instance
	}
	if e.Agent != "" {
		e.Agent = f.host + "/" + e.Agent
	}
	return e
}

// snapshot takes how everything stands there. The first one has the past, if it was asked for.
func (f *following) snapshot(s overview.Snapshot) {
	c := f.c
	first := !f.answered
	f.answered = true
	c.mu.Lock()
	m := &c.machines[f.n]
	if first {
		m.Since = time.Now()
		m.Versions = otherVersion(s.Version, c.opts.Version)
		if c.opts.History && s.Events != nil {
			c.events = slices.DeleteFunc(c.events, func(e overview.Event) bool { return e.Host == f.host && !aboutHost(e.Type) })
			for _, e := range slices.Backward(s.Events) {
				c.events = append(c.events, f.placed(e))
			}
			c.events = c.events[max(0, len(c.events)-eventsKept):]
			c.memory.Forget()
		}
	}
	s.Events = nil
	m.Seen, m.Heard, m.Answers, m.Word, m.Why = s, time.Now(), true, "", ""
	text := "connected"
	if m.Versions != "" {
		text += "; " + m.Versions
	}
	c.mu.Unlock()
	if first {
		c.add(hostEvent(f.host, event.HostConnected, "INFO", text), nil)
	}
	if first || f.changed {
		c.LookSoon()
	}
	f.changed = false
}

func aboutHost(t event.Type) bool { return t == event.HostConnected || t == event.HostLost }

// otherVersion says that versions differ; "": they do not, or are not known.
func otherVersion(there, here string) string {
	if there == "" || here == "" || there == here {
		return ""
	}
	return fmt.Sprintf("outlive is %s there, and %s here", there, here)
}

package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/stateversion"
	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
)

// Agents are those of this machine.
type Agents interface {
	// Carry does what a command says if the agent has that incarnation, and makes the next. The comparison and the next
	// incarnation are one step, which is on disk before anything is done. From then on, until it is known whether that has helped,
	// the agent is not reported as in trouble. text says what was done, for people.
	//
	// The error wraps ErrChanged if the agent has another incarnation, ErrRefused if it cannot be done; nothing was done then. After
	// any other error it may have been. A command that comes again, by its ID, is not done again; the answer may then be that of the
	// first time, or ErrChanged.
	Carry(ctx context.Context, c Command) (text string, err error)
}

// What Carry says about a command that was not carried out.
var (
	ErrChanged = errors.New("the agent has changed since this was decided")
	ErrRefused = errors.New("it cannot be done")
)

// repliesKept is how many replies are remembered: more than are sent while one command is still tried.
const repliesKept = 1000

// format is the version of the file.
const format = 1

// state is the file: the terms obeyed last, by lease, and the last replies, the oldest first.
type state struct {
	Version int                   `json:"version"`
	Obeyed  map[string]lease.Term `json:"obeyed"`
	Replies []remembered          `json:"replies"`
}

type remembered struct {
	ID    string `json:"id"`
	Reply Reply  `json:"reply"`
}

// Gate decides whether this machine obeys. Its methods may be called by any goroutine.
type Gate struct {
	path   string
	agents Agents

	mu    sync.Mutex // of what follows, and of the file; Agents is not called while it is held
	state state
	busy  map[string]chan struct{} // commands that are being carried out; closed when they have been
}

// Open reads what was obeyed before from a file, whose directory exists. A file that cannot be read is an error: without it an
// old command could be obeyed. One process at a time may have it open.
func Open(path string, agents Agents) (*Gate, error) {
	g := &Gate{path: path, agents: agents, state: state{Version: format, Obeyed: map[string]lease.Term{}}, busy: map[string]chan struct{}{}}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return g, nil
	case err != nil:
		return nil, fmt.Errorf("what was obeyed before: %w", err)
	}
	if err := json.Unmarshal(text, &g.state); err != nil {
		return nil, fmt.Errorf("what was obeyed before: %s: %w; move the file away if no other machine commands this one now", path, err)
	}
	if err := stateversion.Check(path, g.state.Version, format); err != nil {
		return nil, err
	}
	if g.state.Obeyed == nil {
		g.state.Obeyed = map[string]lease.Term{}
	}
	return g, nil
}

// Serve obeys what comes to this machine over the bus, until stop is called.
func (g *Gate) Serve(bus interface {
	Serve(address string, h engine.Handler) (stop func(), err error)
}, host string) (stop func(), err error) {
	return bus.Serve(Address(host), func(ctx context.Context, request []byte) []byte {
		var c Command
		reply := Reply{Outcome: Refused, Text: "this is no command of a fleet"}
		if json.Unmarshal(request, &c) == nil {
			reply = g.Do(ctx, c)
		}
		answer, err := json.Marshal(reply)
		if err != nil {
			panic(err) // texts and a number
		}
		return answer
	})
}

// Do obeys a command, or says why not.
func (g *Gate) Do(ctx context.Context, c Command) Reply {
	switch {
	case c.Verb == Ping:
		return Reply{Outcome: Done}
	case c.ID == "" || c.Agent == "" || c.Incarnation == "":
		return Reply{Outcome: Refused, Text: "the command lacks its id, its agent, or the incarnation that it was decided on"}
	}
	reply, done := g.admit(ctx, c)
	if done == nil {
		return reply
	}
	text, err := g.agents.Carry(ctx, c)
	return g.finish(c, replyOf(text, err), done)
}

func replyOf(text string, err error) Reply {
	switch {
	case err == nil:
		return Reply{Outcome: Done, Text: text}
	case errors.Is(err, ErrChanged):
		return Reply{Outcome: Changed, Text: err.Error()}
	case errors.Is(err, ErrRefused):
		return Reply{Outcome: Refused, Text: err.Error()}
	}
	return Reply{Outcome: Unsure, Text: err.Error()}
}

// admit answers a command, or lets it through: then done is to be closed.
func (g *Gate) admit(ctx context.Context, c Command) (reply Reply, done chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.busy[c.ID] != nil { // it was sent again, and the first one is not done
		first := g.busy[c.ID]
		g.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-first:
		}
		g.mu.Lock()
		if ctx.Err() != nil {
			return Reply{Outcome: Unsure}, nil
		}
	}
	if i := slices.IndexFunc(g.state.Replies, func(r remembered) bool { return r.ID == c.ID }); i >= 0 {
		return g.state.Replies[i].Reply, nil
	}
	if reply, ok := g.fence(c.Term); !ok {
		return reply, nil
	}
	done = make(chan struct{})
	g.busy[c.ID] = done
	return Reply{}, done
}

// fence reports whether a term may be obeyed, and writes down that it is. The lock is held.
func (g *Gate) fence(t lease.Term) (Reply, bool) {
	if t == (lease.Term{}) {
		return Reply{}, true
	}
	last := g.state.Obeyed[t.Lease]
	switch {
	case t == last:
		return Reply{}, true
	case t.Epoch <= last.Epoch:
		return Reply{Outcome: Stale, Floor: last.Epoch, Text: fmt.Sprintf("epoch %d of %s was obeyed", last.Epoch, last.Holder)}, false
	}
	g.state.Obeyed[t.Lease] = t
	if err := g.write(); err != nil {
		g.state.Obeyed[t.Lease] = last
		return Reply{Outcome: Refused, Text: err.Error()}, false
	}
	return Reply{}, true
}

// finish remembers the reply. One that cannot be written down is remembered while the process lives: sent again after that, the
// command finds another incarnation.
func (g *Gate) finish(c Command, reply Reply, done chan struct{}) Reply {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.busy, c.ID)
	close(done)
	if reply.Outcome == Unsure {
		return reply
	}
	g.state.Replies = append(g.state.Replies, remembered{c.ID, reply})
	if extra := len(g.state.Replies) - repliesKept; extra > 0 {
		g.state.Replies = slices.Delete(g.state.Replies, 0, extra)
	}
	if err := g.write(); err != nil {
		reply.Text += " (" + err.Error() + ")"
	}
	return reply
}

func (g *Gate) write() error {
	text, err := json.Marshal(g.state)
	if err == nil {
		err = atomicfile.WriteDurably(g.path, text)
	}
	if err != nil {
		return fmt.Errorf("what is obeyed cannot be written down: %w", err)
	}
	return nil
}

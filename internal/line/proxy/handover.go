package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
)

// Saved is what survives of a proxy in another image of this program, executed in place of this one, in a form that can be
// kept as JSON: the client's session, and its two descriptors.
type Saved struct {
	Session session.Record
	In, Out int      // descriptors
	Held    [][]byte // lines of the client that came while the upgrade waited
}

// Descriptors are those that the next image needs: they must be made inheritable.
func (s *Saved) Descriptors() []int { return []int{s.In, s.Out} }

const (
	// handoverRetry is how soon a handover is tried again that was not possible.
	handoverRetry = 5 * time.Millisecond
	// holdFor is how long new requests are held back so that those in flight can finish. Then they go on for as long,
	// before the next try. While the server ends, it is twice as long.
	holdFor = 3 * time.Second
)

// ErrNoHandover wraps the reason why a proxy cannot be handed over.
var ErrNoHandover = errors.New("no quiet moment")

// handover is an upgrade that waits for its moment.
type handover struct {
	holding bool      // new requests are held back
	until   time.Time // when that begins or ends
	resting bool      // the server was told to sleep
	lines   [][]byte  // held back
	size    int       // bytes of lines
}

// HandOver waits for a quiet moment, in which nothing is in flight in either direction, has the server end, and gives what must
// survive to exec, on the loop's goroutine. exec does not return if it succeeds. If it fails, or ctx ends before there was such
// a moment, everything goes on. Any goroutine, one at a time.
func (p *Proxy) HandOver(ctx context.Context, exec func(*Saved) error) error {
	if !lineloop.HandsOver {
		return errors.ErrUnsupported
	}
	began := time.Now()
	defer p.loop.Post(p.goOn)
	for {
		var why string
		var err error
		if e := p.onLoop(func() { why, err = p.tryHandOver(exec) }); e != nil {
			return e
		}
		if why == "" {
			return err
		}
		select {
		case <-time.After(handoverRetry):
		case <-p.host.Ended():
			return ErrEnded
		case <-ctx.Done():
			return fmt.Errorf("%w within %s: %s; nothing has changed, try again later", ErrNoHandover,
				time.Since(began).Round(100*time.Millisecond), why)
		}
	}
}

// onLoop runs fn on the loop's goroutine and returns when it has.
func (p *Proxy) onLoop(fn func()) error {
	done := make(chan struct{})
	p.loop.Post(func() {
		defer close(done)
		fn()
	})
	select {
	case <-done:
		return nil
	case <-p.host.Ended():
		return ErrEnded
	}
}

// tryHandOver goes one step towards a handover, or hands over if that is possible now. It says why it was not.
func (p *Proxy) tryHandOver(exec func(*Saved) error) (why string, err error) {
	b, h, now := p.host.Backend, &p.handover, time.Now()
	if why := p.busy(); why != "" {
		switch {
		case h.resting && now.Before(h.until):
			h.holding = true
		case b.Restarting(): // holding back does not help
			h.holding = false
		case !now.Before(h.until):
			h.holding, h.until = !h.holding, now.Add(holdFor)
		}
		p.release()
		return why, nil
	}
	h.holding = true
	switch {
	case !b.Asleep():
		h.resting, h.until = true, now.Add(2*holdFor)
		b.Rest(now, "outlive is being upgraded")
		return "the server is ending", nil
	case !p.host.Alone():
		return "the server is ending", nil
	}
	p.host.Quiet()
	return "", exec(&Saved{Session: b.Record(), In: p.in.FD(), Out: p.client.FD(), Held: h.lines})
}

// busy says what is under way, "" if nothing is.
func (p *Proxy) busy() string {
	switch quiet := p.loop.Quiet(); {
	case !p.in.Whole():
		return "the client is in the middle of a line"
	case p.client.Pending() > 0:
		return "the client does not read"
	case !quiet:
		return "something has just happened"
	}
	return p.host.Backend.Busy()
}

// goOn takes back what a handover that has failed has done.
func (p *Proxy) goOn() {
	resting := p.handover.resting
	p.handover.holding = false
	p.release()
	p.handover = handover{}
	if resting {
		p.host.Backend.Wake(time.Now())
	}
}

// clientLine takes a line of the client.
func (p *Proxy) clientLine(line []byte) {
	if p.handover.holding && p.handover.holds(line) {
		return
	}
	p.host.Backend.ClientLine(p.loop.Now(), line)
}

// release lets what was held back go on, unless it is to be held.
func (p *Proxy) release() {
	if p.handover.holding {
		return
	}
	lines := p.handover.lines
	p.handover.lines, p.handover.size = nil, 0
	for _, line := range lines {
		p.host.Backend.ClientLine(p.loop.Now(), line)
	}
}

// holds keeps a line that begins something, and what follows on it, and reports whether it did. What calls in flight need
// to come to their end goes on: answers, progress, and cancellations, which are repeated behind what is held.
func (h *handover) holds(line []byte) bool {
	var env jsonrpc.Envelope
	begins := true
	if env.Scan(line) == nil {
		switch m := mcp.Lookup(env.Method.Of(line)); {
		case env.Kind == jsonrpc.Response || env.Kind == jsonrpc.ErrorResponse || m == mcp.NoteProgress || m == mcp.Ping:
			return false
		case env.Kind == jsonrpc.Notification:
			begins = m != mcp.NoteCancelled
			if len(h.lines) == 0 {
				return false
			}
		}
	}
	h.lines, h.size = append(h.lines, bytes.Clone(line)), h.size+len(line)
	return begins
}

// Resume prepares a proxy that goes on where the one that was saved stood, in the same process. opts.In and opts.Out are
// not used. Nothing moves before [Proxy.Run].
func Resume(opts Options, saved *Saved) (*Proxy, error) {
	opts.In, opts.Out = lineloop.Reopen(saved.In, "stdin"), lineloop.Reopen(saved.Out, "stdout")
	p, err := New(opts)
	if err != nil {
		return nil, err
	}
	p.begin = func(now time.Time) {
		p.host.Backend.Resume(now, saved.Session)
		for _, line := range saved.Held {
			p.host.Backend.ClientLine(now, line)
		}
	}
	return p, nil
}

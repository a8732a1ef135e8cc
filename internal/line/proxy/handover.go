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

// Saved is the state of a proxy that is passed to another image of this program, executed in place of this one: the
// client's session, and its two descriptors. It can be encoded as JSON.
type Saved struct {
	Session session.Record
	In, Out int      // descriptors, which must be made inheritable
	Held    [][]byte // lines of the client that were held back during the upgrade
}

const (
	// handoverRetry is the interval of attempts at a handover.
	handoverRetry = 5 * time.Millisecond
	// holdFor is how long new requests are held back so that those in flight can finish. Then they pass for as long,
	// before the next try. While the server ends, it is twice as long.
	holdFor = 3 * time.Second
)

// ErrNoHandover wraps the reason why a proxy cannot be handed over.
var ErrNoHandover = errors.New("no quiet moment")

// handover is the state of a requested upgrade.
type handover struct {
	holding bool      // new requests are held back
	until   time.Time // when the present phase of holding back, or of passing, ends
	resting bool      // the server was asked to end
	lines   [][]byte  // the lines that are held back
	size    int       // bytes of lines
}

// HandOver waits for a moment in which nothing is in flight in either direction, ends the server if it runs, and passes
// the saved state to exec, on the loop's goroutine. exec does not return if it succeeds. If it fails, or ctx ends first,
// the proxy continues. Any goroutine, one at a time.
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
	_, err := lineloop.Ask(context.Background(), p.loop, p.host.Ended(), ErrEnded, func() any { fn(); return nil })
	return err
}

// tryHandOver takes one step towards a handover, or hands over if that is possible now. It says why it was not.
func (p *Proxy) tryHandOver(exec func(*Saved) error) (why string, err error) {
	b, h, now := p.host.Backend, &p.handover, time.Now()
	if why := p.busy(); why != "" {
		switch {
		case h.resting && now.Before(h.until):
			h.holding = true
		case b.Restarting(): // holding back does not help then
			h.holding = false
		case !now.Before(h.until):
			h.holding, h.until = !h.holding, now.Add(holdFor)
		}
		p.release()
		return why, nil
	}
	h.holding = true
	switch {
	case !b.Asleep() && !(b.Down() && h.resting): // where nothing runs a bridge has to rest all the same
		h.resting, h.until = true, now.Add(2*holdFor)
		b.Rest(now, "outlive is being upgraded")
		return "the server is ending", nil
	case !p.host.Alone():
		return "the server is ending", nil
	}
	p.host.Quiet()
	return "", exec(&Saved{Session: b.Record(), In: p.in.FD(), Out: p.client.FD(), Held: h.lines})
}

// busy says what is in progress, or "".
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

// goOn undoes the steps of a handover that has failed.
func (p *Proxy) goOn() {
	resting := p.handover.resting
	p.handover.holding = false
	p.release()
	p.handover = handover{}
	if resting {
		p.host.Backend.Wake(time.Now())
	}
}

// clientLine handles a line of the client.
func (p *Proxy) clientLine(line []byte) {
	if p.handover.holding && p.handover.holds(line) {
		return
	}
	p.host.Backend.ClientLine(p.loop.Now(), line)
}

// release sends the lines that were held back, unless new ones are still to be held.
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

// holds keeps a line that begins something, and lines that belong to it, and reports whether it did. What calls in
// flight need to finish passes: answers, progress, and cancellations, which are also repeated after the held lines.
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

// Resume prepares a proxy that continues from a saved state, in the same process. opts.In and opts.Out are not used.
// Nothing is read or written before [Proxy.Run].
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

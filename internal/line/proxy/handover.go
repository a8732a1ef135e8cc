package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/host"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
)

// Saved is a running proxy in a form that can be kept as JSON. Another image of this program, executed in place of this
// one, goes on with it: the process is the same, and so are the client, the server and every byte between them.
type Saved struct {
	At  time.Time // when it was saved
	In  lineloop.SavedSource
	Out lineloop.SavedSink
	host.Saved
}

// Descriptors are those that the next image needs: they must be made inheritable.
func (s *Saved) Descriptors() []int {
	return append([]int{s.In.FD, s.Out.FD}, s.Saved.Descriptors()...)
}

// handoverRetry is how soon a handover is tried again that was not possible.
const handoverRetry = 5 * time.Millisecond

// ErrNoHandover wraps the reason why a proxy cannot be handed over, or not yet.
var ErrNoHandover = errors.New("no moment for it")

// HandOver saves the proxy as soon as its server serves alone, and gives it to exec, on the loop's goroutine, while
// nothing moves. exec does not return if it succeeds. If it fails, or ctx ends before there is a moment for it, everything
// goes on as before. Requests in flight are not waited for. Any goroutine.
func (p *Proxy) HandOver(ctx context.Context, exec func(*Saved) error) error {
	if !lineloop.HandsOver {
		return errors.ErrUnsupported
	}
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
			p.loop.Post(func() { p.host.Backend.AbandonHandover(time.Now()) })
			return fmt.Errorf("%w: %s", ErrNoHandover, why)
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

// tryHandOver hands over if that is possible now; otherwise it says why not.
func (p *Proxy) tryHandOver(exec func(*Saved) error) (why string, err error) {
	quiet := func() bool { return p.loop.Quiet() && !p.clientGone }
	return p.host.HandOver(quiet, func(h *host.Saved) error {
		return exec(&Saved{At: time.Now().Round(0), In: p.in.Save(), Out: p.client.Save(), Saved: *h})
	})
}

// Resume prepares a proxy that goes on where the one that was saved stood, in the same process. opts.In and opts.Out are
// not used. Nothing moves before [Proxy.Run].
func Resume(opts Options, saved *Saved) (*Proxy, error) {
	rebase(saved, saved.At, time.Now())
	opts.In, opts.Out = lineloop.Reopen(saved.In.FD, "stdin"), lineloop.Reopen(saved.Out.FD, "stdout")
	p, err := New(opts)
	if err != nil {
		return nil, err
	}
	begin, err := p.host.Resume(&saved.Saved)
	if err != nil {
		return nil, err
	}
	p.begin = func(now time.Time) {
		p.client.Resume(saved.Out)
		p.in.Resume(saved.In)
		begin(now)
	}
	return p, nil
}

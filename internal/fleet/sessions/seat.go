package sessions

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
)

// Owner is a gateway process, for one time with its lease. The zero value is nobody.
type Owner struct {
	// At is the address where it takes what other gateways pass on: its lease is called by it. "": it is a core of an older outlive.
	At string `json:"at,omitempty"`
	// Holder and Epoch are those of the lease.
	Holder string `json:"holder,omitempty"`
	Epoch  uint64 `json:"epoch,omitempty"`
}

// term is the owner's time with its lease.
func (o Owner) term(gateway string) lease.Term {
	return lease.Term{Lease: leaseOf(gateway, o.At), Holder: o.Holder, Epoch: o.Epoch}
}

// leaseOf is the name of the lease of a gateway's process at an address; "": of its core, in an older outlive. It is one token of a key,
// which is what machines may write.
func leaseOf(gateway, at string) string {
	if at == "" {
		return "gateway/" + gateway
	}
	return "gateway/" + gateway + ":" + at
}

// leaseOptions are those of these leases. Clients wait for the end of one, so it is shorter than the default; it outlasts an election of
// the engine (4 to 9 s).
func leaseOptions() lease.Options {
	return lease.Options{TTL: 20 * time.Second, Renew: 4 * time.Second, Skew: 3 * time.Second}
}

// tellAfter is how long a lease may take to be had until people are told.
const tellAfter = 5 * time.Second

// SeatOptions are a seat's.
type SeatOptions struct {
	// Gateway is the gateway's name in the registry: all that are equal have the same.
	Gateway string
	// At is where this process takes what others pass on. No other one is there: it is bound to it.
	At string
	// Last is the holder of the lease that a process at this address had, which has ended. "": there was none. Its lease is taken at once.
	Last string
	// Up is a clock that goes on while the machine sleeps. nil: one that may stand still.
	Up func() time.Duration
	// Tell is called, by one goroutine, with the holder when sessions can be had here, and with why not when that is over, or takes long at
	// first. The lease is not asked for again before it has returned.
	Tell func(holder string, why error)
}

// errNoTime is why a gateway without a lease has no sessions.
var errNoTime = errors.New("this gateway waits for the fleet")

// Seat is the lease of a gateway process, which is taken again whenever it was lost.
type Seat struct {
	from  lease.Registry
	opts  SeatOptions
	held  atomic.Pointer[lease.Held] // nil: not yet
	end   context.CancelFunc
	ended chan struct{}
}

// TakeSeat returns a seat that is waited for.
func TakeSeat(from lease.Registry, opts SeatOptions) *Seat {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Seat{from: from, opts: opts, end: cancel, ended: make(chan struct{})}
	go s.sit(ctx)
	return s
}

func (s *Seat) sit(ctx context.Context) {
	defer close(s.ended)
	opts := leaseOptions()
	opts.Holder, opts.Up = s.opts.Last, s.opts.Up
	for told := false; ; told = true {
		held := s.acquire(ctx, opts, told)
		if held == nil {
			return
		}
		term, err := held.Term()
		if err == nil {
			s.held.Store(held)
			opts.Holder = term.Holder
			s.opts.Tell(term.Holder, nil)
		}
		<-held.Context().Done()
		why := context.Cause(held.Context())
		if ctx.Err() != nil || errors.Is(why, lease.ErrReleased) {
			return
		}
		s.opts.Tell("", why)
	}
}

// acquire waits for the lease, and tells why if that takes long, unless it was told why there is none. nil: ctx has ended.
func (s *Seat) acquire(ctx context.Context, opts lease.Options, told bool) *lease.Held {
	name := leaseOf(s.opts.Gateway, s.opts.At)
	got := make(chan *lease.Held, 1)
	go func() {
		held, _ := lease.Acquire(ctx, s.from, name, s.opts.At, opts) // the error is ctx's
		got <- held
	}()
	late := time.NewTimer(tellAfter)
	defer late.Stop()
	if told {
		late.Stop()
	}
	for {
		select {
		case held := <-got:
			return held
		case <-late.C:
			if why := s.absent(ctx, name); ctx.Err() == nil {
				s.opts.Tell("", why)
			}
		}
	}
}

// absent is why the lease is not ours.
func (s *Seat) absent(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if _, err := s.from.Get(ctx, lease.Key(name)); err != nil && !errors.Is(err, engine.ErrNotFound) {
		return fmt.Errorf("the fleet cannot be asked: %w", err)
	}
	return fmt.Errorf("another process has the lease of %s, or has had it until a moment ago", s.opts.At)
}

// Owner is this process, for its time now. The error says that it has none. It looks at the clock: after the process was stopped for
// a while it knows before Tell is called.
func (s *Seat) Owner() (Owner, error) {
	held := s.held.Load()
	if held == nil {
		return Owner{}, errNoTime
	}
	term, err := held.Term()
	return Owner{At: s.opts.At, Holder: term.Holder, Epoch: term.Epoch}, err
}

// End gives the time back, so that others can go on with its sessions at once. Within ctx the registry is told. A lease that is just being had
// is not given back: nobody has sessions by it, and who takes this address next waits for its TTL.
func (s *Seat) End(ctx context.Context) {
	if held := s.held.Load(); held != nil {
		_ = held.Release(ctx) // without it others wait until the time ends by itself
	}
	s.end()
	<-s.ended
}

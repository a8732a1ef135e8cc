package replica

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
)

// Path is where a core takes the attendance of its replicas.
const Path = "/replica"

// attendant names the replica that attends.
const attendant = "Outlive-Replica"

// idleConnection is how long a replica keeps an unused connection to the core; streamhttp keeps them longer.
const idleConnection = 90 * time.Second

// Attendant is a replica as the core knows it.
type Attendant struct {
	URL     string `json:"url"` // where it takes clients
	PID     int    `json:"pid"`
	Version string `json:"version"` // of outlive
	// Address is that of its machine as the core sees it; "": it is the core's.
	Address string `json:"address,omitempty"`
}

// Options are a replica's settings.
type Options struct {
	Me Attendant
	// Dial connects to the core, and starts one if there is none.
	Dial func(context.Context) (net.Conn, error)
	// Reload reads the configuration again. The core asks for it.
	Reload func()
	// Tell is called when the core cannot be reached, with why, and with nil when it can be again. Once for each change: an error that
	// wraps ErrSecret is another one.
	Tell func(error)
	// Patience is how long a request waits for a core that cannot be reached, until it is in attendance there again. 0: not at all, as
	// with a Dial that starts a core.
	Patience time.Duration
	// Silence is how long a core may say nothing, not even that it lives: then it counts as lost, and connections to it are closed. The
	// system of a process that is stopped goes on acknowledging what is sent. 0: for ever.
	Silence time.Duration
}

// standing is how a replica stands with its core. Attend changes it.
type standing uint8

const (
	coming  standing = iota // nothing is known yet
	present                 // in attendance
	lost                    // the core cannot be reached
	refused                 // it has another secret
)

// Replica is a gateway's connection to its core. Forward may be called from any goroutine.
type Replica struct {
	opts      Options
	transport *http.Transport
	conns     connections

	mu      sync.Mutex
	stands  standing
	why     error         // of lost and refused
	changed chan struct{} // closed with the next change of these
}

// New returns a replica. Nothing is connected yet.
func New(opts Options) *Replica {
	r := &Replica{opts: opts, changed: make(chan struct{})}
	r.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := opts.Dial(ctx)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", streamhttp.ErrNotSent, err)
			}
			return r.conns.add(conn), nil
		},
		MaxIdleConnsPerHost: 1 << 10, IdleConnTimeout: idleConnection, DisableCompression: true,
	}
	return r
}

// Forward implements streamhttp.Options.Forward.
func (r *Replica) Forward(out *http.Request) (*http.Response, error) {
	limit := time.NewTimer(r.opts.Patience)
	defer limit.Stop()
	for {
		resp, err := r.ForwardNow(out)
		if r.opts.Patience == 0 || !errors.Is(err, streamhttp.ErrNotSent) || errors.Is(err, ErrSecret) {
			return resp, err
		}
		if !r.awaitCore(out.Context(), limit.C) {
			return nil, err
		}
		if out.GetBody != nil {
			out = out.Clone(out.Context())
			if out.Body, err = out.GetBody(); err != nil { // not reached: it is in memory
				return nil, err
			}
		}
	}
}

// ForwardNow is Forward for a request that is not to wait for a core which is known to be away.
func (r *Replica) ForwardNow(out *http.Request) (*http.Response, error) {
	if r.opts.Patience > 0 {
		if stands, _, why := r.state(); stands == lost || stands == refused {
			return nil, fmt.Errorf("%w: %w", streamhttp.ErrNotSent, why)
		}
	}
	return r.transport.RoundTrip(out)
}

// awaitCore waits until the replica is in attendance again. A core that has just ended may be away although that is not known yet.
func (r *Replica) awaitCore(ctx context.Context, limit <-chan time.Time) bool {
	const soon = again / 10
	pause := time.NewTimer(soon)
	defer pause.Stop()
	for next := pause.C; ; next = nil {
		stands, changed, _ := r.state()
		if next == nil && stands != lost {
			return true // or refused, which is not waited for
		}
		select {
		case <-next:
		case <-changed:
		case <-limit:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

func (r *Replica) state() (standing, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stands, r.changed, r.why
}

// stand notes how it is now, and tells of a change.
func (r *Replica) stand(is standing, why error) {
	r.mu.Lock()
	was := r.stands
	r.stands, r.why = is, why
	if is != was {
		close(r.changed)
		r.changed = make(chan struct{})
	}
	r.mu.Unlock()
	if is != was && !(was == coming && is == present) {
		r.opts.Tell(why)
	}
}

// Close closes connections that are not in use.
func (r *Replica) Close() { r.transport.CloseIdleConnections() }

// again is the longest time between two attempts to reach the core.
const again = time.Second

// Attend is in attendance at the core until ctx is done. It comes back whenever the core has ended.
func (r *Replica) Attend(ctx context.Context) {
	for wait := time.Millisecond; ctx.Err() == nil; {
		start := time.Now()
		err := r.attend(ctx, func() { r.stand(present, nil) })
		if time.Since(start) >= again { // a core that is ending may let us in again and again
			wait = time.Millisecond
		}
		switch {
		case err == nil, ctx.Err() != nil:
		case errors.Is(err, ErrSecret):
			r.stand(refused, err)
		default:
			r.stand(lost, err)
		}
		pause := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
		wait = min(2*wait, again)
	}
}

// attend is in attendance once, until the core ends it. here is called when the core has taken it; if that does not come, there is an error.
func (r *Replica) attend(ctx context.Context, here func()) error {
	me, err := json.Marshal(r.opts.Me)
	if err != nil { // not reached: there are only texts and numbers
		return err
	}
	ctx, silent := context.WithCancelCause(ctx)
	defer silent(nil)
	limit := r.listen(silent)
	defer limit.stop()
	ask, err := http.NewRequestWithContext(limit.traced(ctx), http.MethodGet, "http://core"+Path, nil)
	if err != nil { // not reached
		return err
	}
	ask.Header.Set(attendant, string(me))
	resp, err := r.transport.RoundTrip(ask)
	if err != nil {
		return limit.orSilent(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New("the core answers " + resp.Status)
	}
	limit.stop() // until it has said that it lives: an older core never does
	here()
	for said := bufio.NewScanner(resp.Body); said.Scan(); {
		switch said.Text() {
		case reload:
			r.opts.Reload()
		case beat:
			limit.heard()
		}
	}
	return limit.orSilent(ctx, nil)
}

// The lines that a core writes to its replicas: that they are to read the configuration again, and that it lives, each beatEvery.
const (
	reload    = "reload"
	beat      = "beat"
	beatEvery = 5 * time.Second
)

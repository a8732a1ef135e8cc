package replica

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
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
}

// Options are a replica's settings.
type Options struct {
	Me Attendant
	// Dial connects to the core, and starts one if there is none.
	Dial func(context.Context) (net.Conn, error)
	// Reload reads the configuration again. The core asks for it.
	Reload func()
	// Tell is called when the core cannot be reached, with why, and with nil when it can be again. Once for each change.
	Tell func(error)
}

// Replica is a gateway's connection to its core. Forward may be called from any goroutine.
type Replica struct {
	opts      Options
	transport *http.Transport
}

// New returns a replica. Nothing is connected yet.
func New(opts Options) *Replica {
	return &Replica{opts, &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := opts.Dial(ctx)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", streamhttp.ErrNotSent, err)
			}
			return conn, nil
		},
		MaxIdleConnsPerHost: 1 << 10, IdleConnTimeout: idleConnection, DisableCompression: true,
	}}
}

// Forward implements streamhttp.Options.Forward.
func (r *Replica) Forward(out *http.Request) (*http.Response, error) {
	return r.transport.RoundTrip(out)
}

// Close closes connections that are not in use.
func (r *Replica) Close() { r.transport.CloseIdleConnections() }

// again is the longest time between two attempts to reach the core.
const again = time.Second

// Attend is in attendance at the core until ctx is done. It comes back whenever the core has ended.
func (r *Replica) Attend(ctx context.Context) {
	failing := false
	for wait := time.Millisecond; ctx.Err() == nil; {
		start := time.Now()
		err := r.attend(ctx, func() {
			if failing {
				failing = false
				r.opts.Tell(nil)
			}
		})
		if time.Since(start) >= again { // a core that is ending may let us in again and again
			wait = time.Millisecond
		}
		if err != nil && ctx.Err() == nil && !failing {
			failing = true
			r.opts.Tell(err)
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
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://core"+Path, nil)
	if err != nil { // not reached
		return err
	}
	ask.Header.Set(attendant, string(me))
	resp, err := r.transport.RoundTrip(ask)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New("the core answers " + resp.Status)
	}
	here()
	for said := bufio.NewScanner(resp.Body); said.Scan(); {
		if said.Text() == reload {
			r.opts.Reload()
		}
	}
	return nil
}

// reload is the line by which a core has its replicas read the configuration again.
const reload = "reload"

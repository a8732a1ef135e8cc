package replica

import (
	"cmp"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"
)

// CoreOptions are a core's settings.
type CoreOptions struct {
	// Idle is how long the core goes on without replicas. 0: for ever.
	Idle time.Duration
	// Unused is called once, when there have been no replicas for that long.
	Unused func()
	// Came and Left are called when a replica comes and goes, one at a time. nil: nobody is told.
	Came, Left func(Attendant)
}

// Core is the attendance of a core's replicas. It may be used from any goroutine.
type Core struct {
	opts CoreOptions

	mu    sync.Mutex
	all   map[*place]bool
	alone *time.Timer // nil: there are replicas, or Idle is 0
}

// place is one replica in attendance.
type place struct {
	Attendant
	reload chan struct{} // holds a token when it is to read its configuration again
}

// NewCore returns a core without replicas.
func NewCore(opts CoreOptions) *Core {
	c := &Core{opts: opts, all: map[*place]bool{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wait()
	return c
}

// wait ends the core if no replica comes. The lock is held.
func (c *Core) wait() {
	if c.opts.Idle == 0 || len(c.all) > 0 {
		return
	}
	var alone *time.Timer
	alone = time.AfterFunc(c.opts.Idle, func() {
		c.mu.Lock()
		over := c.alone == alone // none has come meanwhile
		c.mu.Unlock()
		if over {
			c.opts.Unused()
		}
	})
	c.alone = alone
}

// Take is the handler at [Path]: a replica is in attendance until it leaves, or until over is closed.
func (c *Core) Take(w http.ResponseWriter, r *http.Request, over <-chan struct{}) {
	p := &place{reload: make(chan struct{}, 1)}
	if json.Unmarshal([]byte(r.Header.Get(attendant)), &p.Attendant) != nil {
		http.Error(w, "no replica", http.StatusBadRequest)
		return
	}
	p.seenFrom(r.RemoteAddr)
	c.come(p)
	defer c.leave(p)
	out := http.NewResponseController(w)
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	for say := beat; ; {
		if _, err := io.WriteString(w, say+"\n"); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-p.reload:
			say = reload
		case <-beats.C:
			say = beat
		case <-over:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// seenFrom says at which machine it is, if that is another one. A replica at all addresses of its machine calls it localhost.
func (a *Attendant) seenFrom(remote string) {
	a.Address = ""
	from, err := netip.ParseAddrPort(remote)
	if err != nil { // a socket of this machine
		return
	}
	a.Address = from.Addr().Unmap().String()
	if at, err := url.Parse(a.URL); err == nil && at.Hostname() == "localhost" {
		at.Host = net.JoinHostPort(a.Address, at.Port())
		a.URL = at.String()
	}
}

func (c *Core) come(p *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alone != nil {
		c.alone.Stop()
		c.alone = nil
	}
	c.all[p] = true
	if c.opts.Came != nil {
		c.opts.Came(p.Attendant)
	}
}

func (c *Core) leave(p *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, p)
	if c.opts.Left != nil {
		c.opts.Left(p.Attendant)
	}
	c.wait()
}

// Reload has all replicas read their configuration again.
func (c *Core) Reload() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.all {
		select {
		case p.reload <- struct{}{}:
		default: // it is going to
		}
	}
}

// Replicas are those in attendance, by their URLs.
func (c *Core) Replicas() (all []Attendant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.all {
		all = append(all, p.Attendant)
	}
	slices.SortFunc(all, func(a, b Attendant) int { return cmp.Or(cmp.Compare(a.URL, b.URL), cmp.Compare(a.PID, b.PID)) })
	return all
}

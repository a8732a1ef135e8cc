package collect

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	patience   = 2 * time.Second        // for one answer of a control socket
	retry      = 500 * time.Millisecond // before a follower that was dropped comes again
	eventsKept = 20000
	wantedFor  = 10 * time.Second // after somebody has asked
)

// Options are a collector's settings. The zero value looks nowhere.
type Options struct {
	Dirs []string // where control sockets are
	// Home looks at the monitor's home; nil, or a nil result: there is none.
	Home func(context.Context) (*overview.Home, error)
	// OnEvent is called for each event as it happens, from one goroutine at a time; line is as the audit log has it, nil for
	// events of the monitor. It may be nil.
	OnEvent func(e overview.Event, line []byte)
	// History also takes what is kept of the past: by the running outlives, and in Audit logs.
	History bool
	Audit   func() []string
	Every   time.Duration // between two looks while somebody watches; 0: 1 s
	Seldom  time.Duration // otherwise; 0: 30 s
	// HomeEvery is the least time between two looks at the home; 0: 2 s.
	HomeEvery time.Duration
}

// Collector is what is known, kept up to date.
type Collector struct {
	opts   Options
	cancel context.CancelFunc
	done   sync.WaitGroup
	look   chan struct{}
	state  atomic.Pointer[overview.State]
	wanted atomic.Int64 // Unix nanoseconds of the last time that somebody asked

	// Of the looking goroutine.
	asked  map[string]*question[control.Status] // by socket: what is not answered yet
	heard  map[string]time.Time                 // by socket: when it answered last
	asking *question[*overview.Home]            // nil: the home is not being looked at

	mu        sync.Mutex
	events    []overview.Event
	audited   map[eventKey]bool             // of audit logs, and not heard of otherwise
	followed  map[string]context.CancelFunc // by socket
	home      *overview.Home
	homeAt    time.Time
	homeErr   error
	began     bool // the first look is over
	listeners map[chan struct{}]bool

	telling sync.Mutex // OnEvent
}

// New returns a collector that has looked once.
func New(opts Options) *Collector {
	if opts.Every == 0 {
		opts.Every = time.Second
	}
	if opts.Seldom == 0 {
		opts.Seldom = 30 * time.Second
	}
	if opts.HomeEvery == 0 {
		opts.HomeEvery = 2 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Collector{opts: opts, cancel: cancel, look: make(chan struct{}, 1), followed: map[string]context.CancelFunc{}, listeners: map[chan struct{}]bool{},
		asked: map[string]*question[control.Status]{}, heard: map[string]time.Time{}}
	if opts.History && opts.Audit != nil {
		c.events, c.audited = readAudit(opts.Audit(), time.Now()), map[eventKey]bool{}
		for _, e := range c.events {
			c.audited[keyOf(e)] = true
		}
	}
	dirs := control.SocketDirs(opts.Dirs...)
	notices := openNotices(dirs) // before the first look: nothing comes between the two
	c.lookAround(ctx)
	c.done.Go(func() { c.run(ctx) })
	if notices != nil {
		c.done.Go(func() { c.notice(ctx, notices, dirs) })
	}
	return c
}

// Close ends everything.
func (c *Collector) Close() {
	c.cancel()
	c.done.Wait()
}

// State is what was seen last, and makes the collector look often for a while.
func (c *Collector) State() overview.State {
	c.wanted.Store(time.Now().UnixNano())
	s := *c.state.Load()
	if time.Since(s.At) > 2*c.opts.Every {
		c.LookSoon()
	}
	return s
}

// LookSoon makes it look at once.
func (c *Collector) LookSoon() {
	select {
	case c.look <- struct{}{}:
	default:
	}
}

// Listen returns a channel that hears of every look, until the function is called.
func (c *Collector) Listen() (news <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners[ch] = true
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, ch)
	}
}

func (c *Collector) run(ctx context.Context) {
	for {
		wait := c.opts.Seldom
		if time.Since(time.Unix(0, c.wanted.Load())) < wantedFor {
			wait = c.opts.Every
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-c.look:
			timer.Stop()
		}
		c.lookAround(ctx)
	}
}

// lookAround asks everybody.
func (c *Collector) lookAround(ctx context.Context) {
	in := overview.Input{}
	found, err := control.Discover(c.opts.Dirs...)
	if err != nil {
		in.Trouble = append(in.Trouble, err.Error())
	}
	c.follow(ctx, found)
	in.Instances = c.ask(ctx, found)
	if trouble := c.lookHome(ctx); trouble != "" {
		in.Trouble = append(in.Trouble, trouble)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	in.At, in.Home = time.Now(), c.home
	if c.homeErr != nil {
		in.Trouble = append(in.Trouble, c.homeErr.Error())
	}
	in.Events = slices.Clone(c.events)
	labels := map[int]string{}
	for _, i := range found {
		labels[i.PID] = i.Label()
	}
	for n := range in.Events {
		if e := &in.Events[n]; e.Instance == "" {
			e.Instance = labels[e.PID]
		}
	}
	s := overview.Of(in)
	c.state.Store(&s)
	for l := range c.listeners {
		select {
		case l <- struct{}{}:
		default:
		}
	}
	c.began = true
}

// follow follows the events of every running outlive that is not followed yet.
func (c *Collector) follow(ctx context.Context, found []control.Instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range found {
		if c.followed[i.Path] != nil {
			continue
		}
		one, cancel := context.WithCancel(ctx)
		c.followed[i.Path] = cancel
		after := ""
		if c.opts.History || c.began {
			after = "0"
		}
		c.done.Go(func() {
			defer cancel()
			c.followOne(one, i, after)
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.followed, i.Path)
		})
	}
}

func (c *Collector) followOne(ctx context.Context, i control.Instance, after string) {
	for ctx.Err() == nil {
		err := i.Follow(ctx, after, func(n control.News) {
			if n.Line == nil {
				return // what was lost is in the audit log
			}
			after = n.ID
			if e, err := overview.ParseEvent(n.Line); err == nil {
				e.Instance = i.Label()
				c.add(e, n.Line)
			}
		})
		if errors.Is(err, control.ErrGone) {
			c.LookSoon()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// add takes an event. What is seen of the servers may have changed with it.
func (c *Collector) add(e overview.Event, line []byte) {
	c.mu.Lock()
	key := keyOf(e)
	known := c.audited[key]
	delete(c.audited, key)
	if !known && e.Level != "DEBUG" {
		c.events = append(c.events, e)
		c.events = c.events[max(0, len(c.events)-eventsKept):]
	}
	c.mu.Unlock()
	if known {
		return
	}
	if c.opts.OnEvent != nil {
		c.telling.Lock()
		c.opts.OnEvent(e, line)
		c.telling.Unlock()
	}
	if telling(e.Type) && time.Since(time.Unix(0, c.wanted.Load())) < wantedFor {
		c.LookSoon()
	}
}

// eventKey tells events apart.
type eventKey struct {
	pid     int
	at      int64
	kind    event.Type
	message string
}

func keyOf(e overview.Event) eventKey { return eventKey{e.PID, e.At.UnixMilli(), e.Type, e.Message} }

// telling reports events that change how a server stands: the page is to show them at once.
func telling(t event.Type) bool {
	switch t {
	case event.ServerReady, event.ServerCrashed, event.ServerExited, event.RestartCompleted, event.BreakerOpened, event.ServerSlept, event.ProxyStopped, event.ReloadFailed:
		return true
	}
	return false
}

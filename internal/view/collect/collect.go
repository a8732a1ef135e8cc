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
	newsGap    = 300 * time.Millisecond // least time between two looks at a home because of its news
	pokeGap    = 100 * time.Millisecond // after an event: mostly more of them follow, such as of a restart
	homeShare  = 60                     // of the time, one part at most is spent on looks at a home
	homeSeldom = 10 * time.Second       // most time between two looks at a home while somebody watches
	wantedFor  = 10 * time.Second       // after somebody has asked
	seldom     = 30 * time.Second       // between two looks when nobody has
)

// Options are a collector's settings. The zero value looks nowhere.
type Options struct {
	Dirs []string // where control sockets are
	// Home looks at the monitor's home; nil, or a nil result: there is none.
	Home func(context.Context) (*overview.Home, error)
	// OnEvent is called for each event as it happens, from one goroutine at a time; line is as the audit log has it, of another
	// machine as outlive watch there has it; nil for events of the monitor and of hosts. It may be nil.
	OnEvent func(e overview.Event, line []byte)
	// History also takes what is kept of the past: by the running outlives, and in Audit logs.
	History bool
	Audit   func() []string
	// Every is the time between two looks while somebody watches; 0: 1 s. At each of them those outlives are asked which have told of
	// something or have worked since; the others at every fifth.
	Every  time.Duration
	Curves bool // also how servers did minute by minute
	// HomeNews says that something has changed in the home: it is looked at without waiting for HomeEvery. It may be nil.
	HomeNews <-chan struct{}
	// HomeEvery is the least time between two looks at the home; 0: 2 s. A home whose look takes long is looked at less often, though
	// every 10 s: a sixtieth of the time at most is spent on it.
	HomeEvery time.Duration
	Remotes   []Remote // other machines
	// Joining calls join with each machine that is to be seen from then on, until ctx ends; nil: there are none but Remotes.
	Joining func(ctx context.Context, join func(Remote))
	Version string // of this outlive, with which theirs are compared
}

// Collector is what is known, kept up to date.
type Collector struct {
	opts   Options
	cancel context.CancelFunc
	done   sync.WaitGroup
	look   chan struct{} // everything
	poke   chan struct{} // what is due
	state  atomic.Pointer[overview.State]
	input  atomic.Pointer[overview.Input] // that state was made of
	wanted atomic.Int64                   // Unix nanoseconds of the last time that somebody asked

	// What the last look has found, of the looking goroutine.
	found     []control.Instance
	foundErr  error
	instances []overview.Instance
	homeSlow  string                     // that the home takes long; "": it does not
	asked     map[string]*question[said] // by socket: what is not answered yet
	known     map[string]*known          // by socket
	all       bool                       // the next look asks all
	asking    *question[*overview.Home]  // nil: the home is not being looked at
	homeBegun time.Time                  // when the home was looked at last
	homeRest  time.Duration              // after that
	homeDue   bool                       // it has said that it changed

	mu        sync.Mutex
	events    []overview.Event
	audited   map[overview.EventKey]bool // of audit logs, and not heard of otherwise
	followed  map[string]*followed       // by socket
	told      map[string]bool            // by socket: something has happened since it was asked
	gone      []departed                 // servers that are not there any more
	killed    map[string]time.Time       // by the label of an outlive: when it was known to have been killed
	nameless  bool                       // there may be events whose outlive has become known
	memory    overview.Memory
	home      *overview.Home
	homeAt    time.Time
	homeErr   error
	began     bool // the first look is over
	listeners map[chan struct{}]bool
	machines  []overview.Machine // none is ever removed

	telling sync.Mutex // OnEvent
}

// New returns a collector that has looked once.
func New(opts Options) *Collector {
	if opts.Every == 0 {
		opts.Every = time.Second
	}
	if opts.HomeEvery == 0 {
		opts.HomeEvery = 2 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Collector{opts: opts, cancel: cancel, look: make(chan struct{}, 1), poke: make(chan struct{}, 1), followed: map[string]*followed{}, listeners: map[chan struct{}]bool{},
		asked: map[string]*question[said]{}, known: map[string]*known{}, told: map[string]bool{}, killed: map[string]time.Time{}, all: true}
	if opts.History && opts.Audit != nil {
		c.events, c.audited = readAudit(opts.Audit(), time.Now()), map[overview.EventKey]bool{}
		for _, e := range c.events {
			c.audited[e.Key()] = true
		}
	}
	for _, r := range opts.Remotes {
		c.join(ctx, r)
	}
	dirs := control.SocketDirs(opts.Dirs...)
	notices := openNotices(dirs) // before the first look: nothing comes between the two
	c.lookAround(ctx)
	c.done.Go(func() { c.run(ctx) })
	if opts.Joining != nil {
		c.done.Go(func() { opts.Joining(ctx, func(r Remote) { c.join(ctx, r) }) })
	}
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
		c.lookAgain()
	}
	return s
}

// Seen is what the last state was made of, but for the events.
func (c *Collector) Seen() overview.Input { return *c.input.Load() }

// Events are those of the last day that a filter shows, the newest first, and no more than most.
func (c *Collector) Events(only overview.Filter, most int) []overview.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return overview.Newest(c.events, only, most, time.Now())
}

// LookSoon makes it look at once, at everything.
func (c *Collector) LookSoon() { knock(c.look) }

// lookAgain makes it look at once, at what is due.
func (c *Collector) lookAgain() { knock(c.poke) }

func knock(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
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

// watched reports whether somebody has asked of late.
func (c *Collector) watched() bool { return time.Since(time.Unix(0, c.wanted.Load())) < wantedFor }

func (c *Collector) run(ctx context.Context) {
	for {
		every := max(seldom, c.opts.Every)
		if c.watched() {
			every = c.opts.Every
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		case <-c.look:
			c.all, c.homeDue = true, true
		case <-c.poke:
			if !sleep(ctx, pokeGap) {
				return
			}
		case <-c.opts.HomeNews:
			c.lookAtNews(ctx)
		}
		c.lookAround(ctx)
	}
}

// lookAtNews looks at the home, and shows it before the servers are asked: many take a while to answer.
func (c *Collector) lookAtNews(ctx context.Context) {
	sleep(ctx, newsGap-time.Since(c.homeAt))
	c.homeDue = true
	c.homeSlow = c.lookHome(ctx)
	c.publish()
}

// lookAround asks everybody.
func (c *Collector) lookAround(ctx context.Context) {
	found, err := control.DiscoverBeside(c.lives, c.opts.Dirs...)
	c.follow(ctx, found)
	c.found, c.foundErr, c.instances = found, err, c.ask(ctx, found)
	c.homeSlow = c.lookHome(ctx)
	c.publish()
}

// publish makes the overview of what was seen, and tells who listens.
func (c *Collector) publish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := overview.Input{At: time.Now(), Home: c.home, Instances: c.instances}
	if c.homeSlow != "" {
		in.Trouble = append(in.Trouble, c.homeSlow)
	}
	for _, err := range []error{c.foundErr, c.homeErr} {
		if err != nil {
			in.Trouble = append(in.Trouble, err.Error())
		}
	}
	in.Machines = slices.Clone(c.machines)
	if c.nameless {
		c.nameless = false
		c.nameEvents()
	}
	in.Events, in.Memory = c.events, &c.memory // the overview copies what it keeps
	s := overview.Of(in)
	c.seeGone(&s)
	c.state.Store(&s)
	in.Events, in.Memory = nil, nil // they change
	c.input.Store(&in)
	for l := range c.listeners {
		knock(l)
	}
	c.began = true
}

// nameEvents says of events of audit logs whose they are, as far as those run.
func (c *Collector) nameEvents() {
	labels := map[int]string{}
	for _, i := range c.found {
		labels[i.PID] = i.Label()
	}
	for n := range c.events {
		if e := &c.events[n]; e.Instance == "" && e.Host == "" {
			e.Instance = labels[e.PID]
		}
	}
	c.memory.Forget()
}

// followed is a running outlive whose events are heard.
type followed struct {
	cancel context.CancelFunc
	lives  bool          // the connection is open
	heard  chan struct{} // closed when nothing that happens from then on is missed, or it cannot be heard
}

// lives reports whether the connection to a socket is open.
func (c *Collector) lives(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.followed[path]
	return f != nil && f.lives
}

func (c *Collector) setLives(path string, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.followed[path]; f != nil {
		f.lives = is
	}
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
		f := &followed{cancel: cancel, lives: true, heard: make(chan struct{})} // it has just been reached
		c.followed[i.Path], c.nameless = f, true
		after := ""
		if c.opts.History || c.began {
			after = "0"
		}
		c.done.Go(func() {
			defer cancel()
			farewell := c.followOne(one, i, after, sync.OnceFunc(func() { close(f.heard) }))
			c.mu.Lock()
			delete(c.followed, i.Path)
			c.mu.Unlock()
			if !farewell {
				c.awaitReturn(one, i)
			}
		})
	}
}

// followOne follows a running outlive until it has ended. farewell: it has said that it ends, or it is not known, because not all of
// its events were heard: none at all of one that lives for a moment only. heard is called as soon as they are, or cannot be.
func (c *Collector) followOne(ctx context.Context, i control.Instance, after string, heard func()) (farewell bool) {
	farewell = true
	begun := func() {
		if after == "" {
			farewell = false // whatever it says from now on is heard
		}
		heard()
	}
	lost := false
	for ctx.Err() == nil {
		err := i.Follow(ctx, after, begun, func(n control.News) {
			c.setLives(i.Path, true)
			if n.Line == nil {
				lost, farewell = true, true
				return // what was lost is in the audit log
			}
			after = n.ID
			if e, err := overview.ParseEvent(n.Line); err == nil {
				e.Instance = i.Label()
				farewell = lost || e.Type == event.ProxyStopped || e.Type == event.FatalError
				c.mu.Lock()
				c.told[i.Path] = true
				c.mu.Unlock()
				c.add(e, n.Line)
			}
		})
		heard()
		c.setLives(i.Path, false) // the next look tries it
		if errors.Is(err, control.ErrGone) {
			c.lookAgain()
			return farewell
		}
		sleep(ctx, retry)
	}
	return true
}

// sleep waits for so long, and reports whether ctx goes on.
func sleep(ctx context.Context, long time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(long):
		return true
	}
}

// add takes an event. What is seen of the servers may have changed with it.
func (c *Collector) add(e overview.Event, line []byte) {
	c.mu.Lock()
	key := e.Key()
	known := c.audited[key]
	delete(c.audited, key)
	if !known && e.Level != "DEBUG" {
		c.events = append(c.events, e)
		c.events = c.events[max(0, len(c.events)-eventsKept):]
	}
	if e.Type == event.ProxyLost {
		c.killed[e.Instance] = time.Now()
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
	if telling(e.Type) && c.watched() {
		c.lookAgain()
	}
}

// telling reports events that change how a server stands: the page is to show them at once.
func telling(t event.Type) bool {
	switch t {
	case event.ServerReady, event.ServerCrashed, event.ConnectionLost, event.ServerExited, event.RestartCompleted, event.BreakerOpened, event.ServerSlept, event.ProxyStopped, event.ProxyLost, event.ReloadFailed,
		event.HostConnected, event.HostLost:
		return true
	}
	return false
}

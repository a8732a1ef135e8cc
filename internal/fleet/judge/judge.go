package judge

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/stateversion"
	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
)

// The times of a fleet are the same for all its machines.
const (
	Beat    = 5 * time.Second  // between two digests of a machine
	silence = 30 * time.Second // without a digest, until the machine is asked: more than the engine needs to elect a leader
	settle  = time.Minute      // that a case must not be seen any more until it is over
	askFor  = 5 * time.Second  // an answer of a silent machine
	keepFor = 10 * time.Minute // that a machine that was cut off relies on the judge for what it had left to it
)

// Options of a machine.
type Options struct {
	// Reach says whom this machine can tell now. nil: [People].
	Reach func() Reach
	// Ended says what is known of a machine that nobody answers for, from how its connection has ended. nil: [Gone].
	Ended  func(ctx context.Context, host string) Standing
	Logger *slog.Logger // nil: none
}

// Reach is whom a machine can tell of a case.
type Reach int

// The reaches. Of the machines that can be the judge, one that reaches most is.
const (
	Nobody Reach = iota // a case is written down only
	Views               // a monitor shows it, and has no channel
	People              // a monitor has a channel
)

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Reach == nil {
		o.Reach = func() Reach { return People }
	}
	if o.Ended == nil {
		o.Ended = func(context.Context, string) Standing { return Gone }
	}
	return o
}

// Teller brings messages to people. That a case is over it reads from the case's record.
type Teller interface {
	// Tell tells of a case. repeated: the message may have been sent before. The error wraps ErrNotSent if it is known that nothing
	// was sent.
	Tell(ctx context.Context, c Case, repeated bool) error
}

// ErrNotSent says that a message was certainly not sent.
var ErrNotSent = errors.New("the message was not sent")

// errOther says that another machine reaches more people.
var errOther = errors.New("another machine reaches more people")

// errChannel is wrapped by the errors of a channel: another machine may have a better one.
var errChannel = errors.New("people cannot be told from here")

// Run judges whenever this machine has the lease, until ctx ends. Every machine of a fleet runs it. It returns ctx's error.
func Run(ctx context.Context, fleet engine.Engine, machine string, to Teller, opts Options) error {
	opts = opts.withDefaults()
	for ctx.Err() == nil {
		if err := once(ctx, fleet, machine, to, opts); ctx.Err() == nil {
			opts.Logger.Info("this machine does not look after the others any more", slog.Any("why", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * silence): // another machine's turn, whose channel may work
		}
	}
	return context.Cause(ctx)
}

// once waits for the lease, judges while it is held, and releases it. Unless ctx has ended it returns why it did.
func once(ctx context.Context, fleet engine.Engine, machine string, to Teller, opts Options) error {
	holding, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a lease is released when ctx ends
	defer cancel()
	waits := context.AfterFunc(ctx, cancel)
	patience := func() time.Duration { return time.Duration(People-opts.Reach()) * silence / 2 }
	held, err := lease.Acquire(holding, fleet, "judge", machine, lease.Options{Patience: patience})
	if err != nil {
		return err
	}
	waits()
	opts.Logger.Info("this machine looks after the others now")
	judging, cancel := context.WithCancel(held.Context())
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	j := &judge{
		fleet: fleet, machine: machine, held: held, to: to, opts: opts, view: view{}, gone: map[string]time.Time{}, open: map[string]Record{},
		book: book{registry: fleet, machine: machine, term: held.Term, reach: opts.Reach, done: map[episode]done{}},
	}
	err = j.watch(judging)
	releasing, cancel := context.WithTimeout(holding, askFor)
	defer cancel()
	return errors.Join(err, held.Release(releasing)) // if it is not released, others wait for its TTL
}

// judge is one time with the lease.
type judge struct {
	fleet   engine.Engine
	machine string
	held    *lease.Held
	to      Teller
	opts    Options
	book    book

	view  view
	begin time.Time            // of judging, or when the registry was heard again after a gap
	open  map[string]Record    // the cases that are not over, by key, as the registry tells of them
	gone  map[string]time.Time // since when they are not seen any more
}

// watch looks once a beat until the lease is lost, the channel fails, or a machine is there that reaches more people. A judge that has just
// begun, or hears the registry again, waits for silence: it does not know yet which machines are silent, and which cases are over.
func (j *judge) watch(ctx context.Context) error {
	changes, err := j.fleet.Watch(ctx, Digests, Table)
	if err != nil {
		return err
	}
	tick := time.NewTicker(Beat)
	defer tick.Stop()
	j.begin = time.Now()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case c, ok := <-changes:
			if !ok {
				return context.Cause(ctx)
			}
			j.take(c)
		case <-tick.C:
			// All that has come: asking silent machines takes a beat, and who was heard meanwhile would count as silent, too.
			if !j.takeAll(changes) {
				return context.Cause(ctx)
			}
			if j.view.reach(j.machine, silence, time.Now()) > j.opts.Reach() {
				return errOther
			}
			if time.Since(j.begin) < silence {
				continue
			}
			if err := j.look(ctx); err != nil {
				return err
			}
		}
	}
}

// quiet is how long nothing comes when all that the registry has told was taken. It is waited for no longer than takeLimit: in a large
// fleet something comes all the time.
const (
	quiet     = 50 * time.Millisecond
	takeLimit = time.Second
)

// takeAll takes all that the registry has told; false: it tells nothing any more.
func (j *judge) takeAll(changes <-chan engine.Change) bool {
	late := time.After(takeLimit)
	for {
		select {
		case c, ok := <-changes:
			if !ok {
				return false
			}
			j.take(c)
		case <-time.After(quiet):
			return true
		case <-late:
			return true
		}
	}
}

// take takes what the registry tells.
func (j *judge) take(c engine.Change) {
	switch {
	case c.Synced:
		j.begin = time.Now() // what was said while nothing was heard did not come
	case strings.HasPrefix(c.Key, Digests+"."):
		j.beat(c)
	default:
		j.record(c)
	}
}

// beat takes what the registry tells of a digest. A digest that it has lost is that of a silent machine.
func (j *judge) beat(c engine.Change) {
	if c.Gone && c.Revision == 0 {
		return
	}
	names := engine.Names(Digests, c.Key)
	if len(names) != 1 {
		return
	}
	name := names[0]
	if c.Gone { // the machine was taken out of the fleet
		delete(j.view, name)
		return
	}
	d, err := parseDigest(name, c.Value)
	if err != nil { // it shows that its machine lives, and nothing else
		if j.view[name] == nil {
			j.opts.Logger.Warn("a machine's digests cannot be read", slog.String("machine", name), slog.Any("error", err))
		}
		d = Digest{Beat: uint64(c.Revision), Left: d.Left}
	}
	j.view.see(name, d, time.Now())
}

// record takes what the registry tells of a case.
func (j *judge) record(c engine.Change) {
	r, err := ReadRecord(c.Key, c.Value)
	if c.Gone || err != nil && !errors.Is(err, stateversion.ErrNewer) || r.State == Over {
		delete(j.open, c.Key)
		return
	}
	j.open[c.Key] = r
}

// look asks who is silent, tells of what is new, and closes what is over. It returns an error of the channel; what the
// registry does not take is tried again.
func (j *judge) look(ctx context.Context) error {
	j.ask(ctx)
	now := time.Now()
	seen := map[string]bool{}
	for _, c := range j.view.cases(silence, Beat, slices.Collect(maps.Values(j.open)), now) {
		key := c.Key()
		seen[key] = true
		delete(j.gone, key)
		var err error
		switch known := j.open[key]; {
		case known.State != Sent && j.opts.Reach() == Nobody: // another may tell of it later
			err = j.book.note(ctx, c)
		case known.State != Sent:
			err = j.book.tell(ctx, c, j.to)
		case !slices.Equal(known.Agents, c.Agents):
			err = j.book.change(ctx, c)
		}
		var late *behind
		switch {
		case errors.Is(err, errChannel):
			return err
		case errors.As(err, &late):
			j.held.Raise(late.epoch) // it is tried again after that
		case err != nil:
			j.opts.Logger.Info("the registry does not answer; it is tried again", slog.Any("error", err))
		}
	}
	j.closeOver(ctx, seen, now)
	return nil
}

func (j *judge) closeOver(ctx context.Context, seen map[string]bool, now time.Time) {
	for key := range j.open {
		if seen[key] {
			continue
		}
		if j.gone[key].IsZero() {
			j.gone[key] = now
		}
		if now.Sub(j.gone[key]) < settle {
			continue
		}
		if j.book.close(ctx, key) == nil { // otherwise it is tried again
			delete(j.gone, key)
		}
	}
}

// ask asks the silent machines how they are, all at the same time.
func (j *judge) ask(ctx context.Context) {
	var all sync.WaitGroup
	for _, name := range j.view.suspects(silence, time.Now()) {
		h := j.view[name]
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, askFor)
			defer cancel()
			_, err := j.fleet.Request(ctx, Address(name), nil)
			switch {
			case err == nil:
				h.asked = Works
			case errors.Is(err, engine.ErrNoOwner):
				h.asked = j.opts.Ended(ctx, name)
			default:
				h.asked = CutOff
			}
		})
	}
	all.Wait()
}

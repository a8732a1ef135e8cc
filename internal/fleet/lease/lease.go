package lease

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// Registry is what a lease needs of an engine.
type Registry interface {
	Get(ctx context.Context, key string) (engine.Entry, error)
	CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error)
}

// Options of a lease, the same for all who may hold it.
type Options struct {
	// TTL is how long a lease may go without a renewal until others take it. 0: 30 s, which outlasts the election of a leader
	// by the engine, and a second one after a partition has healed.
	TTL time.Duration
	// Renew is the time between two renewals. 0: a third of TTL.
	Renew time.Duration
	// Skew is how much earlier the holder gives up: the clocks of two machines do not run at exactly the same speed. 0: a
	// tenth of TTL.
	Skew time.Duration
	// Holder is one that has ended without releasing the lease, such as a process that became another program: its [Term.Holder]. Its
	// lease is taken at once, for a new time. If it has not ended after all, such as in a copy of a virtual machine, it loses the lease.
	// "": there is none.
	Holder string
	// Patience is how much longer than others one waits who should have the lease only if they do not take it. nil: 0.
	Patience func() time.Duration
	// Up is a clock that goes on while the machine sleeps: the holder's time ends by it. nil: one that may stand still then.
	Up func() time.Duration
}

func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, 30*time.Second)
	o.Renew = cmp.Or(o.Renew, o.TTL/3)
	o.Skew = cmp.Or(o.Skew, o.TTL/10)
	if o.Patience == nil {
		o.Patience = func() time.Duration { return 0 }
	}
	if o.Up == nil {
		begun := time.Now()
		o.Up = func() time.Duration { return time.Since(begun) }
	}
	return o
}

// Term is one holder's time with a lease. The zero value is none.
type Term struct {
	Lease string `json:"lease"`
	// Holder is the owner's name with something that only this time has: a process that has lost a lease and got it again is another
	// holder.
	Holder string `json:"holder"`
	Epoch  uint64 `json:"epoch"`
}

// ErrLost says that the lease is not held any more.
var ErrLost = errors.New("the lease is lost")

// ErrUnanswered is the [ErrLost] of a holder that has heard nothing of the registry for too long. Nobody else need have the lease.
var ErrUnanswered = fmt.Errorf("%w: no renewal was acknowledged in time", ErrLost)

// record is what the registry has of a lease. Its words must not change: other versions read them.
type record struct {
	Holder string `json:"holder,omitempty"` // "": nobody
	Epoch  uint64 `json:"epoch"`
	Beat   uint64 `json:"beat"` // rises with each write of this holder
}

func (r record) text() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // a string and two numbers
	}
	return text
}

// read returns a lease's record with its revision; both are zero if there is none.
func read(ctx context.Context, from Registry, key string) (record, engine.Revision, error) {
	entry, err := from.Get(ctx, key)
	if errors.Is(err, engine.ErrNotFound) {
		return record{}, 0, nil
	}
	if err != nil {
		return record{}, 0, err
	}
	var r record
	if json.Unmarshal(entry.Value, &r) != nil {
		r = record{Holder: "what cannot be read"} // it is taken when it has not changed for a while, as any other's
	}
	return r, entry.Revision, nil
}

// Key is where the registry has a lease. A name may have several parts, with slashes between them.
func Key(name string) string { return engine.Key("lease", strings.Split(name, "/")...) }

// Acquire waits until the lease is ours, or ctx ends. owner is for people: a machine's name. ctx also ends what was acquired,
// without releasing it.
//
// An engine that does not answer is asked again; so the error is ctx's.
func Acquire(ctx context.Context, from Registry, name, owner string, opts Options) (*Held, error) {
	opts = opts.withDefaults()
	w := wait{from: from, key: Key(name), holder: owner + "/" + rand.Text()[:8], opts: opts}
	for {
		if got, ok := w.try(ctx); ok {
			return hold(ctx, from, name, got, opts), nil
		}
		if err := w.pause(ctx); err != nil {
			return nil, fmt.Errorf("acquire the lease %s: %w", name, err)
		}
	}
}

// Outlast waits until somebody's time with a lease is over, or ctx ends: until the lease is free or another's. One that nobody has renewed
// for TTL is written down as free, so that its holder finds that out, too. A lease that the registry has lost is waited for as long: its
// holder writes it again. Without a holder the time of whoever has the lease is meant.
//
// An engine that does not answer is asked again; so the error is ctx's.
func Outlast(ctx context.Context, from Registry, t Term, opts Options) error {
	e := end{wait: wait{from: from, key: Key(t.Lease), opts: opts.withDefaults()}, of: t}
	for !e.came(ctx) {
		if err := e.pause(ctx); err != nil {
			return fmt.Errorf("outlast %s with the lease %s: %w", t.Holder, t.Lease, err)
		}
	}
	return nil
}

// Over reports whether somebody's time with a lease is over by one look: the lease is free or another's. It is false if the engine does
// not answer.
func Over(ctx context.Context, from Registry, t Term, opts Options) bool {
	e := end{wait: wait{from: from, key: Key(t.Lease), opts: opts.withDefaults()}, of: t}
	return e.came(ctx)
}

// wait is one who waits for a lease that others may have, or for the end of their time with it.
type wait struct {
	from   Registry
	key    string
	holder string // we, who want it; "": we do not
	opts   Options

	seen   engine.Revision // the last that was read
	seenAt time.Time       // since when it is the same; zero: nothing was read yet
}

// pause is the time between two looks. The error is ctx's.
func (w *wait) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(w.opts.Renew / 2):
		return nil
	}
}

// look reads the lease, and says for how long it has been so.
func (w *wait) look(ctx context.Context) (r record, revision engine.Revision, age time.Duration, err error) {
	if r, revision, err = read(ctx, w.from, w.key); err != nil {
		return r, revision, 0, err
	}
	now := time.Now()
	if revision != w.seen || w.seenAt.IsZero() {
		w.seen, w.seenAt = revision, now
	}
	return r, revision, now.Sub(w.seenAt), nil
}

// got is a lease that is ours: what is written, at which revision, and when that was sent, by Options.Up.
type got struct {
	record
	revision engine.Revision
	sent     time.Duration
}

// try looks once, and takes the lease if it is free.
func (w *wait) try(ctx context.Context) (got, bool) {
	ctx, cancel := context.WithTimeout(ctx, w.opts.Renew)
	defer cancel()
	r, revision, age, err := w.look(ctx)
	if err != nil {
		return got{}, false
	}
	mine := record{Holder: w.holder, Epoch: r.Epoch + 1, Beat: r.Beat + 1}
	switch {
	case r.Holder == w.holder: // an earlier try whose answer was lost
		mine.Epoch = r.Epoch
	case r.Holder != "" && r.Holder == w.opts.Holder:
	case age < w.ripens(r):
		return got{}, false
	}
	// Who conflicts has read what is old by now; it is read again next time.
	sent := w.opts.Up()
	revision, err = w.from.CAS(ctx, w.key, mine.text(), revision)
	return got{mine, revision, sent}, err == nil
}

// end is the end of a time with a lease that is waited for.
type end struct {
	wait
	of    Term
	other time.Time // since when it is another's by what is read; zero: it is not
}

// came looks once whether the time is over, and ends it if nothing was heard of its holder for TTL.
func (e *end) came(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, e.opts.Renew)
	defer cancel()
	r, revision, age, err := e.look(ctx)
	free := revision != 0 && r.Holder == ""
	switch {
	case err != nil:
		return false
	case e.of.Holder == "":
		if free {
			return true
		}
	case revision != 0 && r.Holder != e.of.Holder:
		// With a lower epoch it is an old value, or the registry had lost the lease: then the holder has lost it, too.
		if e.other.IsZero() {
			e.other = time.Now()
		}
		return r.Epoch >= e.of.Epoch || time.Since(e.other) >= e.opts.TTL
	}
	e.other = time.Time{}
	if age < e.opts.TTL {
		return false
	}
	_, err = e.from.CAS(ctx, e.key, record{Epoch: r.Epoch, Beat: r.Beat + 1}.text(), revision)
	return err == nil
}

// ripens is how long a record of another's must not change until the lease is taken.
func (w *wait) ripens(r record) time.Duration {
	if r.Holder == "" {
		return w.opts.Patience()
	}
	return w.opts.TTL + w.opts.Patience()
}

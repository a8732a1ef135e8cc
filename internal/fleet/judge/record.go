package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/stateversion"
	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
)

// State is how far the telling of a case has come.
type State string

// The states.
const (
	Pending State = "pending" // nobody can be told yet
	Sending State = "sending" // the message may have been sent
	Sent    State = "sent"
	Over    State = "over" // people may be told of it again, as the next episode
)

// next are the states that may follow each. "" is a case without a record.
var next = map[State][]State{
	"":      {Pending, Sending, Sent},
	Pending: {Pending, Sending, Sent, Over},
	Sending: {Sending, Pending, Sent, Over},
	Sent:    {Over, Sent},
	Over:    {Pending, Sending, Sent},
}

// Record is what the registry has of a case, and how far people were told of it.
type Record struct {
	Version int    `json:"version"`
	Episode uint64 `json:"episode"`
	State   State  `json:"state"`
	// Holder and Epoch are those of the judge that wrote it. Of two judges the one with the higher epoch goes on.
	Holder  string `json:"holder"`
	Epoch   uint64 `json:"epoch"`
	Message string `json:"message,omitempty"` // the machine that has told of a Sent one; "": one that has it told by itself
	Shown   bool   `json:"shown,omitempty"`   // of a Sent one: the monitor that told of it had no channel, so nobody was reached
	Case
}

// Table has the records of cases.
const Table = "esc"

var errNoCase = errors.New("the key of no case")

// ReadRecord reads a record of [Table].
func ReadRecord(key string, value []byte) (r Record, err error) {
	names := engine.Names(Table, key)
	if len(names) != 2 {
		return r, fmt.Errorf("%s: %w", key, errNoCase)
	}
	if err := json.Unmarshal(value, &r); err != nil {
		return Record{}, fmt.Errorf("%s: %w", key, err)
	}
	r.Kind, r.Subject = Kind(names[0]), names[1]
	return r, stateversion.Check(key, r.Version, Format)
}

// Judge is the machine that has written a record.
func (r Record) Judge() string {
	machine, _, _ := strings.Cut(r.Holder, "/")
	return machine
}

// book is the records of all cases, and what this judge did about them.
type book struct {
	registry lease.Registry
	machine  string
	term     func() (lease.Term, error)
	reach    func() Reach
	done     map[episode]done
}

// episode is one time that a case is told of.
type episode struct {
	key    string
	number uint64
}

// done is what this judge did about an episode.
type done struct {
	begun bool // the channel has got the message, perhaps
	sent  bool // and has it
	shown bool // see [Record]
}

// Key is where the record of a case is.
func (c Case) Key() string { return engine.Key(Table, string(c.Kind), c.Subject) }

// read returns a case's record with its revision; the zero value with 0 if there is none.
func (b *book) read(ctx context.Context, key string) (Record, engine.Revision, error) {
	entry, err := b.registry.Get(ctx, key)
	if errors.Is(err, engine.ErrNotFound) {
		return Record{}, 0, nil
	}
	if err != nil {
		return Record{}, 0, err
	}
	r, err := ReadRecord(key, entry.Value)
	return r, entry.Revision, err
}

// move writes a record's next state, and returns what is there then. Only a judge that has the lease by its own clock writes.
func (b *book) move(ctx context.Context, key string, r Record, revision engine.Revision, to State) (Record, engine.Revision, error) {
	term, err := b.term()
	if err != nil {
		return r, revision, err
	}
	if !slices.Contains(next[r.State], to) {
		return r, revision, fmt.Errorf("%s: a record that is %q cannot become %q", key, r.State, to)
	}
	if r.State == "" || r.State == Over {
		r.Episode, r.Message, r.Shown = r.Episode+1, "", false
	}
	r.Version, r.State, r.Holder, r.Epoch = Format, to, term.Holder, term.Epoch
	revision, err = b.registry.CAS(ctx, key, jsonOf(r), revision)
	return r, revision, err
}

// behind is the error of a judge that finds the record of a later one, whose epoch it has to be above: the registry may have lost
// its leases and kept this.
type behind struct{ epoch uint64 }

func (e *behind) Error() string {
	return fmt.Sprintf("a judge of epoch %d has written this", e.epoch)
}

// note writes down a case that nobody can be told of here.
func (b *book) note(ctx context.Context, c Case) error {
	key := c.Key()
	r, revision, err := b.read(ctx, key)
	if err != nil || r.State != "" && r.State != Over {
		return err
	}
	_, _, err = b.move(ctx, key, r.of(c), revision, Pending)
	return err
}

// of is the record with what a case is now.
func (r Record) of(c Case) Record {
	if c.Since.IsZero() {
		c.Since = r.Since
	}
	r.Case = c
	return r
}

// tell tells of a case that has not been told of. An error says that it has to be tried again.
func (b *book) tell(ctx context.Context, c Case, to Teller) error {
	key := c.Key()
	r, revision, err := b.read(ctx, key)
	if err != nil || r.State == Sent {
		return err
	}
	term, err := b.term()
	if err != nil {
		return err
	}
	if r.Epoch > term.Epoch || r.Epoch == term.Epoch && r.Holder != "" && r.Holder != term.Holder {
		return &behind{r.Epoch}
	}
	r = r.of(c)
	at := episode{key, r.Episode}
	mine := b.done[at]
	// What an earlier judge was about to send, or this one with an answer that was lost, may have been sent.
	repeated := r.State == Sending && (r.Holder != term.Holder || mine.begun)
	switch {
	case r.State == Sending && r.Holder == term.Holder && mine.sent: // only its record is missing
		return b.finish(ctx, key, r, revision)
	case repeated:
		b.done[at] = done{begun: true} // the answer to this write may be lost
	case c.Told:
		_, _, err := b.move(ctx, key, r, revision, Sent)
		return err
	}
	if r, revision, err = b.move(ctx, key, r, revision, Sending); err != nil {
		return err
	}
	return b.send(ctx, key, r, revision, c, to, repeated)
}

// send sends the message of a record that has become Sending.
func (b *book) send(ctx context.Context, key string, r Record, revision engine.Revision, c Case, to Teller, repeated bool) error {
	if _, err := b.term(); err != nil { // the answer took long
		return err
	}
	at := episode{key, r.Episode}
	b.done[at] = done{begun: true}
	err := to.Tell(ctx, c, repeated)
	if errors.Is(err, ErrNotSent) && !repeated {
		b.done[at] = done{}
		_, _, again := b.move(ctx, key, r, revision, Pending)
		return fmt.Errorf("%w: %w", errChannel, errors.Join(err, again))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errChannel, err)
	}
	b.done[at] = done{begun: true, sent: true, shown: b.reach() < People}
	return b.finish(ctx, key, r, revision)
}

func (b *book) finish(ctx context.Context, key string, r Record, revision engine.Revision) error {
	at := episode{key, r.Episode}
	r.Message, r.Shown = b.machine, b.done[at].shown
	_, _, err := b.move(ctx, key, r, revision, Sent)
	if err == nil {
		delete(b.done, at)
	}
	return err
}

// change notes who shares a cause that was told of.
func (b *book) change(ctx context.Context, c Case) error {
	key := c.Key()
	r, revision, err := b.read(ctx, key)
	if err != nil || r.State != Sent || slices.Equal(r.Agents, c.Agents) {
		return err
	}
	_, _, err = b.move(ctx, key, r.of(c), revision, Sent)
	return err
}

// close notes that a case is over.
func (b *book) close(ctx context.Context, key string) error {
	r, revision, err := b.read(ctx, key)
	if err != nil || r.State == "" || r.State == Over {
		return err
	}
	_, _, err = b.move(ctx, key, r, revision, Over)
	return err
}

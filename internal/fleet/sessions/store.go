package sessions

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
)

// Table is the registry's table of records. An engine deletes what was not written for [Kept].
const Table = "session"

const (
	// Kept is how long a record stays in the registry after it was written last.
	Kept = 7 * 24 * time.Hour
	// MostIdle is how long a session may be unused so that its record is written again before it is deleted.
	MostIdle = 5 * 24 * time.Hour
	// answerLimit is how long one answer of the registry is waited for. It is less than [leaseOptions] leave between the end of one time
	// with the lease and the next.
	answerLimit = 2 * time.Second
	// tryAgain is the pause before a write is tried again.
	tryAgain = 200 * time.Millisecond
	// writeLimit is how long one write is tried: longer than the registry elects a leader. A registry that takes renewals of the lease and
	// not this for longer has no room, and others wait behind it.
	writeLimit = 30 * time.Second
)

// Elsewhere is the error for a session that another gateway has.
type Elsewhere struct {
	// At is where that takes what is passed on.
	At string
	// Time names its time with its lease.
	Time string
	// Over is closed when its time is over, and somebody else may take the session.
	Over <-chan struct{}
}

// Error implements error.
func (e *Elsewhere) Error() string { return "the gateway at " + e.At + " has the session" }

// errOlder is the error for a session of a core of an older outlive, to which nothing can be passed on.
var errOlder = errors.New("a core of an older outlive has the sessions of this gateway: end it, and they go on here")

// Own reports whether a key of the registry is one that gateways read and write.
func Own(key string) bool {
	return strings.HasPrefix(key, Table+".") || strings.HasPrefix(key, Leases()+".")
}

// Leases is how the keys of all gateways' leases begin, without the last dot.
func Leases() string { return lease.Key("gateway") }

// Options are a store's.
type Options struct {
	// Gateway is the gateway's name in the registry.
	Gateway string
	// Key encrypts the records: 32 bytes.
	Key []byte
	// Owner is this process, for its time now.
	Owner func() (Owner, error)
	// Outlasted is called when the time of another gateway is over, with its address, by any goroutine. nil: nobody is told.
	Outlasted func(at string)
}

// Store is the sessions of equal gateways, as one of them has them. Its methods may be called from any goroutine; calls for one key must
// not overlap.
type Store struct {
	from   lease.Registry
	opts   Options
	seal   cipher.AEAD
	others others

	mu        sync.Mutex
	revisions map[string]engine.Revision // of the records that were read or written here
	of        Owner                      // whose they are: this process, for one time
	refused   bool                       // the latest write was tried for writeLimit in vain; the next is tried once
}

// New returns the store of a gateway. It is to be closed.
func New(from lease.Registry, opts Options) (*Store, error) {
	block, err := aes.NewCipher(opts.Key)
	if err != nil {
		return nil, fmt.Errorf("the key of the sessions: %w", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil { // not reached: it is AES
		return nil, err
	}
	s := &Store{from: from, opts: opts, seal: seal, revisions: map[string]engine.Revision{}}
	s.others.begin(from, opts)
	return s, nil
}

// Close ends what the store waits for.
func (s *Store) Close() { s.others.close() }

// record is what the registry has of a session, encrypted. Its words must not change: other versions read them.
type record struct {
	Owner  Owner           `json:"owner"` // whose the session is; the zero value: nobody's
	Until  time.Time       `json:"until"` // by the clock of the machine that has written it; zero: it cannot be read
	Record json.RawMessage `json:"record"`
	older  bool            // an older outlive has written it: the session is its core's
}

// taken reports whether somebody has the session, or has had it.
func (r record) taken() bool { return r.older || r.Owner != Owner{} }

func (s *Store) key(key string) string { return engine.Key(Table, s.opts.Gateway, key) }

// form tells our records from those of an older outlive, whose core would take them for its own.
const form = " 2"

// put writes a record in place of another revision.
func (s *Store) put(at string, r record, before engine.Revision) (engine.Revision, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	nonce := make([]byte, s.seal.NonceSize())
	_, _ = rand.Read(nonce) // it does not fail
	value := s.seal.Seal(nonce, nonce, text, []byte(at+form))
	if len(value) > engine.MaxValue {
		return 0, fmt.Errorf("%d KB: %w", len(value)>>10, engine.ErrTooLarge)
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	return s.from.CAS(ctx, at, value, before)
}

// read reads what is there. What nobody with the key has written is the zero record.
func (s *Store) read(at string) (r record, revision engine.Revision, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	e, err := s.from.Get(ctx, at)
	if err != nil {
		return r, 0, err
	}
	size := s.seal.NonceSize()
	if len(e.Value) < size {
		return r, e.Revision, nil
	}
	text, err := s.seal.Open(nil, e.Value[:size], e.Value[size:], []byte(at+form))
	older := err != nil
	if older {
		text, err = s.seal.Open(nil, e.Value[:size], e.Value[size:], []byte(at))
	}
	if err != nil || json.Unmarshal(text, &r) != nil {
		return record{}, e.Revision, nil
	}
	r.older = older
	return r, e.Revision, nil
}

// loadLimit is how long a load is tried, for which a client waits: longer than the registry elects a leader.
const loadLimit = 10 * time.Second

// Load returns the record of a session that is ours, and takes it if nobody has it any more. An error that wraps [fs.ErrNotExist] says
// that there is none that is valid, and one that wraps an [Elsewhere] that another gateway has it. A registry that does not answer, or
// somebody else who changes the record, is tried again for 10 s.
func (s *Store) Load(key string) ([]byte, error) {
	for begun := time.Now(); ; time.Sleep(tryAgain) {
		text, err := s.load(s.key(key), key)
		again := errors.Is(err, engine.ErrUnknown) || errors.Is(err, engine.ErrConflict)
		switch {
		case err == nil:
			return text, nil
		case errors.Is(err, engine.ErrNotFound):
			return nil, fs.ErrNotExist
		case !again || time.Since(begun) >= loadLimit:
			return nil, fmt.Errorf("load a session: %w", err)
		}
	}
}

// load tries once. After ErrConflict it is worth another try.
func (s *Store) load(at, key string) ([]byte, error) {
	me, err := s.opts.Owner()
	if err != nil {
		return nil, err
	}
	r, revision, err := s.read(at)
	switch {
	case err != nil:
		return nil, err
	case !time.Now().Before(r.Until):
		return nil, engine.ErrNotFound
	case r.Owner == me && !r.older:
		s.note(me, key, revision)
		return r.Record, nil
	case r.Owner.At == me.At && r.Owner.Epoch < me.Epoch: // of the process that was here before, or of our own earlier time
	case r.taken():
		over := s.others.over(r.Owner)
		select {
		case <-over:
		default:
			if r.older {
				return nil, errOlder
			}
			return nil, &Elsewhere{At: r.Owner.At, Time: r.Owner.Holder, Over: over}
		}
	}
	r.Owner = me
	if revision, err = s.put(at, r, revision); err != nil {
		return nil, err
	}
	s.note(me, key, revision)
	return r.Record, nil
}

// note notes the revision of a record of ours. Those of an earlier time are forgotten: its sessions have ended here.
func (s *Store) note(me Owner, key string, revision engine.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if me != s.of {
		s.revisions, s.of = map[string]engine.Revision{}, me
	}
	s.revisions[key] = revision
}

func (s *Store) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.revisions, key)
}

// Save stores the record of a session that is ours until a time, in place of an earlier one. It returns when the registry has it, has not
// taken it for 30 s, or the lease is lost. An error that wraps an [Elsewhere] says that the session is not ours any more.
func (s *Store) Save(key string, text []byte, until time.Time) error {
	if !json.Valid(text) {
		return fmt.Errorf("save a session: %q is no JSON", text)
	}
	return s.write(func() error {
		if err := s.save(s.key(key), key, text, until); err != nil {
			return fmt.Errorf("save a session: %w", err)
		}
		return nil
	})
}

// write tries something until it was done. If the registry has just refused something for writeLimit it is tried once.
func (s *Store) write(try func() error) (err error) {
	s.mu.Lock()
	refused := s.refused
	s.mu.Unlock()
	for begun := time.Now(); ; time.Sleep(tryAgain) {
		err = try()
		again := errors.Is(err, engine.ErrUnknown) || errors.Is(err, engine.ErrConflict)
		if again && !refused && time.Since(begun) < writeLimit {
			continue
		}
		s.mu.Lock()
		s.refused = again
		s.mu.Unlock()
		return err
	}
}

// save tries once. After ErrConflict or ErrUnknown it is worth another try.
func (s *Store) save(at, key string, text []byte, until time.Time) error {
	me, err := s.opts.Owner()
	if err != nil {
		return err
	}
	s.mu.Lock()
	before := s.revisions[key]
	s.mu.Unlock()
	revision, err := s.put(at, record{Owner: me, Until: until.Round(0), Record: text}, before)
	switch {
	case err == nil:
		s.note(me, key, revision)
		return nil
	case !errors.Is(err, engine.ErrConflict):
		return err
	}
	// It is another revision: of an earlier try whose answer was lost, of what the registry has forgotten, or of somebody who has taken it.
	there, revision, missing := s.read(at)
	switch {
	case errors.Is(missing, engine.ErrNotFound):
		revision = 0
	case missing != nil:
		return missing
	case !there.Until.IsZero() && there.Owner != me:
		s.forget(key)
		return &Elsewhere{At: there.Owner.At}
	}
	s.note(me, key, revision)
	return err
}

// Release gives a session of ours back, so that whoever is asked for it next may take it. It is tried once.
func (s *Store) Release(key string) error {
	me, err := s.opts.Owner()
	if err != nil {
		return fmt.Errorf("release a session: %w", err)
	}
	at := s.key(key)
	r, revision, err := s.read(at)
	if err == nil && r.Owner == me {
		r.Owner = Owner{}
		_, err = s.put(at, r, revision)
	}
	if err != nil {
		return fmt.Errorf("release a session: %w", err)
	}
	s.forget(key)
	return nil
}

// Drop ends a session that is ours: in place of its record there is one that is over. It returns as Save does.
func (s *Store) Drop(key string) error {
	defer s.forget(key)
	return s.Save(key, []byte("null"), time.Unix(1, 0))
}

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
	// answerLimit is how long one answer of the registry is waited for. It is less than [LeaseOptions] leave between the end of one time
	// with the lease and the next.
	answerLimit = 2 * time.Second
	// tryAgain is the pause before a write is tried again.
	tryAgain = 200 * time.Millisecond
	// writeLimit is how long one write is tried: longer than the registry elects a leader. A registry that takes renewals of the lease and
	// not this for longer has no room, and others wait behind it.
	writeLimit = 30 * time.Second
)

// ErrElsewhere says that another machine has the sessions by now.
var ErrElsewhere = errors.New("another machine has the sessions of this gateway")

// Registry is what a store needs of an engine.
type Registry interface {
	lease.Registry
	Delete(ctx context.Context, key string) error
}

// Lease is the name of the lease of a gateway's sessions.
func Lease(gateway string) string { return "gateway/" + gateway }

// Own reports whether a key of the registry is one that the cores of gateways read and write.
func Own(key string) bool {
	return strings.HasPrefix(key, Table+".") || strings.HasPrefix(key, Leases()+".")
}

// Leases is how the keys of all gateways' leases begin, without the last dot.
func Leases() string { return lease.Key("gateway") }

// LeaseOptions are those of that lease. Clients wait while nobody has it, so it is shorter than the default; it outlasts an election of
// the engine (4 to 9 s).
func LeaseOptions() lease.Options {
	return lease.Options{TTL: 20 * time.Second, Renew: 4 * time.Second, Skew: 3 * time.Second}
}

// Options are a store's.
type Options struct {
	// Gateway is the gateway's name in the registry.
	Gateway string
	// Key encrypts the records: 32 bytes.
	Key []byte
	// Turn is our time with the lease.
	Turn Turn
}

// Turn is what a store needs of a [lease.Held].
type Turn interface {
	Term() (lease.Term, error)
	Raise(ctx context.Context, floor uint64) error
}

// Store is the sessions of one gateway. Its methods may be called from any goroutine; calls for one key must not overlap.
type Store struct {
	from Registry
	opts Options
	seal cipher.AEAD

	mu        sync.Mutex
	revisions map[string]engine.Revision // of the records that were read or written here
	refused   bool                       // the latest write was tried for writeLimit in vain; the next is tried once
}

// New returns the store of a gateway.
func New(from Registry, opts Options) (*Store, error) {
	block, err := aes.NewCipher(opts.Key)
	if err != nil {
		return nil, fmt.Errorf("the key of the sessions: %w", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil { // not reached: it is AES
		return nil, err
	}
	return &Store{from: from, opts: opts, seal: seal, revisions: map[string]engine.Revision{}}, nil
}

// record is what the registry has of a session, encrypted. Its words must not change: other versions read them.
type record struct {
	Epoch  uint64          `json:"epoch"` // of the lease by which it was written
	Until  time.Time       `json:"until"` // by the clock of the machine that has written it
	Record json.RawMessage `json:"record"`
}

func (s *Store) key(key string) string { return engine.Key(Table, s.opts.Gateway, key) }

// encrypt makes a value for the registry.
func (s *Store) encrypt(at string, r record) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, s.seal.NonceSize())
	_, _ = rand.Read(nonce) // it does not fail
	return s.seal.Seal(nonce, nonce, text, []byte(at)), nil
}

// decrypt returns false for what nobody with the key has written here.
func (s *Store) decrypt(e engine.Entry) (r record, ok bool) {
	size := s.seal.NonceSize()
	if len(e.Value) < size {
		return r, false
	}
	text, err := s.seal.Open(nil, e.Value[:size], e.Value[size:], []byte(e.Key))
	return r, err == nil && json.Unmarshal(text, &r) == nil
}

// Load returns a record. An error that wraps [fs.ErrNotExist] says that there is none that is valid; [ErrElsewhere], that it is not ours.
func (s *Store) Load(key string) ([]byte, error) {
	term, err := s.opts.Turn.Term()
	if err != nil {
		return nil, fmt.Errorf("load a session: %w", err)
	}
	r, revision, err := s.read(s.key(key))
	switch {
	case err != nil && !errors.Is(err, engine.ErrNotFound):
		return nil, fmt.Errorf("load a session: %w", err)
	case err != nil, !time.Now().Before(r.Until):
		return nil, fs.ErrNotExist
	}
	if err := s.outrank(term, r); err != nil {
		return nil, fmt.Errorf("load a session: %w", err)
	}
	s.note(key, revision)
	return r.Record, nil
}

// read reads what is there. What cannot be decrypted is the zero record.
func (s *Store) read(at string) (record, engine.Revision, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	e, err := s.from.Get(ctx, at)
	if err != nil {
		return record{}, 0, err
	}
	r, _ := s.decrypt(e)
	return r, e.Revision, nil
}

func (s *Store) note(key string, revision engine.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revisions[key] = revision
}

// Save stores a record until a time, in place of an earlier one. It returns when the registry has it, has not taken it for 30 s, or the
// lease is lost.
func (s *Store) Save(key string, text []byte, until time.Time) error {
	if !json.Valid(text) {
		return fmt.Errorf("save a session: %q is no JSON", text)
	}
	return s.write(func() error { return s.save(key, text, until) })
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
func (s *Store) save(key string, text []byte, until time.Time) error {
	term, err := s.opts.Turn.Term()
	if err != nil {
		return fmt.Errorf("save a session: %w", err)
	}
	at := s.key(key)
	value, err := s.encrypt(at, record{term.Epoch, until.Round(0), text})
	if err != nil {
		return fmt.Errorf("save a session: %w", err)
	}
	if len(value) > engine.MaxValue {
		return fmt.Errorf("save a session of %d KB: %w", len(value)>>10, engine.ErrTooLarge)
	}
	s.mu.Lock()
	before := s.revisions[key]
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	revision, err := s.from.CAS(ctx, at, value, before)
	switch {
	case err == nil:
		s.note(key, revision)
		return nil
	case !errors.Is(err, engine.ErrConflict):
		return fmt.Errorf("save a session: %w", err)
	}
	// It is another revision: of an earlier try whose answer was lost, of the time before us, or of somebody who has the lease now.
	there, revision, missing := s.read(at)
	switch {
	case errors.Is(missing, engine.ErrNotFound):
		revision = 0 // the registry has lost it
	case missing != nil:
		return fmt.Errorf("save a session: %w", missing)
	}
	if ours := s.outrank(term, there); ours != nil {
		return fmt.Errorf("save a session: %w", ours)
	}
	s.note(key, revision)
	return fmt.Errorf("save a session: %w", err)
}

// outrank makes sure that a record which somebody has written with a higher epoch was not written after our time: the lease is still
// ours if its epoch can be raised. So it is in a registry that has lost the lease and not the records.
func (s *Store) outrank(term lease.Term, r record) error {
	if r.Epoch <= term.Epoch {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	switch err := s.opts.Turn.Raise(ctx, r.Epoch); {
	case errors.Is(err, lease.ErrLost):
		return ErrElsewhere
	case err != nil:
		return fmt.Errorf("%w: %w", engine.ErrUnknown, err)
	}
	return nil
}

// Drop removes a record, if there is one. It returns when the registry has removed it, has not done so for 30 s, or the lease is lost.
func (s *Store) Drop(key string) error {
	s.mu.Lock()
	delete(s.revisions, key)
	s.mu.Unlock()
	return s.write(func() error { return s.drop(key) })
}

func (s *Store) drop(key string) error {
	if _, err := s.opts.Turn.Term(); err != nil {
		return fmt.Errorf("drop a session: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	if err := s.from.Delete(ctx, s.key(key)); err != nil {
		return fmt.Errorf("drop a session: %w", err)
	}
	return nil
}

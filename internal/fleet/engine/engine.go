package engine

import (
	"context"
	"errors"
)

var (
	// ErrNotFound says that the registry has no such key. A registry that has lost its content says so too.
	ErrNotFound = errors.New("no such key")
	// ErrConflict says that a key has another revision than the one that CAS was given: nothing was written.
	ErrConflict = errors.New("somebody else has changed the key")
	// ErrNoOwner says that nobody serves the address: the request was not delivered, so it may be sent again anywhere.
	ErrNoOwner = errors.New("nobody is at this address")
	// ErrUnknown says that no answer came in time: the write, or what was asked for, may have happened, or may still happen.
	ErrUnknown = errors.New("no answer in time: it may have happened")
	// ErrTooLarge says that a value or a message is larger than [MaxValue] or [MaxMessage]: nothing was written or sent.
	ErrTooLarge = errors.New("too large")
)

// MaxValue is how long a registry's value may be, MaxMessage how long a request or an answer of the bus, in bytes.
const (
	MaxValue   = 512 << 10
	MaxMessage = 1 << 20
)

// Revision is the number of a write, never 0. It rises with every write to a key, as long as the registry has not lost its
// content.
type Revision uint64

// Entry is what a registry has of one key.
type Entry struct {
	Key      string
	Value    []byte
	Revision Revision
}

// Change is what a watcher is told.
type Change struct {
	Entry
	// Gone says that the key was deleted, or is missing in a registry that has lost it. Value is nil, Revision may be 0.
	Gone bool
	// Synced says that everything that was there when the watch began has been told. The other fields are zero.
	Synced bool
}

// Registry keeps small values. Writes to one key have one order, and each of them one outcome. A read may be old (of a
// replica that is behind), so nothing is decided by a read alone: CAS decides.
//
// All methods may be called at the same time, do not keep or change the bytes that they are given, and end with their
// context: then the error is [ErrUnknown], and so it is when the registry does not answer.
type Registry interface {
	// Get returns what is known of a key, or ErrNotFound.
	Get(ctx context.Context, key string) (Entry, error)
	// Put writes a value, whatever is there. It is for keys with one writer.
	Put(ctx context.Context, key string, value []byte) (Revision, error)
	// CAS writes a value if the key has the revision before, or is not there if before is 0; otherwise ErrConflict.
	// A deleted key is not there.
	CAS(ctx context.Context, key string, value []byte, before Revision) (Revision, error)
	// Delete removes a key, whatever its revision. A key that is not there is no error.
	Delete(ctx context.Context, key string) error
	// Watch tells every key below one of the prefixes (the tokens of a key's beginning, without the last dot), then a Change with
	// Synced, then what changes. Leases and sessions cannot be watched together with other tables. Of several changes to one key
	// only the last need be told. After a gap the engine tells everything again, keys that have gone in the meantime as Gone, and
	// Synced; the receiver notices nothing else of it. The channel is closed when ctx ends. An error says that watching could not
	// begin.
	Watch(ctx context.Context, prefixes ...string) (<-chan Change, error)
}

// Handler answers one request of a machine, whose name is asker: the engine vouches for it, or has none ("").
// Requests come at the same time. The context ends when serving does; whether the asker still waits is not known.
type Handler func(ctx context.Context, asker string, request []byte) (answer []byte)

// Bus brings a request to the one machine that serves an address.
type Bus interface {
	// Request returns the answer of whoever serves address. The request is delivered at most once. The error is
	// ErrNoOwner (at once, if nobody serves the address), ErrUnknown (ctx ended before the answer, or the server stopped) or
	// ErrTooLarge (also of an answer).
	Request(ctx context.Context, address string, request []byte) (answer []byte, err error)
	// Serve hands the requests to an address to h until stop is called; stop ends the context of those that are being answered
	// and waits for them. An address is a key, see [Key], and has one server; a second one gets some of its requests or an error.
	Serve(address string, h Handler) (stop func(), err error)
}

// Engine is a registry and a bus of the same machines.
type Engine interface {
	Registry
	Bus
}

package tap

import (
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// readerMessages is how many messages wait for one reader, and readerBytes how many bytes of them; further ones are left out.
	readerMessages = 8192
	readerBytes    = 8 << 20
)

// Options are what a reader wants.
type Options struct {
	Server string // of several servers only this one; "": all
	Bodies bool   // the messages themselves, too
}

// Tap is where messages pass. nil is one that nobody can watch. Any goroutine may use it.
type Tap struct {
	mu      sync.Mutex
	readers atomic.Pointer[[]*Reader] // nil: nobody watches

	connections atomic.Uint64
}

// On reports whether anybody watches.
func (t *Tap) On() bool { return t != nil && t.readers.Load() != nil }

// Connect returns a number for one more connection, from 1 on; 0 if nobody can watch.
func (t *Tap) Connect() uint64 {
	if t == nil {
		return 0
	}
	return t.connections.Add(1)
}

// Put gives every reader a copy of the message, or counts it where there is no room. It never waits for a reader.
func (t *Tap) Put(m *Message) {
	if all := t.readers.Load(); all != nil {
		for _, r := range *all {
			r.put(m)
		}
	}
}

// Open begins to watch. The caller closes the reader.
func (t *Tap) Open(o Options) *Reader {
	r := &Reader{tap: t, opts: o}
	t.change(func(all []*Reader) []*Reader { return append(all, r) })
	return r
}

func (t *Tap) change(how func([]*Reader) []*Reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*Reader
	if old := t.readers.Load(); old != nil {
		all = slices.Clone(*old)
	}
	if all = how(all); len(all) == 0 {
		t.readers.Store(nil)
	} else {
		t.readers.Store(&all)
	}
}

// Reader is one who watches.
type Reader struct {
	tap  *Tap
	opts Options

	mu   sync.Mutex
	now  Batch // what has come since the last Take
	lost int   // messages since there was no room any more
}

// Batch is what a reader has taken. Its memory is used again.
type Batch struct {
	Messages []Message
	text     []byte // what the messages' slices are in, or in one that was there before it
}

// Close ends the watching.
func (r *Reader) Close() {
	r.tap.change(func(all []*Reader) []*Reader {
		return slices.DeleteFunc(all, func(one *Reader) bool { return one == r })
	})
}

// Take replaces what is in b by what has come since the last call, and returns how many messages after that were left out.
func (r *Reader) Take(b *Batch) (leftOut int) {
	clear(b.Messages)
	b.Messages, b.text = b.Messages[:0], b.text[:0]
	r.mu.Lock()
	defer r.mu.Unlock()
	*b, r.now = r.now, *b
	leftOut, r.lost = r.lost, 0
	return leftOut
}

func (r *Reader) put(m *Message) {
	if r.opts.Server != "" && r.opts.Server != m.Server {
		return
	}
	size := len(m.Method) + len(m.Target) + len(m.ID) + len(m.Call.Code) + len(m.Call.Traceparent) + len(m.Call.Tracestate)
	if r.opts.Bodies {
		size += len(m.Body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	full := len(r.now.Messages) >= readerMessages || len(r.now.text)+size > readerBytes && len(r.now.Messages) > 0
	if full || r.lost > 0 { // after the first one that is left out so are all: they are told in one place
		r.lost++
		return
	}
	one := *m
	one.Method, one.Target, one.ID = r.now.keep(m.Method), r.now.keep(m.Target), r.now.keep(m.ID)
	one.Call.Code, one.Call.Traceparent, one.Call.Tracestate = r.now.keep(m.Call.Code), r.now.keep(m.Call.Traceparent), r.now.keep(m.Call.Tracestate)
	if one.Body = nil; r.opts.Bodies {
		one.Body = r.now.keep(m.Body)
	}
	r.now.Messages = append(r.now.Messages, one)
}

// keep copies a text. When text grows the earlier ones stay where they are.
func (b *Batch) keep(text []byte) []byte {
	if text == nil {
		return nil
	}
	at := len(b.text)
	b.text = append(b.text, text...)
	return b.text[at:len(b.text):len(b.text)]
}

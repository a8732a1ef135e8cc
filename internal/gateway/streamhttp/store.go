package streamhttp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Store keeps the records of sessions. Its methods are called from any goroutine, but never two at once for one key, and may
// block: no message waits for them but initialize, the first one of a session that another process has opened, and
// DELETE. A failed Save or Drop is the store's to tell; the session goes on.
type Store interface {
	// Load returns the record under a key. An error that wraps fs.ErrNotExist says that there is none, and an Elsewhere that another
	// gateway has it; after any other the client is told to come back.
	Load(key string) ([]byte, error)
	// Save stores a record, one JSON value, in place of an earlier one. It counts until a time. An Elsewhere says that another gateway has
	// the session by now.
	Save(key string, record []byte, until time.Time) error
	// Drop removes the record of a session that has ended.
	Drop(key string) error
}

// storedFormat is the version of stored.
const storedFormat = 1

// stored is the record of a session. It has neither the session's id nor anything of a token: only who has both can make the
// owner's code again.
type stored struct {
	Format  int             `json:"format"`
	Owner   []byte          `json:"owner"`            // see ownerOf
	Version string          `json:"protocol_version"` // that was settled on
	Hub     json.RawMessage `json:"session"`          // what Peer.Keep was given
}

// recorded is what is to be stored of a session.
type recorded struct {
	owner []byte // see ownerOf

	order sync.Mutex // held while the store is called
	mu    sync.Mutex // leaf
	hub   []byte     // what Peer.Keep was given; nil: nothing is stored
	over  bool       // the session has ended, and with it the record
	left  bool       // it is another gateway's: nothing is stored any more
	saved time.Time  // when it was last stored, or that was tried
	stale bool       // what the store has is older, or nothing: storing it has failed
}

// leave has nothing stored any more. What is being stored is stored before.
func (r *recorded) leave() {
	r.order.Lock()
	defer r.order.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
}

// ownerOf identifies the principal of a session, and the view that it sees, to later processes.
func ownerOf(id string, who caller) []byte {
	h := hmac.New(sha256.New, []byte(id))
	_, _ = fmt.Fprintf(h, "%q sees %q", who.Whole, who.View) // it never fails
	return h.Sum(nil)
}

// keep takes what the hub wants to be stored.
func (f *Front) keep(s *session, record []byte) {
	s.record.mu.Lock()
	s.record.hub = record
	s.record.mu.Unlock()
	if s.protocol() != "" { // otherwise the answer to initialize is still to be written
		f.writer.later(s)
	}
}

// touchEvery is how often the record of a session in use is stored anew, so that it does not count as unused.
func (f *Front) touchEvery() time.Duration { return f.opts.SessionIdle / 4 }

// saveAgain is when what could not be stored is tried again, if the session is used then.
const saveAgain = 5 * time.Second

// touch notes that a session is in use.
func (f *Front) touch(s *session) {
	if f.opts.Store == nil {
		return
	}
	s.record.mu.Lock()
	long := f.touchEvery()
	if s.record.stale {
		long = min(long, saveAgain)
	}
	due := s.record.hub != nil && !s.record.saved.IsZero() && time.Since(s.record.saved) >= long
	s.record.mu.Unlock()
	if due {
		f.writer.later(s)
	}
}

// writer stores what has changed, on a goroutine that lives as long as there is anything.
type writer struct {
	front *Front

	mu      sync.Mutex
	dirty   map[*session]bool
	running chan struct{} // closed when the goroutine has ended; nil: there is none
}

// later stores a session soon. It does not block.
func (w *writer) later(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dirty == nil {
		w.dirty = map[*session]bool{}
	}
	w.dirty[s] = true
	if w.running == nil {
		w.running = make(chan struct{})
		go w.run()
	}
}

func (w *writer) run() {
	for {
		w.mu.Lock()
		batch := w.dirty
		w.dirty = nil
		if len(batch) == 0 {
			close(w.running)
			w.running = nil
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		for s := range batch {
			_ = w.write(s)
		}
	}
}

// busy reports whether something is being stored.
func (w *writer) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running != nil
}

// wait returns when nothing is left to be stored.
func (w *writer) wait() {
	w.mu.Lock()
	running := w.running
	w.mu.Unlock()
	if running != nil {
		<-running
	}
}

// write stores a session now. The error says that the store has not taken it; the store tells of it.
func (w *writer) write(s *session) error {
	store := w.front.opts.Store
	if store == nil {
		return nil
	}
	err := w.store(store, s)
	var elsewhere *Elsewhere
	if errors.As(err, &elsewhere) {
		s.record.leave()
		w.front.leaveTo(s)
	}
	return err
}

func (w *writer) store(store Store, s *session) error {
	r := &s.record
	r.order.Lock()
	defer r.order.Unlock()
	now := time.Now()
	r.mu.Lock()
	record := stored{Format: storedFormat, Owner: r.owner, Version: s.protocol(), Hub: r.hub}
	over, first, left := r.over, r.saved.IsZero(), r.left
	if record.Hub != nil {
		r.saved = now
	}
	r.mu.Unlock()
	switch {
	case left:
		return errNotNow // a session that was being opened is not
	case over && !first:
		return store.Drop(s.key)
	case over || record.Hub == nil || record.Version == "":
		return nil
	}
	// It was used up to a quarter of the time after it was last stored.
	text, err := json.Marshal(record)
	if err != nil { // the hub's part is no JSON
		return nil
	}
	err = store.Save(s.key, text, now.Add(w.front.opts.SessionIdle+w.front.touchEvery()))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stale = err != nil
	return err
}

// errNotNow says that a session may be there, but cannot be had now.
var errNotNow = errors.New("the session cannot be had now")

// wake makes a session that another process has opened, if its record is stored and it belongs to the caller. The caller's
// request is counted until left. The error is fs.ErrNotExist, an Elsewhere, or any other: it may be there, but not now.
func (f *Front) wake(id string, who caller) (*session, error) {
	if f.opts.Store == nil {
		return nil, fs.ErrNotExist
	}
	key := keyOf(id)
	done, first := f.table.wakes(key)
	for !first {
		<-done
		if s := f.find(id, who.Subject, who.View); s != nil {
			return s, nil
		}
		if who.passed {
			return nil, errNotNow // it was given away, and is for whoever passes this on
		}
		done, first = f.table.wakes(key)
	}
	defer f.table.woken(key, done)
	if s := f.find(id, who.Subject, who.View); s != nil { // it was made meanwhile
		return s, nil
	}
	text, err := f.opts.Store.Load(key)
	if err != nil {
		return nil, err
	}
	var record stored
	if json.Unmarshal(text, &record) != nil || record.Format != storedFormat || !mcp.IsLegacy(record.Version) ||
		!hmac.Equal(record.Owner, ownerOf(id, who)) {
		return nil, fs.ErrNotExist
	}
	return f.resume(id, who, record)
}

// wakes returns the channel that is closed when the session with this key has been made; first: the caller makes it.
func (t *table) wakes(key string) (done chan struct{}, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if done, ok := t.waking[key]; ok {
		return done, false
	}
	done = make(chan struct{})
	t.waking[key] = done
	return done, true
}

func (t *table) woken(key string, done chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waking, key)
	close(done)
}

// resume makes a session from its record.
func (f *Front) resume(id string, who caller, record stored) (*session, error) {
	s := f.newSession(id, who)
	s.use.Store(used)
	s.record.hub, s.record.saved = record.Hub, time.Now()
	// Streams and events have numbers that no earlier process can have used: there are fewer than one each microsecond.
	s.streamStore.before = uint64(time.Now().UnixMicro())
	s.streamStore.lastID = s.streamStore.before
	s.version.Store(record.Version)
	if !f.places.take(s.peer.Subject, 1, f.alone(s.peer.Subject)) {
		f.giveBack(s.key) // another gateway may have room
		return nil, errNotNow
	}
	s.general = s.streamStore.newEndless()
	hub, ok := f.hub.Resume(s.peer, record.Hub, s.general)
	s.hub = hub
	if !f.settle(s) {
		if ok {
			f.giveBack(s.key)
			return nil, errNotNow
		}
		return nil, fs.ErrNotExist
	}
	if !f.begin(s) {
		if f.serves() {
			return nil, fs.ErrNotExist
		}
		return nil, errNotNow
	}
	f.writer.later(s) // its time begins anew
	return s, nil
}

// goesOn reports whether the session has ended here only.
func (s *session) goesOn() bool {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return s.record.hub != nil && !s.record.over
}

// refuseOver answers a request that nobody has got, since its session has ended here.
func refuseOver(w http.ResponseWriter, s *session, id []byte, text string) {
	if s.goesOn() {
		refuse(w, id, refusal{status: http.StatusServiceUnavailable, text: "shutting down; the session goes on"})
		return
	}
	refuse(w, id, refusal{status: http.StatusNotFound, text: text})
}

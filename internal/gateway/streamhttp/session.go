package streamhttp

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// session is one client of the legacy era.
type session struct {
	id, key     string // see keyOf
	peer        Peer
	record      recorded
	hub         Session
	version     atomic.Value  // the protocol version that was settled on, a string
	over        chan struct{} // closed when it has ended
	streamStore streamStore

	calls sync.RWMutex // held for reading while the hub is called, for writing by Close and when over is closed

	attach  sync.Mutex // orders the calls of Attach
	general *stream    // the GET stream, guarded by attach; nil until the first GET, but where the session goes on from a record

	use   atomic.Int32  // opened, used or leaving
	given chan struct{} // closed when it was given to another gateway, or could not be

	expiry  *time.Timer // guarded by clock
	clock   sync.Mutex  // leaf
	since   time.Time   // when the last request ended
	present int         // requests under way
}

// table is the legacy sessions by their id.
type table struct {
	mu       sync.RWMutex
	sessions map[string]*session
	waking   map[string]chan struct{} // stored sessions that are being made or given away; closed when they are
	places   map[string]*Elsewhere    // where sessions of other gateways were found last
}

// open makes a session for a client, unless there are too many or the hub refuses; then it says why. The caller's request is
// counted until left.
func (f *Front) open(who caller) (s *session, why string) {
	s = f.newSession(rand.Text(), who)
	if !f.places.take(s.peer.Subject, 1, f.alone(s.peer.Subject)) {
		return nil, f.noPlace(s.peer.Subject)
	}
	s.hub = f.hub.Open(s.peer)
	if !f.settle(s) || !f.begin(s) {
		return nil, "no other session can be opened now"
	}
	return s, ""
}

// newSession makes a session without a hub's.
func (f *Front) newSession(id string, who caller) *session {
	s := &session{id: id, key: keyOf(id), peer: who.peer(), over: make(chan struct{}), given: make(chan struct{}), present: 1}
	s.streamStore.maxQueue, s.streamStore.maxStore = f.opts.QueueBytes, f.opts.StoreBytes
	if f.opts.Store != nil {
		s.record.owner = ownerOf(id, who)
		s.peer.Keep = func(record []byte) { f.keep(s, record) }
	}
	return s
}

// begin starts the clock of a session that the hub has made. false: the session has ended, because its owner's rights, or whether we have
// sessions, have changed just now.
func (f *Front) begin(s *session) bool {
	s.clock.Lock()
	s.since = time.Now()
	s.expiry = time.AfterFunc(f.opts.SessionIdle, func() { f.check(s) })
	s.clock.Unlock()
	switch {
	case !f.guard.rights.Load().allows(s.peer.Subject, s.peer.View):
		f.end(s)
		return false
	case !f.serves(): // it was ours a moment ago
		f.leaveTo(s)
		return false
	}
	return true
}

// settle puts a session into the place that it was given, or gives that back if the hub has made none.
func (f *Front) settle(s *session) bool {
	if s.hub == nil {
		f.places.give(s.peer.Subject, 1)
		return false
	}
	f.table.mu.Lock()
	defer f.table.mu.Unlock()
	f.table.sessions[s.key] = s
	return true
}

// keyOf is the key of a session, in the table and in the store. It is a hash, so that the lookup's timing reveals nothing of an id.
func keyOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// find returns the session with an id, this owner and this view, and counts the caller's request until left.
func (f *Front) find(id, owner, view string) *session {
	if !f.serves() {
		return nil
	}
	f.table.mu.RLock()
	s := f.table.sessions[keyOf(id)]
	f.table.mu.RUnlock()
	if s == nil || subtle.ConstantTimeCompare([]byte(s.peer.Subject), []byte(owner)) != 1 || s.peer.View != view || !s.visit() {
		return nil
	}
	return s
}

// remove takes a session out of its place. Only the first call has an effect.
func (f *Front) remove(s *session) {
	f.table.mu.Lock()
	there := f.table.sessions[s.key] == s
	if there {
		delete(f.table.sessions, s.key)
	}
	f.table.mu.Unlock()
	if there {
		f.places.give(s.peer.Subject, 1)
	}
}

func (t *table) all() []*session {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.sessions))
}

// visit counts a request, unless the session is over.
func (s *session) visit() bool {
	if closed(s.over) {
		return false
	}
	s.clock.Lock()
	defer s.clock.Unlock()
	s.present++
	return true
}

// closed reports whether a channel is closed that nothing is sent on.
func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// left ends what find began.
func (f *Front) left(s *session) {
	f.touch(s)
	s.clock.Lock()
	defer s.clock.Unlock()
	s.present--
	s.since = time.Now()
	if s.present == 0 && s.expiry.Stop() { // it has not been ended
		s.expiry.Reset(min(f.opts.SessionIdle, f.opts.SessionRelease))
	}
}

// check ends or releases an idle session, or comes back later.
func (f *Front) check(s *session) {
	running := s.streamStore.running()
	s.clock.Lock()
	alone := time.Since(s.since)
	present := s.present > 0
	var wait time.Duration // 0: the session is over
	switch idle := f.opts.SessionIdle; {
	case present:
		wait = idle
	case alone < idle:
		wait = idle - alone
	case running && alone < runningFactor*idle:
		wait = idle
	}
	away := !present && alone >= f.opts.SessionRelease
	if wait > 0 {
		next := wait
		switch {
		case !present && !away:
			next = min(wait, f.opts.SessionRelease-alone)
		case running: // there is something that must stay
			next = min(wait, f.opts.SessionRelease)
		case present && f.opts.Store != nil:
			next = min(wait, f.touchEvery())
		}
		s.expiry.Reset(next)
	}
	s.clock.Unlock()
	switch {
	case wait == 0:
		f.end(s)
		return
	case away:
		s.letGo()
	}
	if present {
		f.touch(s)
	}
}

// letGo tells the hub that the client is away.
func (s *session) letGo() {
	s.calls.RLock()
	defer s.calls.RUnlock()
	if !closed(s.over) {
		s.hub.Release()
	}
}

// runningFactor multiplies the idle time of a session without a connection while a request runs, since a server may
// never answer.
const runningFactor = 8

// end ends a session for good. Only the first call has an effect.
func (f *Front) end(s *session) {
	s.record.mu.Lock()
	s.record.over = true
	s.record.mu.Unlock()
	_ = f.writer.write(s) // first, or a request might find the record and go on with it
	f.leaveTo(s)
}

// leaveTo ends a session here: it goes on with the next front, if it is stored. Only the first call has an effect.
func (f *Front) leaveTo(s *session) {
	f.remove(s)
	s.calls.Lock()
	defer s.calls.Unlock()
	if closed(s.over) {
		return
	}
	s.clock.Lock()
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.clock.Unlock()
	s.streamStore.end()
	close(s.over)
	s.hub.Close()
}

// message gives a message to the hub. false: the session has ended.
func (s *session) message(line []byte, reply Stream) bool {
	s.calls.RLock()
	defer s.calls.RUnlock()
	if closed(s.over) {
		return false
	}
	s.hub.Message(line, reply)
	return true
}

// listen makes the caller the reader of the GET stream; after is the last number seen, if resumed.
func (s *session) listen(after uint64, resumed bool) (general *stream, r wake) {
	s.attach.Lock()
	defer s.attach.Unlock()
	s.calls.RLock()
	defer s.calls.RUnlock()
	if s.general == nil {
		s.general = s.streamStore.newEndless()
	}
	if resumed {
		r = s.general.from(after)
	} else {
		r = s.general.resume()
	}
	if !closed(s.over) {
		s.hub.Attach(s.general)
	}
	return s.general, r
}

// protocol is the version that was settled on; "": none yet.
func (s *session) protocol() string {
	version, _ := s.version.Load().(string)
	return version
}

package streamhttp

import (
	"encoding/json"
	"net"
	"net/http"
)

// Peers are the other gateways of the same configuration, each with its own servers. A request for what one of them has is passed on to it.
type Peers struct {
	// Here is the address at which the others reach Listener.
	Here string
	// Listener accepts connections of the others and of nobody else: what they say of a client is believed. Serve closes it.
	Listener net.Listener
	// Transport carries a request to a gateway, whose address is the host of the URL. A body with "Expect: 100-continue" is sent when that
	// gateway has asked for it: so one that ends, is killed or stands still has got nothing.
	Transport http.RoundTripper
	// StateKey seals where a call of a modern client goes on: 32 bytes, the same at all of them.
	StateKey []byte
	// Time names our time with the stored sessions: what is passed on for an earlier one is refused. ours reports whether they are still ours,
	// and is asked before anything of a session is taken or said. nil: they are, always.
	Time func() (name string, ours bool)
	// Release gives the stored session with a key back, so that whoever looks for it next may have it. nil: each stays where it is.
	Release func(key string) error
}

// Elsewhere is an error of Store.Load for a session that another gateway has, and of Save for one that it has by now.
type Elsewhere struct {
	// At is where that gateway takes what is passed on.
	At string
	// Time names that gateway's time with the sessions, see Peers.Time; "": it is not known.
	Time string
	// Over is closed when that gateway has ended, and somebody else may have the session. nil: that is not known.
	Over <-chan struct{}
}

// Error implements error.
func (e *Elsewhere) Error() string { return "the gateway at " + e.At + " has the session" }

// headerCaller names the caller of a request that is passed on.
const headerCaller = "Outlive-Caller"

// serves reports whether the sessions here are still ours.
func (f *Front) serves() bool {
	_, ours := f.time()
	return ours
}

// time is Peers.Time.
func (f *Front) time() (name string, ours bool) {
	if f.opts.Peers == nil || f.opts.Peers.Time == nil {
		return "", true
	}
	return f.opts.Peers.Time()
}

// sharesSessions reports whether other gateways look for sessions that were opened here.
func (f *Front) sharesSessions() bool { return f.opts.Peers != nil && f.opts.Peers.Release != nil }

// passedOn serves what another gateway has authorized and passed on.
func (f *Front) passedOn(w http.ResponseWriter, r *http.Request) {
	if f.leaving.Load() || !f.enter() {
		misdirected(w)
		return
	}
	defer f.requests.Done()
	welcome(w, r)
	if r.URL.Path != Path {
		http.NotFound(w, r)
		return
	}
	var who caller
	if fields := r.Header[headerCaller]; len(fields) != 1 || json.Unmarshal([]byte(fields[0]), &who) != nil {
		refuse(w, nil, refusal{status: http.StatusForbidden, text: "Forbidden: the request names no caller"})
		return
	}
	if now, _ := f.time(); who.Time != "" && who.Time != now { // whoever passes it on gives it up when it learns of the end of that time
		misdirected(w)
		return
	}
	rights := f.guard.rights.Load()
	// The other gateway may have read another configuration than this one.
	view, ok := f.choose(w, rights, who.Subject, who.View)
	if !ok {
		return
	}
	r.RemoteAddr = who.Remote
	who.View, who.replaced, who.passed = view, rights.replaced, true
	f.dispatch(w, r, who)
}

// Leave says that this gateway is about to end: whoever asks something from now on learns that nothing was done, and another gateway answers
// as soon as it may have the session. Requests in progress go on. Without other gateways that have its sessions it does nothing.
func (f *Front) Leave() {
	if f.sharesSessions() {
		f.leaving.Store(true)
	}
}

// misdirected tells another gateway that what it asks for is not here, and that nothing was done.
func misdirected(w http.ResponseWriter) { w.WriteHeader(http.StatusMisdirectedRequest) }

// A session of which nothing was asked yet is given to whoever passes its first request on. A load balancer that hashes session ids cannot
// bring the one that opens it to the same gateway as those that follow.

// The uses of a session.
const (
	opened  int32 = iota // nothing was asked of it here
	used                 // something was, or may have been elsewhere
	leaving              // it is given to another gateway
)

// use notes that something is asked of a session. gone: it is on its way to another gateway, or goes there now.
func (f *Front) use(s *session, who caller) (gone bool) {
	if !who.passed || !f.sharesSessions() {
		return !s.use.CompareAndSwap(opened, used) && s.use.Load() == leaving
	}
	if s.use.CompareAndSwap(opened, leaving) {
		f.handOver(s)
		close(s.given)
	}
	if s.use.Load() != leaving {
		return false
	}
	<-s.given // sooner nobody else can have it, and we would take it back for what is passed on next
	return true
}

// handOver lets whoever looks for a session next have it. If it cannot be given back it goes on here, from its record.
func (f *Front) handOver(s *session) {
	done, first := f.table.wakes(s.key)
	for ; !first; done, first = f.table.wakes(s.key) {
		<-done
	}
	defer f.table.woken(s.key, done)
	s.record.leave()
	f.leaveTo(s)
	f.giveBack(s.key)
}

// giveBack lets whoever looks for a session of ours next have it, which is not had here.
func (f *Front) giveBack(key string) {
	if !f.sharesSessions() {
		return
	}
	if err := f.opts.Peers.Release(key); err != nil {
		f.opts.Log.Debug("session not given to another gateway", "error", err)
	}
}

// mostPlaces is of how many sessions it is remembered where they were found last.
const mostPlaces = 1 << 16

// place is where a session of another gateway was found last; nil: it is not known, or that has ended.
func (t *table) place(key string) *Elsewhere {
	t.mu.RLock()
	defer t.mu.RUnlock()
	at := t.places[key]
	if at != nil && closed(at.Over) {
		return nil
	}
	return at
}

// setPlace notes where a session of another gateway is; nil: not there.
func (t *table) setPlace(key string, at *Elsewhere) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case at == nil:
		delete(t.places, key)
		return
	case t.places == nil || len(t.places) >= mostPlaces:
		t.places = map[string]*Elsewhere{}
	}
	t.places[key] = at
}

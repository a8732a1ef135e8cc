package streamhttp

import (
	"net/http"
	"sync"
	"sync/atomic"
)

// Front is the HTTP front of a Hub: an http.Handler for the MCP endpoint, the OAuth metadata and the extra handlers.
type Front struct {
	hub    Hub
	opts   Options
	gate   gate
	guard  guard
	table  table
	places *shares // of legacy sessions
	// underWay are the bytes of requests.
	underWay *shares
	writer   writer
	rounds   *rounds                     // nil: there are no other gateways
	drain    ending                      // of endless streams: GET streams and subscriptions/listen
	endless  atomic.Int64                // endless streams in progress
	stop     chan struct{}               // closed, under mu, when every request must end and no more are accepted
	conns    atomic.Pointer[connections] // of Serve's listeners
	leaving  atomic.Bool                 // this gateway is about to end, and others go on

	mu       sync.Mutex
	requests sync.WaitGroup // in progress
}

// New makes a front. The caller ends it with Close, or by the context given to Serve.
func New(hub Hub, opts Options) *Front {
	opts = opts.withDefaults()
	f := &Front{hub: hub, opts: opts, drain: ending{ch: make(chan struct{})}, stop: make(chan struct{})}
	f.places, f.underWay = newShares(int64(opts.MaxSessions)), newShares(opts.MaxUnderWay)
	f.gate = gate{opts.Hosts, opts.Origins}
	f.guard.init(opts.Bearer, opts.OAuth, opts.Views)
	f.table.sessions, f.table.waking = make(map[string]*session), make(map[string]chan struct{})
	f.writer.front, f.rounds = f, newRounds(opts.Peers)
	return f
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.enter() {
		refuse(w, nil, refusal{status: http.StatusServiceUnavailable, text: "shutting down"})
		return
	}
	defer f.requests.Done()
	stranger(w, r)
	no := f.gate.check(r)
	if no == "" {
		if err := f.checkPeer(r); err != nil {
			no = "Forbidden: " + err.Error()
		}
	}
	if no != "" {
		f.opts.Log.Debug("client refused", "reason", no, "remote", r.RemoteAddr)
		refuse(w, nil, refusal{status: http.StatusForbidden, text: no})
		return
	}
	if f.guard.open {
		welcome(w, r)
	}
	if f.gate.cors(w, r) {
		return
	}
	if view, ours := viewAt(r.URL.Path); ours {
		f.endpoint(w, r, view)
		return
	}
	if view, known := f.guard.describes(r.URL.Path); known {
		f.guard.describe(w, r, view)
		return
	}
	if extra := f.opts.Extra[r.URL.Path]; extra != nil {
		extra.ServeHTTP(w, r)
		return
	}
	http.Error(w, "404: nothing is here; MCP is at "+Path, http.StatusNotFound)
}

// endpoint serves the MCP endpoint, or a view of it, to an authorized client.
func (f *Front) endpoint(w http.ResponseWriter, r *http.Request, asked string) {
	rights := f.guard.rights.Load()
	who, ok := f.guard.admit(w, r, rights, asked)
	if !ok {
		f.opts.Log.Debug("client refused", "reason", "token", "remote", r.RemoteAddr)
		return
	}
	welcome(w, r)
	who.View, ok = f.choose(w, rights, who.Subject, asked)
	if !ok {
		f.opts.Log.Debug("client refused", "reason", "view", "remote", r.RemoteAddr)
		return
	}
	who.Remote, who.replaced = r.RemoteAddr, rights.replaced
	f.dispatch(w, r, who)
}

// dispatch serves a request of an authorized client.
func (f *Front) dispatch(w http.ResponseWriter, r *http.Request, who caller) {
	switch r.Method {
	case http.MethodPost:
		f.post(w, r, who)
	case http.MethodGet:
		f.get(w, r, who)
	case http.MethodDelete:
		f.delete(w, r, who)
	default:
		notAllowed(w, "GET, POST, DELETE")
	}
}

func (f *Front) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if closed(f.stop) {
		return false
	}
	f.requests.Add(1)
	return true
}

// Close ends all sessions and streams, and returns when no request is in progress and everything is stored. Stored
// sessions go on with the next Front. Later requests get 503. A second call does nothing.
func (f *Front) Close() {
	f.drain.begin()
	f.mu.Lock()
	if closed(f.stop) {
		f.mu.Unlock()
		f.requests.Wait()
		return
	}
	close(f.stop)
	f.mu.Unlock()
	f.leaveAll()
	f.requests.Wait()
	f.leaveAll() // those that were being opened
	f.writer.wait()
}

// LeaveSessions ends all sessions here, since they are ours no more. What is stored of them stays, for whoever goes on with them; when it
// returns nothing is being stored of them, nor will be, also if we have them again.
func (f *Front) LeaveSessions() {
	for _, s := range f.leaveAll() {
		s.record.leave()
	}
}

// leaveAll ends all sessions here, and returns them.
func (f *Front) leaveAll() []*session {
	all := f.table.all()
	for _, s := range all {
		f.leaveTo(s)
	}
	return all
}

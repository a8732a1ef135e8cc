package sharing

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
)

// requestMost is the maximum size of a request for a member, in bytes. Environments can be long.
const requestMost = 4 << 20

// Server is one shared server.
type Server interface {
	// Join makes whoever is at the other end of two descriptors its client, and closes them in the end.
	Join(in, out *os.File)
	// Restart replaces its processes, and returns when that is done.
	Restart(ctx context.Context, source supervise.Source, reason string) error
	// End ends the server.
	End()
}

// Options are a daemon's settings.
type Options struct {
	// Open starts a server under a name that no other server has. said is called from any goroutine with what the
	// server writes to its stderr.
	Open func(name string, r Request, said func([]byte)) (Server, error)
	// Idle is how long a server is kept without runs that use it.
	Idle time.Duration
}

// Daemon runs the shared servers of one user. It may be used from any goroutine.
type Daemon struct {
	opts Options
	mux  *http.ServeMux
	done chan struct{} // closed when the daemon is to end

	mu      sync.Mutex
	shares  map[string]*share  // by key
	members map[string]*member // by name
	ended   bool
}

// share is one server and the runs that use it. The daemon's lock guards it.
type share struct {
	key     string
	name    string
	request Request // of the first run
	server  Server
	members map[string]*member
	apart   map[string][]string // why another server of the same command is another one, by its key
	idle    *time.Timer         // nil: it has members
}

// member is a run's place at a server. Its name is unique among all daemons, because a request meant for a daemon that
// has ended must not reach another server at its successor.
type member struct {
	name    string
	request Request
	share   *share
	said    chan []byte
}

// pipesProtocol is what a connection becomes over which a run passes two pipes: one for lines to the server, one for lines
// from it.
const pipesProtocol = "mcp-pipes"

// passWithin is how long a run may take to pass them.
const passWithin = 10 * time.Second

// noSuchMember is the status for requests to a member of another daemon.
const noSuchMember = http.StatusMisdirectedRequest

// saidMost is how many pieces of stderr are queued for a run that does not read. Further ones are dropped for that
// run; the server's log has them.
const saidMost = 256

// NewDaemon returns a daemon without servers. It ends if no run connects within Options.Idle.
func NewDaemon(opts Options) *Daemon {
	d := &Daemon{opts: opts, mux: http.NewServeMux(), done: make(chan struct{}), shares: map[string]*share{}, members: map[string]*member{}}
	d.mux.HandleFunc("POST /v1/seat", d.take)
	d.mux.HandleFunc("POST /v1/seat/{member}/restart", d.restart)
	d.mux.HandleFunc("GET /v1/seat/{member}/join", d.connect)
	time.AfterFunc(opts.Idle, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.endIfUnused()
	})
	return d
}

// ServeHTTP implements http.Handler.
func (d *Daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.mux.ServeHTTP(w, r) }

// Done is closed when the daemon has no servers any more and accepts no runs.
func (d *Daemon) Done() <-chan struct{} { return d.done }

// member returns the member in the request's path; nil: there is none any more, as was answered.
func (d *Daemon) member(w http.ResponseWriter, r *http.Request) *member {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.members[r.PathValue("member")]
	if s == nil {
		http.Error(w, "no such member", noSuchMember)
	}
	return s
}

// said is one line of the response to a request for a member.
type said struct {
	Path   string `json:"path,omitempty"`   // path of the member, in the first line
	Server string `json:"server,omitempty"` // the server's name, in the first line
	Stderr []byte `json:"stderr,omitempty"` // output of the server
}

// take gives a run a member for as long as it stays connected.
func (d *Daemon) take(w http.ResponseWriter, r *http.Request) {
	var want Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, requestMost)).Decode(&want); err != nil || len(want.Command) == 0 {
		http.Error(w, "no request for a server", http.StatusBadRequest)
		return
	}
	s, err := d.join(want)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	if s == nil {
		http.Error(w, "the daemon is ending", http.StatusServiceUnavailable)
		return
	}
	defer d.leave(s)
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, lines := http.NewResponseController(w), json.NewEncoder(w)
	say := func(what said) bool { return lines.Encode(what) == nil && out.Flush() == nil }
	if !say(said{Path: "/v1/seat/" + s.name, Server: s.share.name}) {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case <-d.done:
			return
		case text := <-s.said:
			if !say(said{Stderr: text}) {
				return
			}
		}
	}
}

// connect takes the pipes that a run passes over the connection of its request, and makes the run a client of its server.
func (d *Daemon) connect(w http.ResponseWriter, r *http.Request) {
	s := d.member(w, r)
	if s == nil {
		return
	}
	conn, _, err := http.NewResponseController(w).Hijack() // the run says nothing before the answer
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(passWithin)) // a socket has one
	stream, ok := conn.(*net.UnixConn)
	if !ok {
		return
	}
	if _, err := stream.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + pipesProtocol + "\r\n\r\n")); err != nil {
		return // the run has ended
	}
	if in, out, err := receive(stream); err == nil { // otherwise the run has ended, or sees that its pipes have
		s.share.server.Join(in, out)
	}
}

// join makes a member, and starts the server if necessary; nil: the daemon is ending.
func (d *Daemon) join(want Request) (*member, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil, nil
	}
	key := want.Key()
	sh := d.shares[key]
	if sh == nil {
		sh = &share{key: key, name: d.freeName(want.Name), request: want, members: map[string]*member{}, apart: map[string][]string{}}
		server, err := d.opts.Open(sh.name, want, func(p []byte) { d.tell(sh, p) })
		if err != nil {
			d.endIfUnused()
			return nil, err
		}
		sh.server = server
		d.add(sh)
	}
	if sh.idle != nil {
		sh.idle.Stop()
		sh.idle = nil
	}
	s := &member{name: rand.Text(), request: want, share: sh, said: make(chan []byte, saidMost)}
	sh.members[s.name], d.members[s.name] = s, s
	return s, nil
}

// add adds a server. What keeps it apart from others is found once: a status would have to compare each with each.
func (d *Daemon) add(sh *share) {
	for _, other := range d.shares {
		if by := sh.request.Differences(other.request); len(by) > 0 {
			sh.apart[other.key], other.apart[sh.key] = by, by
		}
	}
	d.shares[sh.key] = sh
}

// remove removes a server.
func (d *Daemon) remove(sh *share) {
	delete(d.shares, sh.key)
	for _, other := range d.shares {
		delete(other.apart, sh.key)
	}
}

// freeName returns a name that no other server has.
func (d *Daemon) freeName(name string) string {
	taken := map[string]bool{}
	for _, sh := range d.shares {
		taken[sh.name] = true
	}
	free := name
	for n := 2; taken[free]; n++ {
		free = name + "-" + strconv.Itoa(n)
	}
	return free
}

// tell passes a server's stderr on to all runs that use it.
func (d *Daemon) tell(sh *share, p []byte) {
	text := slices.Clone(p)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range sh.members {
		select {
		case s.said <- text:
		default:
		}
	}
}

// leave removes a member with all its sessions.
func (d *Daemon) leave(s *member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sh := s.share
	delete(sh.members, s.name)
	delete(d.members, s.name)
	if len(sh.members) > 0 || d.ended {
		return
	}
	var idle *time.Timer
	idle = time.AfterFunc(d.opts.Idle, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if sh.idle != idle {
			return // a run has taken a member meanwhile
		}
		d.remove(sh)
		sh.server.End()
		d.endIfUnused()
	})
	sh.idle = idle
}

// endIfUnused ends the daemon if it has no servers. The caller holds the lock.
func (d *Daemon) endIfUnused() {
	if len(d.shares) == 0 && !d.ended {
		d.ended = true
		close(d.done)
	}
}

// End ends all servers, and the daemon.
func (d *Daemon) End() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, sh := range d.shares {
		delete(d.shares, key)
		sh.server.End()
	}
	d.endIfUnused()
}

// order is the body of a restart request.
type order struct {
	Reason  string `json:"reason"`
	Source  string `json:"source"`            // in the word of supervise.Source
	Stalled bool   `json:"stalled,omitempty"` // the source is the monitor, for an older outlive at the other end, which knows only this
}

// restart replaces the processes of a member's server.
func (d *Daemon) restart(w http.ResponseWriter, r *http.Request) {
	s := d.member(w, r)
	if s == nil {
		return
	}
	var o order
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, requestMost)).Decode(&o); err != nil {
		http.Error(w, "no order to restart", http.StatusBadRequest)
		return
	}
	source := supervise.SourceOf(o.Source)
	if o.Stalled {
		source = supervise.SourceMonitor
	}
	if err := s.share.server.Restart(r.Context(), source, o.Reason); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// Shared describes one server and its use.
type Shared struct {
	Name  string // of the server
	Runs  []Run  // that use it, the oldest first
	Apart []Apart
}

// Run is a run that uses a server.
type Run struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
}

// Apart is another server of the same command, and the reasons why the two are separate.
type Apart struct {
	Server string   `json:"server"`
	By     []string `json:"by"` // "$NAME" for a variable, "--name" for a setting, or "directory"
}

// Status returns the servers with the runs that use them, by name.
func (d *Daemon) Status() (all []Shared) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, sh := range d.shares {
		one := Shared{Name: sh.name}
		for _, s := range sh.members {
			one.Runs = append(one.Runs, Run{s.request.Name, s.request.PID})
		}
		slices.SortFunc(one.Runs, func(a, b Run) int { return cmp.Compare(a.PID, b.PID) })
		for key, by := range sh.apart {
			one.Apart = append(one.Apart, Apart{d.shares[key].name, by})
		}
		slices.SortFunc(one.Apart, func(a, b Apart) int { return cmp.Compare(a.Server, b.Server) })
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Shared) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

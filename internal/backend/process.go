package backend

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// Server is one running process as its backend acts on it. Lines are given without newline. Forward takes a slice of
// the line that is being handled and need not copy it; Send must copy.
type Server interface {
	// PID is the process's number: 0 for a server that runs elsewhere, Unborn before the process exists.
	PID() int
	Forward(line []byte)
	Send(line []byte)
	// Backlog is how many bytes given to the process the kernel has refused so far.
	Backlog() int
	// Unread is how many bytes the process has not taken from its stdin; ok is false where nobody can tell.
	Unread() (n int, ok bool)
	// CloseInput closes the process's stdin once everything given to it is written.
	CloseInput()
	// Terminate asks the process's group to end; Kill ends it with all its tree.
	Terminate()
	Kill()
	// Abandon stops reading what a dead process's descendants may still write.
	Abandon()
	// Continue lets a stopped process go on.
	Continue()
	// Vitals asks the system about the process.
	Vitals() Vitals
	// LastStderr returns the last lines the process wrote to stderr, oldest first.
	LastStderr(lines int) []string
}

// Unborn is the PID of a process that is still being started.
const Unborn = -1

// Launch is a process to be started.
type Launch struct {
	Gen    int
	Why    string // in words, for the process itself
	Anew   bool   // somebody wants new code: what is known of the command's last start may be out of date
	Beside bool   // another one serves meanwhile, whose client is not to wait for the start
}

// role is what a process is for.
type role uint8

const (
	serving role = iota // it gets what the client says; there is one, perhaps starting or dead
	spare               // it is brought up beside the serving one, to take over from it
	retired             // another one has taken over from it, or it is a spare nobody wants
)

// handshake is how far a process is with its handshake, initialize or server/discover. Before that is answered it is told
// nothing else: servers exist that never answer again when something else is the first they read.
type handshake uint8

const (
	unasked handshake = iota // it was told nothing
	asked                    // it was asked, and has not answered
	skipped                  // its client begins with something else, and speaks no version that it says: it is told what that says
	settled                  // it has answered
)

// process is one incarnation of the server.
type process struct {
	server  Server
	gen     int
	pid     int
	role    role
	started time.Time
	era     mcp.Era

	handshake handshake
	hearing   hearing
	trial     trial

	up          bool // spawned and not known to have exited
	restored    bool // the client's wishes are granted, the calls to be repeated are under way
	greeted     bool // it has answered the replayed handshake
	answered    bool // its handshake is done, or it needs none
	accepting   bool // requests may be handed to it
	draining    bool // requests in flight may finish, no new one begins
	initialized bool // it was told that the client is
	shut        bool // its stdin is closed
	exited      bool // exit seen; its output may still be coming
	closed      bool // its output has ended

	calls       int              // tool calls it was given
	sent        uint64           // bytes handed to its stdin
	undelivered uint64           // sent bytes it never took; known once it exited
	hasTools    bool             // it declared tools
	wishes      int              // answers to replayed wishes still awaited
	streams     [][]byte         // raw ids of listens that were asked for again, and not acknowledged yet
	listed      bool             // it has answered a request for a list
	unchecked   int              // lists of a spare still to be read
	fit         bool             // a spare that could serve now
	reload      bool             // a spare that takes over as soon as it can
	wish        supervise.Source // who wished for that
	startup     time.Duration    // from the spawn until it could serve

	shows        [mcp.Lists]mcp.Catalog // each list as it showed it last, or as it is believed to be; nil: unknown
	read         [mcp.Lists]bool        // it has shown the list itself
	before       [mcp.Lists]mcp.Catalog // the lists of the process it follows
	introduction string                 // a modern process's DiscoverResult
	noise        noise
	refusal      string // what it said in place of a handshake; "": it has not refused one
	ending       lastExit
	retirement   *supervise.Retirement // of a retired one

	heard    time.Time // the last line on its stdout
	wishesBy time.Time // replayed wishes have had their time
	drainBy  time.Time // its output has had its time after the exit
	closedBy time.Time // it has had its time to exit after it closed its stdout
}

// all yields every process that is not settled: the serving one first.
func (b *Backend) all(yield func(*process) bool) {
	if !yield(b.process) {
		return
	}
	for i := 0; i < len(b.beside); i++ {
		if !yield(b.beside[i]) {
			return
		}
	}
}

// Serving returns the process that gets what the client says; nil before one could be started.
func (b *Backend) Serving() Server { return b.process.server }

// byGen returns the process of a generation, nil for one that is settled.
func (b *Backend) byGen(gen int) *process {
	for p := range b.all {
		if p.gen == gen {
			return p
		}
	}
	return nil
}

// leave takes p out of the processes beside the serving one.
func (b *Backend) leave(p *process) {
	for i, one := range b.beside {
		if one == p {
			b.beside = append(b.beside[:i:i], b.beside[i+1:]...)
			return
		}
	}
}

// takes reports whether p can be given lines: what is given to a process that is gone must not count as sent.
func (p *process) takes() bool { return p.up && !p.shut }

func (p *process) forward(line []byte) {
	if p.takes() {
		p.sent += uint64(len(line)) + 1
		p.server.Forward(line)
	}
}

func (p *process) send(line []byte) {
	if p.takes() {
		p.sent += uint64(len(line)) + 1
		p.server.Send(line)
	}
}

// open reports whether the client's requests can be handed to p now.
func (p *process) open() bool { return p.ready() && p.server.Backlog() < slowServer }

// ready reports whether p takes requests, as far as it can be written to.
func (p *process) ready() bool { return p.accepting && !p.draining && !p.hearing.waits() }

// admits reports whether message m of the client can be handed to p now.
func (p *process) admits(m mcp.Method) bool {
	if m == mcp.Initialize || m == mcp.Discover {
		return p.open() || p.up && !p.draining && p.handshake == unasked
	}
	return p.open()
}

// deadline is when one of p's own times is over; the zero time: none runs.
func (p *process) deadline() time.Time {
	at := p.wishesBy
	for _, t := range []time.Time{p.drainBy, p.closedBy, p.trial.deadline()} {
		if at.IsZero() || !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	if p.retirement != nil && p.up {
		if t := p.retirement.Deadline(); at.IsZero() || !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	return at
}

// processTick does what is due for one process.
func (b *Backend) processTick(p *process) {
	due := func(t *time.Time) bool {
		if t.IsZero() || b.now.Before(*t) {
			return false
		}
		*t = time.Time{}
		return true
	}
	if due(&p.wishesBy) {
		b.restored(p)
	}
	if t := p.trial.deadline(); !t.IsZero() && !b.now.Before(t) {
		b.trialTick(p)
	}
	if due(&p.drainBy) {
		p.server.Abandon()
		b.outputEnded(p)
	}
	if due(&p.closedBy) {
		b.stdoutClosed(p)
	}
	if r := p.retirement; r != nil && p.up {
		b.carryOutFor(p, r.Tick(b.now))
	}
}

// stdoutClosed deals with a process that has closed its stdout and does not exit.
func (b *Backend) stdoutClosed(p *process) {
	if p.role == serving {
		b.step(supervise.StdoutClosed{Gen: p.gen})
		return
	}
	p.server.Kill()
}

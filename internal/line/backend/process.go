package backend

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Server is one running process as its backend acts on it.
type Server interface {
	Stdin
	Signals
	Looks
}

// Stdin is a process's stdin. Lines are given without newline. Forward takes a slice of the line that is being handled and
// need not copy it; Send must copy.
type Stdin interface {
	Forward(line []byte)
	Send(line []byte)
	// Backlog is how many bytes given to the process the kernel has refused so far.
	Backlog() int
	// CloseInput closes the process's stdin once everything given to it is written.
	CloseInput()
}

// Signals ends a process, or lets it go on.
type Signals interface {
	// Terminate asks the process's group to end; Kill ends it with all its tree.
	Terminate()
	Kill()
	// Abandon stops reading what a dead process's descendants may still write.
	Abandon()
	// Continue lets a stopped process go on.
	Continue()
}

// Looks is what can be seen of a process.
type Looks interface {
	// PID is the process's number: 0 for a server that runs elsewhere, Unborn before the process exists.
	PID() int
	// Unread is how many bytes the process has not taken from its stdin; ok is false where nobody can tell.
	Unread() (n int, ok bool)
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

// process is one incarnation of the server.
type process struct {
	server  Server
	gen     int
	pid     int
	role    role
	started time.Time
	era     mcp.Era

	phase   phase
	hearing hearing
	trial   trial

	initialized bool // it was told that the client is
	shut        bool // its stdin is closed
	closed      bool // its output has ended

	calls       int              // tool calls it was given
	sent        uint64           // bytes handed to its stdin
	undelivered uint64           // sent bytes it never took; known once it exited
	hasTools    bool             // it declared tools
	wishes      int              // answers to replayed wishes still awaited; none are after that counts as done
	streams     [][]byte         // raw ids of listens that were asked for again, and not acknowledged yet
	listed      bool             // it has answered a request for a list
	unchecked   int              // lists of a spare still to be read
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
	knocks   int       // questions that only want a sign of life, without an answer so far
	wishesBy time.Time // replayed wishes have had their time
	drainBy  time.Time // its output has had its time after the exit
	closedBy time.Time // it has had its time to exit after it closed its stdout
}

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

// deadline is when one of p's own times is over; the zero time: none runs.
func (p *process) deadline() time.Time {
	at := p.wishesBy
	for _, t := range []time.Time{p.drainBy, p.closedBy, p.trial.deadline()} {
		if at.IsZero() || !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	if p.retirement != nil && p.up() {
		if t := p.retirement.Deadline(); at.IsZero() || !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	return at
}

// heardSince reports whether p has said anything since a time, on its stdout or on its stderr.
func (p *process) heardSince(t time.Time) bool {
	return p.up() && (!p.heard.Before(t) || !p.server.Vitals().HeardAt.Before(t))
}

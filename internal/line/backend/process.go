package backend

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
	"github.com/outlive-mcp/outlive/internal/keep/health"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// Server is the backend's access to one running process. Lines for its stdin are given without newline. Forward takes a slice of
// the line being handled and need not copy it; Send must copy.
type Server interface {
	Forward(line []byte)
	Send(line []byte)
	// Backlog is how many bytes for the process the kernel has not accepted yet.
	Backlog() int
	// CloseInput closes the process's stdin after everything queued is written.
	CloseInput()

	// Terminate asks the process group to end; Kill kills the whole tree.
	Terminate()
	Kill()
	// Abandon stops reading what descendants of a dead process may still write, and ends all connection with a stuck one.
	Abandon()
	// Continue lets a stopped process go on.
	Continue()

	// PID is the process ID: 0 for a remote server, NotSpawned before the process exists.
	PID() int
	// Unread is how many bytes the process has not read from its stdin; ok is false if that is not known.
	Unread() (n int, ok bool)
	// Vitals asks the system about the process.
	Vitals() Vitals
	// LastStderr returns the last lines the process wrote to stderr, oldest first.
	LastStderr(lines int) []string
	// Installing reports whether the process is a launcher that may install its server and has not started it yet.
	Installing() bool
}

// NotSpawned is the PID of a process that is still being started.
const NotSpawned = -1

// Launch is a process to be started.
type Launch struct {
	Gen    int
	Why    string // reason, given to the process itself
	Anew   bool   // new code is wanted: a resolved command may be out of date
	Beside bool   // another one serves meanwhile, whose client must not wait for the start
}

// role is what a process is for.
type role uint8

const (
	serving role = iota // it gets the client's messages; there is one, perhaps starting or dead
	spare               // it comes up beside the serving one, to take over
	retired             // another one has taken over, or the spare is not needed
)

// process is one incarnation of the server.
type process struct {
	server  Server
	showing *showing
	gen     int
	pid     int
	role    role
	started time.Time
	era     mcp.Era

	phase   phase
	hearing hearing
	trial   trial

	initialized bool // it was sent notifications/initialized
	again       bool // it was asked the second initialize of its client, and has not answered
	shut        bool // its stdin is closed
	closed      bool // its output has ended

	calls           int              // tool calls it was given
	sent            uint64           // bytes handed to its stdin
	undelivered     uint64           // sent bytes that it never read; known after its exit
	toolsAsked      bool             // one that declares none was asked for them
	pendingSettings int              // replayed settings not yet answered; later answers do not count
	streams         [][]byte         // raw ids of listens that were requested again and not acknowledged
	listed          bool             // it has answered a request for a list
	unchecked       int              // lists of a spare still to be read
	reload          bool             // a spare that takes over as soon as it can
	requestedBy     supervise.Source // who requested that
	startup         time.Duration    // from the spawn until it could serve

	shows      [mcp.Lists]mcp.Catalog // each list as it last showed it, or as it is assumed to be; nil: unknown
	read       [mcp.Lists]bool        // it has shown the list itself
	before     [mcp.Lists]shownList   // the lists of the processes it follows
	remembered mcp.Catalog            // its tools as remembered, see flow.toolsOf; nil: not asked for
	offer      []byte                 // raw result of its handshake; nil: it had none
	noise      noise
	mends      mends
	refusal    string // its error for the handshake; "": none
	ending     lastExit
	retirement *supervise.Retirement // of a retired one
	overtime   *health.Watch         // of its calls alone, once it takes no new ones

	heard          time.Time // the last line on its stdout
	stalled        bool      // the monitor says that calls which it has do not go on
	livenessProbes int       // probes of its liveness without an answer so far
	settingsBy     time.Time // deadline of the replayed settings
	levelBy        time.Time // until when requests wait for it to confirm its client's log level; zero: none is unconfirmed
	drainBy        time.Time // deadline of its output after the exit
	closedBy       time.Time // deadline of its exit after it closed its stdout
	endBy          time.Time // deadline of its exit after it was killed
}

// offerDigest is a digest of p's handshake result; "": it had none.
func (p *process) offerDigest() string {
	if p.offer == nil {
		return ""
	}
	return digest(p.offer)
}

// shownList is a list with the digest of the handshake result of the process that has shown it.
type shownList struct {
	list  mcp.Catalog
	offer string
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

// say sends p a message of outlive's own.
func (p *process) say(line []byte) {
	if p.takes() {
		p.showing.passed(line, tap.Outlive, tap.Server, p.gen, "")
	}
	p.send(line)
}

// deadline is the earliest of p's own deadlines; zero: none.
func (p *process) deadline() time.Time {
	at := deadline.Earliest(p.settingsBy, p.levelBy, p.drainBy, p.closedBy, p.endBy, p.trial.deadline())
	if p.retirement != nil && p.up() {
		at = deadline.Earliest(at, p.retirement.Deadline())
	}
	return deadline.Earliest(at, p.overtimeDeadline())
}

// overtimeDeadline is when the calls of a process that takes no new ones must be looked at; zero: never.
func (p *process) overtimeDeadline() time.Time {
	if p.overtime == nil || !p.up() {
		return time.Time{}
	}
	return p.overtime.Deadline()
}

// heardSince reports whether p has said anything since a time, on its stdout or on its stderr.
func (p *process) heardSince(t time.Time) bool {
	return p.up() && (!p.heard.Before(t) || !p.server.Vitals().HeardAt.Before(t))
}

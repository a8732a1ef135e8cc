package health

import "time"

// Look is the system's information about the process.
type Look struct {
	// CPU is the time, user and system, that the process and all its descendants have used since the start.
	CPU time.Duration
	// Known says that CPU was read and is the server's. It is false for a command that only represents the server,
	// such as docker run, ssh or a bridge to another machine. Without it a server is never condemned for its use of
	// CPU time.
	Known bool
	// State is the leader's, in the letters of proc(5): R S D T t Z; 0: unknown.
	State byte
	// Unread is the number of unread bytes in its stdin; also 0 if that is unknown.
	Unread int
}

// View is everything a [Watch] looks at, taken at the moment of the [Watch.Tick]. The server's output up to then has
// to be read before.
type View struct {
	Look
	// InFlight is the number of requests without an answer, not counting the probes of this package.
	InFlight int
	// Oldest is, for the call in flight that has been without a sign for longest, when it was sent or last showed
	// progress.
	Oldest time.Time
	// Heard is when the last byte came from the server's stdout or stderr. Zero: never.
	Heard time.Time
	// Held says that the server's output is not being read, because the client does not read it. Then the server may
	// be blocked.
	Held bool
}

// Probe is a request that only tests whether there is an answer. An error is one, too.
type Probe uint8

const (
	// Ping is the protocol's ping.
	Ping Probe = iota
	// Lists is a request that every server must answer: tools/list, in the era from 2026-07-28 server/discover.
	Lists
)

// Action is something that the owner has to do. The actions are the types of this file.
type Action interface{ action() }

// Send sends a probe. The owner reports the answer, however late it comes, by [Watch.ProbeAnswered].
type Send struct{ Probe Probe }

// Continue continues a stopped process: SIGCONT to its group.
type Continue struct{}

// Overdue ends calls: those that were sent, or last showed progress, at Until or before. The owner answers each with
// an error, after which it is no longer in flight.
type Overdue struct{ Until time.Time }

// Suspect is only to be reported: a round of probes has failed and there is another sign against the server.
type Suspect struct {
	Reason string // in words, with figures
}

// Cleared follows a Suspect: the server has given a sign of life.
type Cleared struct{}

// Condemn is the verdict that the server hangs, and the last action of a [Watch].
type Condemn struct {
	Reason string // in words, with figures
}

func (Send) action()     {}
func (Continue) action() {}
func (Overdue) action()  {}
func (Suspect) action()  {}
func (Cleared) action()  {}
func (Condemn) action()  {}

package health

import "time"

// Look is what the system tells about the process.
type Look struct {
	// CPU is the time, user and system, that the process and everything it started have used since the start.
	CPU time.Duration
	// Known says that CPU was read and is the server's. It is not for a command that only stands for the server, such as
	// docker run, ssh or a bridge to another machine. Without it no server is condemned for its use of CPU time.
	Known bool
	// State is the leader's, in the letters of proc(5): R S D T t Z; 0: unknown.
	State byte
	// Unread is the number of bytes in its stdin that nobody has read; 0 also if that cannot be known.
	Unread int
}

// View is everything a [Watch] looks at, taken at the moment of the [Watch.Tick]: what the server has written by then is
// to be read first.
type View struct {
	Look
	// InFlight is the number of requests the server owes an answer to, without the probes of this package.
	InFlight int
	// Oldest is, of the call in flight that has gone longest without a sign, when it was sent or last showed progress.
	Oldest time.Time
	// Heard is when the last byte came from the server's stdout or stderr. Zero: never.
	Heard time.Time
	// Held: the server's output is not being read, because the client does not take it. Then it may well be stuck.
	Held bool
}

// Probe is a question that only wants to see whether there is an answer. An error is one, too.
type Probe uint8

const (
	// Ping is the protocol's ping.
	Ping Probe = iota
	// Lists is a question that a server cannot leave unanswered: tools/list, in the era from 2026-07-28 server/discover.
	Lists
)

// String returns the probe's name as it stands in reasons.
func (p Probe) String() string {
	if p == Ping {
		return "ping"
	}
	return "list request"
}

// Action is something the owner is to do. The actions are the types of this file.
type Action interface{ action() }

// Send asks the server. The owner tells the answer, however late it comes, by [Watch.ProbeAnswered].
type Send struct{ Probe Probe }

// Continue lets a stopped process go on: SIGCONT to its group.
type Continue struct{}

// Overdue ends calls: those that were sent, or last showed progress, at Until or before. The owner answers each with an
// error, and from then on it is no longer in flight.
type Overdue struct{ Until time.Time }

// Suspect is only to be reported: a round of probes has failed and something else speaks against the server, too.
type Suspect struct {
	Reason string // in words, with figures
}

// Cleared follows a Suspect: the server has shown that it lives.
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

package health

import "time"

// Options of a [Watch]. The zero value works.
type Options struct {
	// CallTimeout is how long a call may go without a sign of progress. 0: no limit; its client ends it.
	CallTimeout time.Duration
	// NoPing says that this server has no ping: its era has none (2026-07-28), or it is known not to answer.
	NoPing bool
	// Off disables watching: there is never a probe, and never a verdict. Only CallTimeout still counts.
	Off bool
}

const (
	// every is the time without a sign of life after which an idle server is probed, and the minimum time between two
	// pings. A server that always answers is probed less and less often, down to once in slowest.
	every = 15 * time.Second
	// slowest is the longest interval between two looks at an idle server.
	slowest = time.Minute
	// patience is how long to wait for the answer to one probe.
	patience = 5 * time.Second
	// enoughRounds is how many rounds of probes must fail while the server uses no CPU time. Three times as many are needed
	// if it keeps a core busy, ten times as many if it uses some CPU time but does not read its stdin.
	enoughRounds = 2
	// afterwork is how long a server that has sent nothing since a call may continue with it after the client has
	// cancelled it: many servers cannot be interrupted, and answer nothing until they are done.
	afterwork = time.Minute
)

// doubled is twice d, but never slower than slowest.
func doubled(d time.Duration) time.Duration { return min(2*d, slowest) }

package health

import "time"

// Options of a [Watch]. The zero value works.
type Options struct {
	// Every is the time without a sign of life after which an idle server is probed, and the minimum time between two
	// pings. A server that always answers is probed less and less often, down to once a minute. 0: 15 s.
	Every time.Duration
	// Patience is how long to wait for the answer to one probe. 0: 5 s.
	Patience time.Duration
	// Rounds is how many rounds of probes must fail while the server uses no CPU time. Three times as many are needed
	// if it keeps a core busy, ten times as many if it uses some CPU time but does not read its stdin. 0: 2.
	Rounds int
	// CallTimeout is how long a call may go without a sign of progress. 0: no limit; its client ends it.
	CallTimeout time.Duration
	// Afterwork is how long a server that has sent nothing since a call may continue with it after the client has
	// cancelled it: many servers cannot be interrupted, and answer nothing until they are done. 0: 1 min.
	Afterwork time.Duration
	// NoPing says that this server has no ping: its era has none (2026-07-28), or it is known not to answer.
	NoPing bool
	// Off disables watching: there is never a probe, and never a verdict. Only CallTimeout still counts.
	Off bool
}

const (
	defaultEvery     = 15 * time.Second
	defaultPatience  = 5 * time.Second
	defaultRounds    = 2
	defaultAfterwork = time.Minute
)

// slowest is the longest interval between two looks at an idle server.
const slowest = time.Minute

func (o Options) orDefault() Options {
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.Rounds <= 0 {
		o.Rounds = defaultRounds
	}
	if o.Afterwork <= 0 {
		o.Afterwork = defaultAfterwork
	}
	return o
}

// doubled is twice d, but never slower than once a minute, unless the options themselves are.
func (o Options) doubled(d time.Duration) time.Duration { return min(2*d, max(o.Every, slowest)) }

package supervise

import "slices"

// State is the state of the supervised thing.
type State uint8

// The states.
const (
	Stopped  State = iota // not started yet, asleep, or over
	Starting              // a process runs that has not shown that it is up
	Serving               // it is up; its name is "ready"
	Stopping              // it is being ended
	Sweeping              // its leader is dead; the rest of its tree and its output are not yet dealt with
	Backoff               // no process runs; the next one is waited for
	Failed                // no process runs; the breaker is open, or the set-up is wrong
)

// String returns the state as a word, the one that status shows.
func (s State) String() string { return stateWords[s] }

var stateWords = [...]string{
	Stopped: "stopped", Starting: "starting", Serving: "ready", Stopping: "stopping", Sweeping: "sweeping", Backoff: "backoff", Failed: "failed",
}

// stands reports whether the thing works, or rests because nothing of it is needed. Otherwise it is down: it ends, or comes up, or
// cannot.
func (s State) stands() bool { return s == Stopped || s == Serving }

// Cause is why a process ended, is being ended, or was restarted. The first reason counts: a process that is restarted
// on request and then exits 1 was restarted on request.
type Cause uint8

// The causes.
const (
	NoCause       Cause = iota // nothing has happened to it; of a start: the first one
	Clean                      // it exited 0 by itself
	Requested                  // a restart was requested, see Source
	Crash                      // it exited unexpectedly
	StartFail                  // it did not come up; counts as a crash
	Misconfigured              // it exited with a code that means its set-up is wrong
	ProbeExit                  // it died of a protocol probe; counts as nothing
	Replace                    // its owner wanted a fresh process at once; counts as nothing
	Shutdown                   // the whole thing is to end
	Unhealthy                  // it no longer answers; counts as a crash
	Memory                     // it took too much memory; counts as a crash
	Idle                       // it was idle; not counted
)

// String returns the cause as one or two words, as the audit log shows it.
func (c Cause) String() string { return causeWords[c] }

var causeWords = [...]string{
	NoCause: "none", Clean: "clean", Requested: "requested", Crash: "crash", StartFail: "start_failed", Misconfigured: "misconfigured",
	ProbeExit: "probe", Replace: "replace", Shutdown: "shutdown", Unhealthy: "unhealthy", Memory: "memory", Idle: "idle",
}

// planned reports whether the process's end was intended.
func (c Cause) planned() bool {
	return c == Clean || c == Requested || c == ProbeExit || c == Replace || c == Shutdown || c == Idle
}

// crash reports whether the tracker counts the process's end as a crash.
func (c Cause) crash() bool {
	return c == Crash || c == StartFail || c == Unhealthy || c == Memory
}

// Source is who requested a restart.
type Source uint8

// The sources. A request of the process itself, or because of its resource use, does not reset the breaker and the
// failures; every other one does.
const (
	NoSource      Source = iota
	SourceExit           // the process, by its exit code (WD-2)
	SourceMarker         // the process, by the marker on its stderr (TP-1)
	SourceTool           // the agent, by the restart_server tool (RT-1)
	SourceSignal         // a person, by SIGHUP
	SourceControl        // a person, by `outlive restart`
	SourceWatch          // a watched file changed
	SourceLimit          // memory, age or number of calls; the next process may run the same code
	SourceMonitor        // outlive monitor: an agent waits for a call that does not go on
)

// String returns the source as a word.
func (s Source) String() string { return sourceWords[s] }

var sourceWords = [...]string{
	NoSource: "none", SourceExit: "exit", SourceMarker: "marker", SourceTool: "tool", SourceSignal: "signal", SourceControl: "control",
	SourceWatch: "watch", SourceLimit: "limit", SourceMonitor: "monitor",
}

// SourceOf is the source of that word. A word of another version is SourceControl.
func SourceOf(word string) Source {
	if at := slices.Index(sourceWords[:], word); at > 0 {
		return Source(at)
	}
	return SourceControl
}

// own reports whether the request came from the process itself or is about this one process only.
func (s Source) own() bool { return s == SourceExit || s == SourceMarker || s == SourceLimit }

// endCause is why a process ends or has ended.
type endCause struct {
	cause  Cause
	source Source
	reason string
}

// because notes it. The first reason wins.
func (e *endCause) because(c Cause, s Source, reason string) {
	if e.cause == NoCause {
		*e = endCause{c, s, reason}
	}
}

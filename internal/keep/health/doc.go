// Package health decides whether a running server still works: when to look at it, when to send it a request (a
// probe), and when its silence means that it hangs.
//
// A health check that kills healthy servers is worse than none. So silence alone is never sufficient: a [Watch] sends
// probes only while no call is waiting for its answer, confirms an unanswered probe in another way, and also requires
// a passive sign, such as a stdin that is not read or a process that has used no CPU time. If the silence has another
// explanation (a call, a debugger, a stopped process, a busy disk, a loaded machine, a suspend, a client that does
// not read the server's output, outlive itself not having run), the waiting starts again or takes longer.
//
// At the default settings a server with nothing in flight that neither reads nor answers counts as hung 20 s after the
// first probe that it leaves unanswered if it uses no CPU time, 3 min after it if it keeps one core busy, and 15 min
// after it if it uses some CPU time. An idle server is probed once a minute: from the moment that it hangs the 20 s are
// about 70 s.
//
// The same looks show whether a call is worked on by a server that can answer nothing meanwhile ([Watch.Worked]).
//
// The package is pure: no clock and no I/O. The owner takes a [View], calls [Watch.Tick] at [Watch.Deadline], and
// carries out the actions at once or not at all: they are valid only for the moment of the View. It starts no
// goroutine. A Watch belongs to one goroutine and to one process, from the moment that this process serves.
package health

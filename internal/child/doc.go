// Package child is one operating system process and everything it started: spawn, streams, exit, and the end of its
// whole process group.
//
// [Start] makes the pipes itself and starts one goroutine for each process. That goroutine waits for the leader's exit
// (on Linux in the runtime's poller, without a thread), kills what is left of the group while the dead leader still
// holds the group's number, reaps the leader, calls onExit once and ends. Nothing else runs; a caller that wants the
// process gone calls [Process.Kill] and waits for onExit.
//
// Our ends of the pipes belong to the caller, who closes them. They stay readable after the exit, so output written
// just before the death is never lost. Those of stdin and stdout are plain blocking descriptors outside the runtime's
// poller, because the event loop that uses them waits for them itself and each message would wake the poller as well:
// a reader in an ordinary goroutine occupies a thread, knows no deadlines, and is ended by the end of the stream, not by
// Close. Stderr is an ordinary pipe.
package child

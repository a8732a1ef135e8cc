// Package child is one operating system process and everything it started: spawn, streams, exit, and the end of its
// whole tree.
//
// [Start] makes the pipes itself and starts one goroutine for each process. That goroutine waits for the end in the
// runtime's poller, without a thread where the system allows, calls onExit once and ends. Nothing else runs; a caller
// that wants the process gone calls [Process.Kill] and waits for onExit.
//
// # The keeper
//
// On Linux nothing that was started survives, however its server or outlive itself ends. A second process of the same
// program, the keeper, starts all servers and is their parent. It is a subreaper: whoever loses its parent becomes its
// child, whatever session it made for itself. [RunKeeperIfAsked] is its main; one goroutine, locked to its thread, does
// everything in it, and one more turns SIGCHLD into a wake-up. What it owns: the processes, their pidfds, their reaping.
// What outlive owns: the pipes, and its ends of the sockets.
//
//   - A socket from outlive to the keeper carries the start requests, with descriptors: the streams and the keeper's end
//     of a channel for each process. When outlive ends, so does this socket; the keeper then asks everything to go, kills
//     it after half a second, and ends when nobody is left.
//   - The channel, a socket for each process, carries the answer, with a pidfd, and later the exit. Its end without
//     such a report says that the keeper is gone.
//   - At an exit the keeper kills the group while the dead leader still holds the group's number, then the
//     descendants that have become its children until there are none, reaps the leader and reports.
//   - Servers get SIGKILL from the kernel when the keeper dies. Their orphans become outlive's children, which is a
//     subreaper too and ends them; the next start starts the next keeper.
//   - When both are killed at once, [SweepStrays] finds what is left, at the start of any later outlive.
//
// An owner tag says whose descendant a process is, see tag_linux.go. Where no keeper can be started, processes are started
// directly, as on other systems: [Mechanisms] tells. With Inherit the keeper is in our session and the processes in our group.
//
// # Streams
//
// Our ends of the pipes belong to the caller, who closes them. They stay readable after the exit, so output written
// just before the death is never lost. Those of stdin and stdout are plain blocking descriptors outside the runtime's
// poller, because the event loop that uses them waits for them itself and each message would wake the poller as well:
// a reader in an ordinary goroutine occupies a thread, knows no deadlines, and is ended by the end of the stream, not by
// Close. Stderr is an ordinary pipe.
package child

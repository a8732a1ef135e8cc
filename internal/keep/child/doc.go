// Package child is one operating system process and everything it started: spawn, streams, exit, and the end of its
// whole tree.
//
// [Start] makes the pipes itself and starts one goroutine for each process. That goroutine waits for the end, with a keeper in
// the runtime's poller and without a thread, calls onExit once and ends. Nothing else runs; to end a process, call
// [Process.Kill] and wait for onExit.
//
// # The keeper
//
// On Linux nothing that was started survives, however its server or outlive itself ends. A second process of the same
// program, the keeper, starts all servers and is their parent. It is a subreaper: orphans become its children, whatever
// session they made for themselves. Whatever program links this package is its own keeper: the package's init is the
// keeper's main, and runs before the initialisers of what this package does not import. One goroutine, on the first
// thread, does everything in it, and one more turns SIGCHLD into a wake-up. The keeper owns the processes, their pidfds
// and their reaping; outlive owns the pipes and its ends of the sockets.
//
//   - A socket from outlive to the keeper carries the start requests, with descriptors: the streams and the keeper's end of a
//     channel for each process. When outlive ends, the socket closes; the keeper then terminates everything, kills what is left
//     after half a second, and ends when no process is left.
//   - The channel, a socket for each process, carries the answer, with a pidfd, and later the exit. If it closes without such a
//     report, the keeper is gone.
//   - At an exit the keeper kills the group while the dead leader still holds the group's number, then the descendants that have
//     become its children until there are none, reaps the leader and reports.
//   - The kernel kills the servers when the keeper dies. Their orphans become children of outlive, which is a subreaper too and
//     ends them; the next start starts the next keeper.
//   - If both are killed at once, any later outlive finds what is left at its start, by [SweepStrays].
//
// An owner tag says which server a descendant belongs to, see tag_linux.go. If no keeper can be started, processes are
// started directly, as on other systems; [Mechanisms] reports that. On Windows each server is in a job object that is
// nested in outlive's (tree_windows.go): the kernel ends what is in it. With Inherit the keeper is in our session and the
// processes in our group.
//
// # Streams
//
// Our ends of the pipes belong to the caller, who closes them. They stay readable after the exit, so that output written
// just before it is not lost. Those of stdin and stdout are plain blocking descriptors outside the runtime's poller,
// because the event loop that uses them polls them itself, and each message would wake the runtime's poller as well. A
// reader in an ordinary goroutine occupies a thread, has no deadlines, and is ended by the end of the stream, not by
// Close. Stderr is an ordinary pipe.
package child

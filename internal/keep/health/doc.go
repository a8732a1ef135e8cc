// Package health decides whether a server that runs still works: when to look at it, when to ask it something, and when
// its silence means that it hangs.
//
// A health check that kills healthy servers is worse than none. So silence alone never condemns: a [Watch] asks only
// while nobody waits for a call, confirms in another way what got no answer, and then wants a passive sign too, such as
// a stdin that nobody reads or a process that has used no CPU time at all. What explains the silence otherwise (a call,
// a debugger, a stopped process, a busy disk, a loaded machine, a suspend, a client that does not take the server's
// output, outlive itself not having run) begins the waiting anew or makes it longer.
//
// A healthy server may be deaf and mute, with nothing in flight, for 20 s at the default settings when it uses no CPU
// time, for 3 min when it keeps one core busy, and for 15 min when it uses some CPU time; then it is hung as far as
// anyone can tell.
//
// The room is pure: no clock and no I/O. The owner looks ([View]), calls [Watch.Tick] when [Watch.Deadline] has come, and
// carries out the actions at once or not at all: they hold for the moment of the look. It starts no goroutine. A Watch
// belongs to one goroutine and to one process, from the moment that this process serves.
package health

package child

import "time"

// Usage is the present resource use of a process and its descendants.
type Usage struct {
	// RSS is resident memory in bytes: the private pages of every process of the tree, and the shared pages (libraries,
	// mapped files) of the process that has most of them. A plain sum would count a runtime's libraries once for every
	// process; the exact proportional figure makes the kernel walk all pages. Pages shared since a fork are counted for
	// each process. On Windows it is the sum of the working sets.
	RSS int64
	// CPU is user and system time of all processes, including reaped descendants. It falls when a descendant dies that
	// is not waited for.
	CPU time.Duration
	// State is the leader's as in /proc: R running, S sleeping, D in the kernel, T stopped, t traced, Z dead and not
	// reaped, I idle. 0: unknown. It is T also if a descendant is stopped, since a launcher only waits.
	State byte
	// Processes counts the living ones with the leader, without zombies.
	Processes int
}

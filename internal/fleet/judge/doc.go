// Package judge does what needs more than one machine: it notices that a machine is silent, and makes one message of a cause that
// several machines share.
//
// # What stays on each machine
//
// A machine's own monitor judges its agents, mends them, and tells people, whether the machine is in a fleet or not. It sees
// files and processes, which nobody else does; its database makes each recovery and each message one; and it goes on
// while the machine is cut off. A judge far away would know less, later, and would need a second owner for each agent: the harm of
// two owners is what a fleet has to prevent in the first place. So there is no sharding of agents either. The guarantees hold
// because they are the machine's:
//
//   - one recovery for one cause: nobody recovers an agent but its own monitor. What people want of it from elsewhere is a command of
//     outlive that runs on the agent's machine.
//   - nothing is forgotten: a monitor that is killed goes on from its database, and one whose machine is gone is noticed here.
//   - one message: a monitor tells of its own agents alone. What several machines could tell of is told here, once.
//
// # What is done here
//
// Each machine writes a [Digest] to "digest.<host>", which all who look read, too. One [Run] of all machines' has the lease "judge" and
// reads them. Its cases are:
//
//   - silent: the digests of a machine have stopped, by the judge's own clock. Then the machine is asked over the bus. Nobody there:
//     its program has ended. No answer: the machine is cut off, or stopped. An answer: it works, and only its digests are lost.
//   - machines: three or more that fell silent within a beat of each other are one case, which names them.
//   - shared: a trouble with a cause beyond one machine, such as an account's limit. Its machines leave it to the judge while they
//     reach the fleet ([Reliance]); one that is cut off tells by itself, and says so in its next digest.
//
// Each case is a record in "esc.<kind>.<subject>", which only CAS changes:
//
//	(none) ──> sending(epoch) ──> sent(machine) ──> over ──> sending, the next episode
//	   └──> pending ──┘ while nobody can be told
//
// A later holder takes over what an earlier one has left: what is pending is sent, what was being sent is sent again and marked as
// repeated, since no channel can be asked whether it has a message. That is the only way to a second one. A judge whose channel does
// not work gives the lease up, so that another machine tries.
//
// # Goroutines
//
// Run works in its caller's, with that of the engine's watch, and one for each machine that is being asked; all end with the context.
package judge

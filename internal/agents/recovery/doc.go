// Package recovery says what is done about a stalled agent: how high on the ladder of recovery one goes, and whether now.
//
//	restart its MCP server → observe → nudge → interrupt → resume → restart → fresh session → tell a human
//
// [Decide] is given a [Problem] (what is wrong, in the caller's words), the [History] of what was done
// before, the owner's [Policy], what the agent [Capabilities] allow, and the [Fleet] of all agents, and answers with a
// [Decision]. What keeps a watchdog from doing harm is here, and nowhere else:
//
//   - budgets are times, not counters, so that a window is one, and outlasts a kill of the monitor;
//   - what was done has a deadline until which new evidence is awaited, and only then the next rung is tried;
//     an agent has recovered when its evidence went on ([Prove]), never because a process could be started;
//   - the ladder begins from below only after the agent was well for [Policy.StableAfter];
//   - starts that follow each other too fast open the [Breaker]; after a cooldown that doubles, one try is allowed;
//   - only some agents of a host, and of an account, start at once, in the order in which they asked ([Fleet]);
//   - agents that fail together are one [Mass]: one is tried first, the others wait;
//   - a diagnosis of low confidence, or of a monitor that sees nothing, never touches a process.
//
// # How it is used
//
// Once a tick the owner hands all problems to [Fleet.See], then calls Decide for each of them and gives the answer to
// [Fleet.Note]. Everything but [Nothing] and [Escalate] is written down as an [Act] ([Decision.Act]) before it is done. An
// act that was not done, because the agent came back at the last moment, gets Refunded, and [Fleet.Refund] is told.
// When an agent is well, [Prove] marks what was done for it, and if that is news, [Fleet.Recovered] is told.
//
// # Who owns what
//
// Everything here is a value or a pure function: no clock, no chance, no I/O. The package starts no goroutine. Fleet's
// methods return the changed fleet and leave their receiver as it was.
package recovery

// Package monitor keeps unattended agents running: it tells a stalled agent from a working one, helps it, and asks a
// human when that does not work.
//
// One look (a round) always has these steps:
//
//	registry, files, processes ──gather──> diagnose.Evidence ──Classify──> Diagnosis ──recovery.Decide──> Decision ──> act, incident
//	      (project.go, gather*.go)                                                            (handle.go)  (act.go, executor.go, incidents.go)
//
// Decisions are pure and made in other packages: diagnose judges the evidence, recovery decides what to do, incident
// decides whom to notify and when. This package gathers, records and acts.
//
// A home has one registry: version 2 with declared agents, which are watched by their heartbeats, their CLI's files, hooks,
// our wrapper and their processes (gather.go), or PIV's, which agents write heartbeats into (project.go).
//
// An agent may wait for a call of an MCP server that outlive keeps alive. The servers of this user ([Servers], handed in) are
// asked how they stand, every 15 s and at each look while somebody waits for one; a server belongs to an agent if its client
// is the agent's process or a descendant (servers.go). A call that does not go on is a reason to restart the server, not
// the agent. A server that is paused, cannot start or wants a login for a minute, while its client lives, is an incident of its
// own, told by the agent's channels (servertrouble.go).
//
// A session or a process belongs to an agent only if it is not that of a CLI which the agent has started itself (nested.go).
// What is known of those only holds back what would end them.
//
// Each part of a round owns its results: stateCache what was seen of each agent (agentstate.go), ledger what was done and what
// all agents share (ledger.go), executor the steps of running recoveries (executor.go, nonrestart.go), incidents the
// notifications of humans (incidents.go; the database steps: incident.go). They live for one look. The database and the Monitor keep what must last.
//
// How each agent stands is kept for a week, and when there was a look (verdicts.go); the dashboard shows an agent's night from it.
//
// # A PIV registry is a dialect
//
// A project is translated once, where the registry is read, into a declared agent with PIV's policies ([Options.ofProject]):
//
//	key, path           name and directory, of kind piv
//	[Options.Command]   start.cmd; no resume, nudge, environment, done or match is declared
//	heartbeat, PID      kept as written: what the registry has in place of the identity of a process
//	phases              where a new process goes on
//	the file            a registry that sets nothing: no channel, digest, zone or address ([unset])
//
// Three policies hold what differs: [diagnose.PIV] lets beats decide, [recovery.PIV] looks up and counts by PIV's types, and
// [incident.Policy] has PIV's words. [agent.isProject] reports that they hold. What stays special, and why:
//
//   - Whether the process lives is judged from a number and a heartbeat. A number that another process has now says that the agent is dead
//     (PIV-25). A pidfile that names a stranger says that nothing may be started beside it. So neither replaces the other.
//   - The file has many writers: it is replaced by its last good copy, gets the status and process of each restart and escalation (PIV-21),
//     and an entry that vanishes is trouble. Version 2 is its owner's, who may remove an agent and hears of mistakes.
//   - A project that beats is judged by its entry alone. The table of processes, hooks, pings and servers are not read for it, so it shares
//     no cause with others. Right before an act its entry is compared again. Its end is not announced, its open message not changed.
//   - Our wrapper is not put before its command, since nothing is on its streams (PIV-9).
//
// What is stored has the keys and words that it had before: "entry" is the project's, "declared" is left out. So each release finds what
// another one has kept, and a restart that was begun is completed.
//
// # Who owns what
//
// [Monitor.Run] is the loop; its goroutine owns registry, recoveries, fleet and sources. Beside it run one sender for
// each channel and the listeners for answers (notifiers.go); package process has one goroutine for the ends of agents,
// package agentcli and fsnotify one each for files. Run starts them; [Monitor.Close] stops them and waits. Other
// goroutines change only the database, in one transaction each; they read an immutable snapshot of the registry.
//
// # Crash only
//
// State that outlasts a run is in monitor.db (SQLite, one transaction for each step). An action is recorded before it is
// performed, with what identifies its result. After a kill the next run completes it: no restart is forgotten or done
// twice, no escalation lost. A message that may have been sent when the run was killed is sent once more, and says so. A
// button press and its request are stored in one transaction with the offset in the bot's updates.
//
// # What is never done
//
// The monitor writes no heartbeats: signs of life come from the agent. Looking changes nothing ([Inspect]). Unreadable
// evidence never leads to a kill. Nothing is started before every process of the old agent is known to be dead.
package monitor

// Package monitor keeps unattended agents moving (S4): it reads the registry that the agents beat into, tells a stalled
// one from a working one, ends and restarts it, and asks a human when that does not help.
//
// The way of one look, always the same:
//
//	registry, manifest, processes ──> Evidence ──Classify──> Verdict ──Decide──> Action ──> recovery or incident
//	        (evidence.go)                      (classify.go)           (recovery.go)       (act.go, incident.go)
//
// [Classify] and [Decide] are pure: clock and history are arguments. The rule table is data.
//
// # Who owns what
//
// [Monitor.Run] is the loop; the goroutine that calls it owns the registry, the recoveries and the incidents. One more
// goroutine, the postman, which Run starts and waits for, sends what is in the outbox, so that a slow Bot API holds up
// nobody. One small goroutine for each started orchestrator reaps it and ends with it. They share the database only.
//
// # Crash only
//
// Everything that outlasts a run is in monitor.db (SQLite, one transaction for each step). An action is written down
// before it is done, with what identifies its result, and [Monitor.reconcile] brings to an end what a killed monitor
// has left half done: a restart is neither forgotten nor done twice, an escalation neither lost nor repeated.
//
// # What is never done
//
// The monitor writes no heartbeat: a sign of life comes from the agent. Looking changes nothing. What cannot be read is
// no reason to kill. Nothing is started until everything of the old orchestrator is known to be dead.
package monitor

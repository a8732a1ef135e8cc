// Package monitor keeps unattended agents moving (S4, and beyond): it tells a stalled agent from a working one, helps it,
// and asks a human when that does not help.
//
// The way of one look, always the same:
//
//	registry, files, processes ──gather──> diagnose.Evidence ──Classify──> Verdict ──remedy.Decide──> Decision ──> act, incident
//	      (project.go, gather*.go)                                                            (treat.go) (act.go, smallact.go, incident.go)
//
// What decides is pure and stands in other rooms: package diagnose says what the evidence comes to, package remedy what is done about
// it, package escalate whom one tells and when again. This room looks, writes down, and carries out.
//
// A home holds one registry: S4's, which agents beat into (project.go), or one of version 2, whose agents are declared and
// watched by what they show (gather.go): heartbeats, their CLI's own files, hooks, our wrapper, their processes.
//
// # Who owns what
//
// [Monitor.Run] is the loop; the goroutine that calls it owns registry, recoveries, fleet and sources. Beside it run the
// postmen, one for each channel, and whoever listens for answers (telling.go); package process has one goroutine for the
// ends of agents, package vendors and fsnotify one each for files. Run starts them, [Monitor.Close] ends and waits for
// them. Others change only the database, each thing within one transaction, and what they share of the registry is the
// last reading of it, which nobody changes.
//
// # Crash only
//
// Everything that outlasts a run is in monitor.db (SQLite, one transaction for each step). An action is written down
// before it is done, with what identifies its result, and what a killed monitor has left half done is brought to an end:
// a restart is neither forgotten nor done twice, an escalation neither lost nor repeated. A press of a button, and what it
// wishes, are one transaction with the place in the bot's updates.
//
// # What is never done
//
// The monitor writes no heartbeat: a sign of life comes from the agent. Looking changes nothing ([Inspect]). What cannot
// be read is no reason to kill. Nothing is started until everything of the old agent is known to be dead.
package monitor

// Package monitor keeps unattended agents moving (PIV, and beyond): it tells a stalled agent from a working one, helps it,
// and asks a human when that does not help.
//
// The way of one look, always the same:
//
//	registry, files, processes ──gather──> diagnose.Evidence ──Classify──> Verdict ──recovery.Decide──> Decision ──> act, incident
//	      (project.go, gather*.go)                                                            (treat.go)  (act.go, executor.go, incidents.go)
//
// What decides is pure and stands in other rooms: package diagnose says what the evidence comes to, package recovery what is done about
// it, package incident whom one tells and when again. This room looks, writes down, and carries out.
//
// A home holds one registry: PIV's, which agents beat into (project.go), or one of version 2, whose agents are declared and
// watched by what they show (gather.go): heartbeats, their CLI's own files, hooks, our wrapper, their processes.
//
// A round is one look, and its parts own what comes of it: sightings what was seen of each agent (sight.go), ledger what was done
// and what all agents share (ledger.go), executor the steps of what is being done (executor.go, smallact.go), incidents what
// humans are told (incidents.go; the steps of one of them in the database: incident.go), panes what herdr shows (herdr.go). Each is made for one look; what lasts is the database's and
// the Monitor's.
//
// # Who owns what
//
// [Monitor.Run] is the loop; the goroutine that calls it owns registry, recoveries, fleet and sources. Beside it run the
// senders, one for each channel, and whoever listens for answers (telling.go); package process has one goroutine for the
// ends of agents, package agentcli and fsnotify one each for files. Run starts them, [Monitor.Close] ends and waits for
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

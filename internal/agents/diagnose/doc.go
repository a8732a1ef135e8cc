// Package diagnose derives from the evidence about an agent what state it is in.
//
//	Evidence (what was seen at one look) + Policy (what is expected) ──Classify──> Diagnosis (which rule, what it means)
//
// [Classify] is pure: [Evidence] holds ages instead of instants, already corrected for the times at which the machine
// slept, so that the same line of a log always gets the same diagnosis. The rules are an ordered table: the first that
// holds decides. [Explain] shows every rule with its answer in words. The scenarios of testdata/scenarios are scripts of
// looks with the expected diagnoses. What a session does, waits for and fails with is named as in agentcli; only its times
// are different, ages here.
//
// # How the table is ordered
//
// The first rules decide whether there is anything to judge: an agent that is not watched, evidence that cannot be
// read, a process that has ended or has only just begun. Then comes what is seen of a living agent, the most reliable
// evidence first: what the agent and its hooks report (tier [Hook]), what its files show ([File]), what its process
// shows ([Process]), and last what is only inferred, mostly from silence ([Guess]). A weaker tier never pre-empts a
// stronger one.
//
// # What is never concluded
//
// Missing evidence is not evidence. If a source has become unreadable, or was not read completely ([Evidence.Missing];
// [Evidence.Unread] says what of it), every diagnosis that it could have refuted has low confidence, and such a diagnosis
// is no reason to kill ([Diagnosis.MayKill]). So while any source is missing, no living agent is ended. An agent of which
// nothing is known is called blind or unobserved, not hung. Where two sources contradict each other, neither is used.
//
// What CLIs show that the agent has started itself ([Evidence.Nested]) is never the agent's state. It only shows that
// something of it is at work: whoever acts asks [Diagnosis.EndsWork] first.
//
// # Servers
//
// An agent may wait for a call of an MCP server that outlive keeps alive ([Evidence.Servers]). The server's outlive knows
// more of it than the agent's files show: since when the call is there, whether the server has reported progress, and
// whether it works at all. A server that a person must mend (paused, cannot start, wants a login) makes waiting_server,
// which is no reason to end anything. A call that has neither gone on nor kept the server's processes busy for longer
// than a tool may take makes server_hung: the server is to be restarted, not the agent.
//
// # Goroutines
//
// Starts no goroutine, reads no clock and no file, keeps no state: everything is an argument and belongs to the
// caller.
package diagnose

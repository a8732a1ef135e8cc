// Package diagnose says what the evidence about an agent comes to.
//
//	Evidence (what was seen at one look) + Policy (what is expected) ──Classify──> Verdict (which rule, what it means)
//
// [Classify] is pure: [Evidence] holds ages instead of instants, already corrected for the times at which the machine
// slept, so that the same line of a log is judged the same for ever. The rules are a table, in which order is meaning:
// the first that holds decides. [Explain] shows every rule with its answer in words, and [Replay] judges a recorded log
// again. The nights of testdata/nights are scripts of looks with what must come out.
//
// # How the table is ordered
//
// First what says whether there is anything to judge: an agent that nobody watches, evidence that cannot be read, a
// process that has ended or has only just begun. Then what is seen of a living agent, the surest first: what the agent
// and its hooks say themselves (tier [Hook]), what its files show ([File]), what its process shows ([Process]), and
// last what is only concluded, mostly from silence ([Guess]). A weaker tier never pre-empts a stronger one.
//
// # What is never concluded
//
// Missing evidence is not evidence: a source that has become unreadable ([Evidence.Missing]) makes every verdict that it
// could have refuted a low one, and a low one is no reason to kill ([Verdict.MayKill]). So while any source is missing, no
// living agent is ended. An agent of which nothing is
// known is called blind or unobserved, not hung. Where two sources contradict each other, neither is believed.
//
// # Goroutines
//
// Starts no goroutine, reads no clock and no file, keeps no state: everything is an argument and belongs to the caller.
package diagnose

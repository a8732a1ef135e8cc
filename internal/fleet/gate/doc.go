// Package gate brings a command to the one machine that has the agent, and lets that machine decide whether it is obeyed.
//
//	Send ──bus──> Gate: the same command again? older than the term obeyed last? ──> Agents: is it still the incarnation? ──> done
//
// Three things make sure that what is wrong with an agent is mended once, whatever fails between the machines:
//
//  1. A program that commands by itself holds a lease, so mostly one does (package lease). That saves work and is not relied on.
//  2. Every command of a program carries its term. A [Gate] keeps the highest epoch that it has obeyed of each lease on disk, writes it
//     down before it obeys, and refuses a lower one, and an equal one of another holder; it names that floor, and [Send] raises the
//     holder's epoch above it. So a holder that was stopped and wakes up late is refused, and an engine that has lost its
//     content, whose epochs begin at 1 again, cannot make anything happen twice.
//  3. Every command names the incarnation of the agent that it was decided on. [Agents] does it only if that is still the
//     agent's, and what is done makes the next one, in one step that a kill cannot divide. So two commands for one cause have one
//     effect even if both pass everything above; and so has a command beside what the machine's own monitor does.
//
// A person's command has no term: the person has looked, and the incarnation is what was seen.
//
// An answer may be lost. So a command has an id; it is sent again with the same one, and a Gate answers what it has carried out from
// memory, which a kill does not lose. What was begun when the machine was killed is not begun again: then the incarnation is
// another one, and the answer says so. The trouble, if it is still there, is one of the next incarnation.
//
// A Gate starts no goroutine; the engine calls it in its own.
package gate

// Package incident is what happens between a stall that needs a human and its end: whom one tells, how often, when the
// next one is asked, what a press of a button means, and what is kept until the morning.
//
//	open ──sent──> notified ──ack──> acknowledged ──lapses──> notified
//	  │               │  no answer: next tier, repeats, then expired
//	  └───────────────┴──────── recovered, gone ────────> resolved ──the same again within ten minutes──> open
//
// [Step] is the machine: an [Incident], an [Event], the owner's [Policy] and the time give the incident as it is then
// and the [Effect]s that the caller has to bring about. Every text is made here ([Compose], [Digest.Message]) as a plain
// [Message], which any channel can show. There is one message for each incident, changed in place; a reminder is a short
// one of its own, because a change makes no sound.
//
// What the caller does: keep incidents (they are plain data) together with what the effects put into its outbox, in one
// transaction; find the incident that an event belongs to ([Incident.Continues]: the same agent, class and phase; another
// class is another incident, and an acknowledgement does not reach it); call Step with a [Timer] at the time that [SetTimer]
// names. A timer that comes early or twice does nothing, one that comes late is made up for.
//
// Everything here is a value or a pure function: no clock, no chance, no I/O; one-time words for buttons are arguments.
// The package starts no goroutine.
package incident

// Package incident handles the time between a stall that needs a human and its end: who is notified, how often, when
// the next tier is, what button presses mean, and what waits until the morning.
//
//	open ──sent──> notified ──ack──> acknowledged ──lapses──> notified
//	  │               │  no answer: next tier, repeats, then expired
//	  └───────────────┴──────── recovered, gone ────────> resolved ──the same again within ten minutes──> open
//
// [Step] is the state machine: an [Incident], an [Event], the owner's [Policy] and the time give the new incident and
// the [Effect]s that the caller has to perform. Every text is made here ([Compose], [Digest.Message]) as a
// [notify.Message], which any channel can show. There is one message for each incident, which is edited; a reminder is a
// short message of its own, because an edit makes no sound. Requests for a permission can stand in a list ([notify.Line]).
//
// The caller stores incidents (plain data) together with the effects' outbox entries in one transaction. It finds the
// incident of an event with [Incident.Continues]: the same agent, class and phase; another class is another incident
// with its own acknowledgement. It calls Step with a [Timer] at the time of [Incident.Next]. An early or repeated timer
// does nothing; after a late one everything that is due is done.
//
// Everything here is a value or a pure function: no clock, no randomness, no I/O; nonces for buttons are arguments.
// The package starts no goroutine.
package incident

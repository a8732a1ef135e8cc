package backend

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
)

// Busy returns what is under way that no record of the session can hold, "" if nothing is: then [Backend.Record] is all that
// another backend must know to go on.
func (b *Backend) Busy() string {
	switch {
	case b.closing || b.over || b.stopped:
		return "it is ending"
	case b.Asleep() || b.machine.Unasked() || b.Down():
	case b.machine.State() != supervise.Serving:
		return "the server is " + b.machine.State().String()
	case b.machine.Reloading():
		return "a restart is under way"
	}
	for c := range b.calls.all {
		if c.acked != nil || b.eras.own(c) {
			continue
		}
		return "a call of " + c.what() + " is in flight"
	}
	switch {
	case len(b.asks.open) > 0:
		return "the client has not answered a request of the server"
	case b.handshake.beginning():
		return "the client's handshake is not over"
	case b.eras.busy():
		return "a call is being translated"
	}
	return ""
}

// Down reports whether nothing runs because the server has failed, and nobody has asked for a restart since.
func (b *Backend) Down() bool {
	s := b.machine.Snapshot()
	return (s.State == supervise.Backoff || s.State == supervise.Failed) && s.Cause != supervise.Requested
}

// Rest lets the server sleep, which needs nobody meanwhile; reason says why. What the client asks next wakes it.
func (b *Backend) Rest(now time.Time, reason string) {
	defer b.at(now).end()
	b.limits.rest(reason)
}

// Wake starts a server that sleeps.
func (b *Backend) Wake(now time.Time) {
	defer b.at(now).end()
	b.life.wake()
}

// Record returns the session's record, which shares memory with the backend. It is complete while [Backend.Busy] is "".
func (b *Backend) Record() session.Record {
	r := session.Record{
		Format: session.RecordVersion, Refused: b.failedInit,
		Repeats: b.replay.noted, States: b.states.row, Withdrawn: b.asks.dead,
	}
	r.Session, r.Translated = b.eras.sessionOfClient()
	for _, t := range b.tasks.open {
		r.Tasks = append(r.Tasks, t.raw)
	}
	return r
}

// Resume is [Backend.Open] for a client whose session another backend has recorded. The process that it
// starts is told what the client told the one before.
func (b *Backend) Resume(now time.Time, r session.Record) {
	defer b.at(now).end()
	b.session, b.replay.noted, b.failedInit = r.Session, r.Repeats, r.Refused
	b.session.Listens = nil
	b.asks.dead = r.Withdrawn
	if b.Unspoken() {
		b.Open(now)
		return
	}
	b.eras.resume(r.Translated)
	const earlier = -1 // before every process of this backend
	for _, digest := range r.States {
		b.states.gave(digest, earlier)
	}
	for _, raw := range r.Tasks {
		b.tasks.open = append(b.tasks.open, task{id: jsonrpc.Find(raw, "taskId").Of(raw), gen: earlier, raw: raw})
	}
	for _, l := range r.Listens {
		b.streams.takeOver(l)
	}
	b.life.wake()
}

// busy reports whether what the client and its bridge have begun is not over, or the client is being moved to another era.
func (e *eras) busy() bool {
	return e.unsaid() || e.bridge != nil && !e.bridge.Quiet()
}

// sessionOfClient is the session in the client's words, with what it has read of lists; bridged says that it read them through
// a bridge.
func (e *eras) sessionOfClient() (client session.Session, bridged bool) {
	if e.bridge == nil {
		client = e.session
		for c := range e.calls.all {
			if c.acked != nil {
				client.Listens = append(client.Listens, c.lasting())
			}
		}
		return client, e.resumed // no process has served it since
	}
	inner := e.session
	client = e.bridge.Session()
	inner.MoveLists(&client)
	return client, true
}

// resume begins with a session whose client's era is known. Whether a bridge is needed shows when the server is greeted.
func (e *eras) resume(translated bool) {
	e.resumed = translated
	if e.stands == undecided {
		e.stands = needless
	}
}

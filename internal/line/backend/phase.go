package backend

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// phase is the progress of one process from start to exit. Only [process.mark] changes it, by the table below. Until its
// handshake (initialize or server/discover) is answered, a process gets no other message: some servers never answer
// again if something else comes first.
//
// The pipes' ends are not phases: stdin may be closed, and stdout end, at any time while the process runs.
type phase uint8

const (
	absent     phase = iota // it does not run yet
	fresh                   // no message was sent to it
	asked                   // the handshake was sent, and is not answered
	greeted                 // it has answered a replayed handshake; its client's settings and calls are being replayed
	proven                  // it has answered a handshake of outlive's own: it works, and waits for its client's
	skipped                 // its client does without a handshake: it takes requests
	checked                 // the handshake is complete, and its lists are read before it may take over
	standby                 // it can take over
	active                  // it takes the client's requests
	leaving                 // it takes no new requests, and its handshake was not complete
	drainsBare              // it finishes its requests, without a handshake
	draining                // it finishes its requests
	diedEarly               // it has exited before its handshake was complete
	exited                  // it has exited
	phaseCount
)

// mark is an event that may change the phase of a process.
type mark uint8

const (
	spawned     mark = iota // it runs
	wasAsked                // its handshake was sent
	declined                // it has answered with an error, and may be asked again
	answers                 // it has answered a replayed handshake
	showsUp                 // it has answered a handshake of outlive's own
	goesBare                // it gets its client's requests without a handshake
	cameThrough             // its handshake and the replay are complete
	isSpare                 // the same, beside another one that serves
	fits                    // its lists are known
	takesOver               // it serves from now on
	beginsAnew              // its client sends another handshake
	mustDrain               // it takes no new requests
	hasExited               // it is gone
	markCount
)

// transitions has the next phase for each mark. Marks that are not in it change nothing, since answers may come late.
var transitions = [markCount]map[phase]phase{
	spawned:     {absent: fresh},
	wasAsked:    {fresh: asked, skipped: asked},
	declined:    {asked: fresh},
	answers:     {fresh: greeted, asked: greeted},
	showsUp:     {fresh: proven, asked: proven},
	goesBare:    {fresh: skipped},
	cameThrough: {fresh: active, asked: active, greeted: active, proven: active, skipped: active, leaving: draining, drainsBare: draining},
	isSpare:     {fresh: checked, asked: checked, greeted: checked},
	fits:        {checked: standby},
	takesOver:   {checked: active, standby: active},
	beginsAnew: {
		asked: fresh, greeted: fresh, proven: fresh, skipped: fresh, checked: fresh, standby: fresh, active: fresh,
	},
	mustDrain: {
		fresh: leaving, asked: leaving, greeted: leaving, proven: leaving, skipped: drainsBare,
		checked: draining, standby: draining, active: draining,
	},
	hasExited: {
		fresh: diedEarly, asked: diedEarly, greeted: diedEarly, proven: diedEarly, skipped: diedEarly, leaving: diedEarly,
		drainsBare: diedEarly, checked: exited, standby: exited, active: exited, draining: exited,
	},
}

// mark applies an event to p. Nothing else changes its phase.
func (p *process) mark(m mark) {
	if next, ok := transitions[m][p.phase]; ok {
		p.phase = next
	}
}

func (h phase) oneOf(phases ...phase) bool { return slices.Contains(phases, h) }

// up reports whether the process was spawned and is not known to have exited.
func (p *process) up() bool { return p.phase > absent && p.phase < diedEarly }

// gone reports whether the process has exited; its output may still be coming.
func (p *process) gone() bool { return p.phase >= diedEarly }

// stays reports whether the process runs and is not about to end.
func (p *process) stays() bool { return p.up() && !p.drains() }

// drains reports whether the process runs and takes no new requests.
func (p *process) drains() bool { return p.phase.oneOf(leaving, drainsBare, draining) }

// greets reports whether the handshake was sent, and is not answered.
func (p *process) greets() bool { return p.phase.oneOf(asked, leaving) }

// through reports whether the handshake was completed, even if the process has exited since.
func (p *process) through() bool { return p.phase.oneOf(checked, standby, active, draining, exited) }

// answered reports whether the process runs, and its handshake was completed.
func (p *process) answered() bool { return p.up() && p.through() }

// familiar reports whether a spare has answered the replayed handshake: it gets the client's new settings from then on.
func (p *process) familiar() bool { return p.phase.oneOf(greeted, checked, standby) }

// accepting reports whether the process could take the client's requests, if it were not about to end.
func (p *process) accepting() bool { return p.phase.oneOf(active, skipped, drainsBare, draining) }

// serves reports whether the process takes the client's requests.
func (p *process) serves() bool { return p.phase == active || p.phase == skipped }

// takes reports whether p can be given lines: lines for a dead process must not count as sent.
func (p *process) takes() bool { return p.up() && !p.shut }

// open reports whether the client's requests can be sent to p now.
func (p *process) open() bool {
	return p.serves() && !p.hearing.waits() && p.levelBy.IsZero() && p.server.Backlog() < slowServer
}

// admits reports whether message m of the client can be sent to p now.
func (p *process) admits(m mcp.Method) bool {
	return p.open() || p.phase == fresh && (m == mcp.Initialize || m == mcp.Discover)
}

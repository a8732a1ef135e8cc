package backend

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// phase is how far one process has come, from its start to its exit. [process.mark] alone changes it, by the table below.
// Before its handshake is answered, initialize or server/discover, a process is told nothing else: servers exist that never
// answer again when something else is the first they read.
//
// The ends of the pipes are not phases: stdin may be closed, and stdout end, at any time while the process runs.
type phase uint8

const (
	absent     phase = iota // it does not run yet
	fresh                   // it was told nothing
	asked                   // it was asked for its handshake, and has not answered
	greeted                 // it has answered a replayed one; what its client wished for and had done is repeated to it
	proven                  // it has answered a handshake that nobody waits for: it works, and waits for its client's
	skipped                 // its client begins with something else and speaks no version that it says: it takes requests without
	checked                 // it is through its handshake, and its lists are looked at before it may take over
	standby                 // it could serve now
	active                  // it takes the client's requests
	leaving                 // it begins nothing new, and was not through its handshake
	drainsBare              // it finishes what it has, as one without a handshake
	draining                // it finishes what it has
	diedEarly               // it has exited, and was not through its handshake
	exited                  // it has exited
	phaseCount
)

// mark is what happens to a process that may take it to another phase.
type mark uint8

const (
	spawned     mark = iota // it runs
	wasAsked                // its handshake was sent
	declined                // it has answered with an error, and may be asked once more
	answers                 // it has answered a replayed handshake
	showsUp                 // it has answered a handshake for nobody
	goesBare                // it is told what its client says without a handshake
	cameThrough             // it is through its handshake and all that belongs to it
	isSpare                 // the same, beside another one that serves
	fits                    // its lists are known
	takesOver               // it serves from now on
	beginsAnew              // its client sends another handshake
	mustDrain               // it is to begin nothing new
	hasExited               // it is gone
	markCount
)

// transitions says which phase follows on a mark. What is not in it changes nothing: answers may come late.
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

// mark notes what has happened to p. Nothing else changes its phase.
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

// stays reports whether the process runs and is not to go.
func (p *process) stays() bool { return p.up() && !p.drains() }

// drains reports whether the process runs and begins nothing new.
func (p *process) drains() bool { return p.phase.oneOf(leaving, drainsBare, draining) }

// greets reports whether the process was asked for its handshake, and has not answered.
func (p *process) greets() bool { return p.phase.oneOf(asked, leaving) }

// through reports whether the process has been through its handshake, also if it has exited since.
func (p *process) through() bool { return p.phase.oneOf(checked, standby, active, draining, exited) }

// answered reports whether the process runs, and has been through its handshake.
func (p *process) answered() bool { return p.up() && p.through() }

// familiar reports whether a spare has answered the replayed handshake: then it hears what the client wishes from now on.
func (p *process) familiar() bool { return p.phase.oneOf(greeted, checked, standby) }

// accepting reports whether the client's requests may be handed to the process, or might be if it had not to go.
func (p *process) accepting() bool { return p.phase.oneOf(active, skipped, drainsBare, draining) }

// serves reports whether the process takes the client's requests.
func (p *process) serves() bool { return p.phase == active || p.phase == skipped }

// takes reports whether p can be given lines: what is given to a process that is gone must not count as sent.
func (p *process) takes() bool { return p.up() && !p.shut }

// ready reports whether p takes requests, as far as it can be written to.
func (p *process) ready() bool { return p.serves() && !p.hearing.waits() }

// open reports whether the client's requests can be handed to p now.
func (p *process) open() bool { return p.ready() && p.server.Backlog() < slowServer }

// admits reports whether message m of the client can be handed to p now.
func (p *process) admits(m mcp.Method) bool {
	return p.open() || p.phase == fresh && (m == mcp.Initialize || m == mcp.Discover)
}

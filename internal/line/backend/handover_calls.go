package backend

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// savedCall is a message of the client that is not finished. What its line says is read from it again.
type savedCall struct {
	Line     []byte
	Wire     []byte `json:",omitempty"`
	State    callState
	Seq      uint64
	Gen      int
	Touched  time.Time
	End      uint64
	Resent   int
	Crashes  int
	Until    time.Time
	Begun    time.Time
	Told     time.Time
	Token    []byte `json:",omitempty"`
	Progress []byte `json:",omitempty"`
	Batch    int    // number of its batch, from 1; 0: none
}

// savedBatch is an array of the client that has no answer yet.
type savedBatch struct {
	Open    int
	Answers []byte
}

func (t *calls) save() (all []savedCall, batches []savedBatch) {
	numbers := map[*batch]int{}
	for c := range t.all {
		s := savedCall{
			Line: c.line, Wire: c.wire, State: c.state, Seq: c.seq, Gen: c.gen, Touched: c.touched, End: c.end,
			Resent: c.resent, Crashes: c.crashes, Until: c.until, Begun: c.begun, Told: c.told, Token: c.token, Progress: c.progress,
		}
		if g := c.batch; g != nil {
			if numbers[g] == 0 {
				batches = append(batches, savedBatch{g.open, g.answers})
				numbers[g] = len(batches)
			}
			s.Batch = numbers[g]
		}
		all = append(all, s)
	}
	return all, batches
}

// restore takes the saved calls into an empty table and returns them by their sequence number.
func (t *calls) restore(env *jsonrpc.Envelope, s Saved) map[uint64]*call {
	batches := make([]*batch, len(s.Batches))
	for i, g := range s.Batches {
		batches[i] = &batch{open: g.Open, answers: g.Answers}
	}
	keep := func(line []byte) (*lineloop.Hold, []byte) {
		h := lineloop.HoldCopy(line)
		return h, h.Bytes
	}
	bySeq := map[uint64]*call{}
	for _, one := range s.Calls {
		_ = env.Scan(one.Line) // it was scanned when it came
		c := t.add(env, one.Line, mcp.Lookup(env.Method.Of(one.Line)), keep)
		c.seq, c.wire = one.Seq, append(c.wire, one.Wire...)
		switch one.State {
		case waiting:
			t.enqueue(c, one.Until)
		case sent:
			t.hand(c, one.Touched, one.Gen, one.End)
		case held:
			t.hold(c, one.Until)
		case kept:
			t.keep(c)
		}
		c.gen, c.touched, c.end, c.until = one.Gen, one.Touched, one.End, one.Until
		c.resent, c.crashes, c.begun, c.told = one.Resent, one.Crashes, one.Begun, one.Told
		if len(one.Token) > 0 {
			t.setToken(c, one.Token)
		}
		c.progress = append(c.progress, one.Progress...)
		if one.Batch > 0 && one.Batch <= len(batches) {
			c.batch = batches[one.Batch-1]
		}
		bySeq[c.seq] = c
	}
	t.nextSeq = s.NextSeq
	return bySeq
}

func (a *asks) restore(s savedAsks) {
	a.mark = s.Mark
	for _, one := range s.Open {
		a.open[jsonrpc.HashID(one.Client)] = &ask{server: one.Server, client: one.Client, token: one.Token, shown: one.Shown, gen: one.Gen}
	}
	for _, id := range s.Dead {
		a.tombstone(id)
	}
}

// savedProcess is the serving process.
type savedProcess struct {
	Gen     int
	Started time.Time
	Startup time.Duration
	Era     mcp.Era

	Restored, Greeted, Answered, Initialized, HasTools bool

	Handshake savedHandshake
	Hearing   hearing
	Listed    bool

	Calls int
	Sent  uint64

	Shows        [mcp.Lists]mcp.Catalog
	Read         [mcp.Lists]bool
	Before       [mcp.Lists]mcp.Catalog
	Introduction string
	NoiseLines   [][]byte
	NoiseJoined  []byte
	NoiseOpen    int
	Heard        time.Time
}

func (p *process) save() savedProcess {
	return savedProcess{
		Gen: p.gen, Started: p.started, Startup: p.startup, Era: p.era,
		Restored: p.through(), Greeted: p.phase == greeted || p.through(), Answered: p.through(), Initialized: p.initialized, HasTools: p.hasTools,
		Handshake: p.phase.saved(), Hearing: p.hearing, Listed: p.listed, Calls: p.calls, Sent: p.sent,
		Shows: p.shows, Read: p.read, Before: p.before, Introduction: p.introduction,
		NoiseLines: p.noise.lines, NoiseJoined: p.noise.joined, NoiseOpen: p.noise.open, Heard: p.heard,
	}
}

// savedHandshake is what is left of a phase in a moment in which a backend can be saved.
type savedHandshake uint8

const (
	savedFresh savedHandshake = iota
	savedAsked
	savedSkipped
	savedThrough
)

// saved is phase h in a handover.
func (h phase) saved() savedHandshake {
	switch h {
	case fresh:
		return savedFresh
	case skipped:
		return savedSkipped
	case active:
		return savedThrough
	}
	return savedAsked
}

// phase is the phase that was saved.
func (s savedProcess) phase() phase {
	switch {
	case s.Answered || s.Handshake == savedThrough: // an older version said the former only
		return active
	case s.Greeted:
		return greeted
	}
	return map[savedHandshake]phase{savedFresh: fresh, savedAsked: asked, savedSkipped: skipped}[s.Handshake]
}

func (s savedProcess) restore(server Server) *process {
	return &process{
		server: server, gen: s.Gen, pid: server.PID(), role: serving, started: s.Started, startup: s.Startup, era: s.Era,
		phase: s.phase(), hearing: s.Hearing, listed: s.Listed, initialized: s.Initialized, hasTools: s.HasTools,
		calls: s.Calls, sent: s.Sent,
		shows: s.Shows, read: s.Read, before: s.Before, introduction: s.Introduction,
		noise: noise{lines: s.NoiseLines, joined: s.NoiseJoined, open: s.NoiseOpen}, heard: s.Heard,
	}
}

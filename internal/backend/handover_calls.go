package backend

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/wire"
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
			Resent: c.resent, Crashes: c.crashes, Until: c.until, Token: c.token.raw, Progress: c.progress,
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
	keep := func(line []byte) (*wire.Hold, []byte) {
		h := wire.HoldCopy(line)
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
		c.resent, c.crashes = one.Resent, one.Crashes
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

	Handshake handshake
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
		Restored: p.restored, Greeted: p.greeted, Answered: p.answered, Initialized: p.initialized, HasTools: p.hasTools,
		Handshake: p.handshake, Hearing: p.hearing, Listed: p.listed, Calls: p.calls, Sent: p.sent,
		Shows: p.shows, Read: p.read, Before: p.before, Introduction: p.introduction,
		NoiseLines: p.noise.lines, NoiseJoined: p.noise.joined, NoiseOpen: p.noise.open, Heard: p.heard,
	}
}

func (s savedProcess) restore(server Server) *process {
	if s.Answered {
		s.Handshake = settled // also if it was saved by a version that did not say so
	}
	return &process{
		server: server, gen: s.Gen, pid: server.PID(), role: serving, started: s.Started, startup: s.Startup, era: s.Era,
		up: true, accepting: s.Handshake == settled || s.Handshake == skipped,
		handshake: s.Handshake, hearing: s.Hearing, listed: s.Listed,
		restored: s.Restored, greeted: s.Greeted, answered: s.Answered, initialized: s.Initialized, hasTools: s.HasTools,
		calls: s.Calls, sent: s.Sent,
		shows: s.Shows, read: s.Read, before: s.Before, introduction: s.Introduction,
		noise: noise{lines: s.NoiseLines, joined: s.NoiseJoined, open: s.NoiseOpen}, heard: s.Heard,
	}
}

package backend

import (
	"bytes"
	"log/slog"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

const (
	// asksMost and asksBytes limit the open questions of one process and the bytes of their ids and tokens: a client may
	// never answer.
	asksMost  = 1024
	asksBytes = 1 << 20
)

// tombstones is how many ids of requests that ended unanswered are remembered.
const tombstones = 1024

// ask is a request of the server to the client: sampling, elicitation, roots, ping.
type ask struct {
	server []byte // raw id the server chose
	client []byte // raw id the client sees: the same, or one of ours when that one is taken
	token  []byte // raw progress token of the server; nil: none
	shown  []byte // raw progress token the client sees: the same, or the client's id if another question uses it
	gen    int
}

// asks holds the server's open requests. Ids of a new process start again from the beginning, so they often equal those
// of the old one.
type asks struct {
	*core

	open []*ask
	dead [][]byte // tombstones: raw ids, in order of death; late answers to these are dropped
	mark uint64   // calls up to this sequence number ran while the server asked something
}

// find returns the open question that the client knows by this raw id; nil: none.
func (a *asks) find(id []byte) *ask {
	for _, one := range a.open {
		if jsonrpc.SameID(one.client, id) {
			return one
		}
	}
	return nil
}

// remove forgets an open question.
func (a *asks) remove(one *ask) {
	a.open = slices.DeleteFunc(a.open, func(other *ask) bool { return other == one })
}

// withdraw ends an open question without the client's answer.
func (a *asks) withdraw(one *ask) {
	a.remove(one)
	if a.dead = append(a.dead, one.client); len(a.dead) > tombstones {
		a.dead = a.dead[1:]
	}
}

// taken reports whether a raw id cannot be that of another question to the client.
func (a *asks) taken(id []byte) bool {
	return a.find(id) != nil || slices.ContainsFunc(a.dead, func(one []byte) bool { return jsonrpc.SameID(one, id) })
}

// refuse answers a request of p with an error, unless p does not read its stdin: the answers would pile up.
func (p *process) refuse(id []byte, code int, text string) {
	if p.takes() && p.server.Backlog() < slowServer {
		p.say(jsonrpc.AppendError(nil, id, code, text, nil))
	}
}

// mayAsk reports whether process gen may have one more open question of that size.
func (a *asks) mayAsk(gen, size int) bool {
	n := 0
	for _, one := range a.open {
		size += len(one.client) + len(one.token)
		if one.gen == gen {
			n++
		}
	}
	return n < asksMost && size <= asksBytes
}

// byToken returns the open question with this raw progress token; nil: none.
func (a *asks) byToken(token []byte) *ask {
	for _, one := range a.open {
		if len(token) > 0 && jsonrpc.SameID(one.shown, token) {
			return one
		}
	}
	return nil
}

// cancelAll cancels the open questions of p, or of all processes if p is nil, so that the client can close its dialogs.
func (a *asks) cancelAll(p *process, why string) {
	for _, one := range slices.Clone(a.open) {
		if p != nil && one.gen != p.gen {
			continue
		}
		a.tell(mcp.CancelledLine(one.client, why))
		a.withdraw(one)
	}
}

// of reports whether process gen waits for an answer of the client.
func (a *asks) of(gen int) bool {
	return slices.ContainsFunc(a.open, func(one *ask) bool { return one.gen == gen })
}

// asked reports whether process gen waits for an answer of the client to its raw id.
func (a *asks) asked(gen int, id []byte) bool {
	return slices.ContainsFunc(a.open, func(one *ask) bool { return one.gen == gen && jsonrpc.SameID(one.server, id) })
}

// tainted reports whether the server asked the client something while c ran: c had an effect on the client then.
func (a *asks) tainted(c *call) bool { return c.seq <= a.mark }

// serverRequest hands a request of the server to the client.
func (a *asks) serverRequest(p *process, line []byte) {
	id := a.env.ID.Of(line)
	if p.era == mcp.Modern || a.eras.translating(mcp.Legacy) {
		p.refuse(id, jsonrpc.MethodNotFound, "a server of this protocol version must not send requests")
		return
	}
	token := jsonrpc.FindPath(line, "params", "_meta", "progressToken")
	if !a.mayAsk(p.gen, len(id)+len(token.Of(line))) {
		p.refuse(id, jsonrpc.InternalError, "too many requests of this server wait for the client's answer")
		return
	}
	a.showing.passed(line, tap.Server, tap.Client, p.gen, "")
	if mcp.Lookup(a.env.Method.Of(line)) != mcp.Ping { // nothing of that is carried out
		a.mark = a.calls.nextSeq
	}
	one := &ask{server: bytes.Clone(id), client: bytes.Clone(id), token: bytes.Clone(token.Of(line)), gen: p.gen}
	one.shown = one.token
	idTaken, tokenTaken := a.taken(id), a.byToken(one.token) != nil
	a.open = append(a.open, one)
	if !idTaken && !tokenTaken {
		a.client.ForwardToClient(line)
		return
	}
	mine := a.questions.newID()
	for a.taken(mine) || a.byToken(mine) != nil { // an earlier backend may have given it
		mine = a.questions.newID()
	}
	at := a.env.ID
	if tokenTaken {
		one.shown = mine
		line = jsonrpc.Replace(nil, line, token, mine)
		at = jsonrpc.Find(line, "id")
	}
	if idTaken {
		one.client = mine
		line = jsonrpc.Replace(nil, line, at, mine)
	}
	a.client.SendToClient(line)
}

// clientProgress forwards the client's progress at once to the process that asked, ahead of the queue.
func (a *asks) clientProgress(line []byte) {
	one := a.byToken(a.env.ProgressToken.Of(line))
	if one == nil {
		a.emit(event.MessageDropped, slog.LevelDebug, "Progress of the client dropped: the server that asked is gone",
			slog.String(event.KeyMethod, mcp.NoteProgress.String()), slog.String(event.KeyReason, "late progress"))
		return
	}
	p := a.byGen(one.gen)
	if p == nil {
		return
	}
	a.showing.passed(line, tap.Client, tap.Server, p.gen, "")
	if bytes.Equal(one.shown, one.token) {
		p.forward(line)
	} else {
		p.send(jsonrpc.Replace(nil, line, a.env.ProgressToken, one.token))
	}
}

// clientAnswer forwards the client's answer to the process that asked, and reports whether there is one. Dead processes
// get nothing.
func (a *asks) clientAnswer(line []byte) bool {
	id := a.env.ID.Of(line)
	one := a.find(id)
	if one == nil {
		a.emit(event.MessageDropped, slog.LevelDebug, "Answer of the client dropped: the server that asked is gone",
			slog.String(event.KeyRequestID, string(id)), slog.String(event.KeyReason, "late answer"))
		return false
	}
	a.remove(one)
	p := a.byGen(one.gen)
	if p == nil {
		return false
	}
	a.showing.passed(line, tap.Client, tap.Server, p.gen, "")
	if bytes.Equal(one.server, id) {
		p.forward(line)
	} else {
		p.send(jsonrpc.Replace(nil, line, a.env.ID, one.server))
	}
	return true
}

// serverCancelled handles the server's notifications/cancelled for a request of its own. It reports whether the line
// must not be forwarded as it is.
func (a *asks) serverCancelled(p *process, line []byte) bool {
	id := a.env.RequestID.Of(line)
	for _, one := range a.open {
		if one.gen != p.gen || !jsonrpc.SameID(one.server, id) {
			continue
		}
		a.withdraw(one)
		if bytes.Equal(one.client, id) {
			return false
		}
		a.tell(jsonrpc.Replace(nil, line, a.env.RequestID, one.client))
		return true
	}
	return false
}

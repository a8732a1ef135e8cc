package backend

import (
	"bytes"
	"errors"
	"log/slog"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// brokenShown is how many bytes of an answer that cannot be passed on are quoted in the error that takes its place.
const brokenShown = 200

// mends says which of its mistakes a process has been reported for.
type mends struct {
	textID bool // it returns a number as text
	twice  bool // its messages have a member twice
}

// mender takes what servers get wrong about their messages, and what clients do, where it is certain what is meant.
type mender struct {
	*core
}

// awaits reports whether p has an open request with this raw id, the client's or outlive's own.
func (m *mender) awaits(p *process, id []byte) bool {
	if one := m.questions.open[string(id)]; one != nil && one.of == p {
		return true
	}
	c := m.calls.onWire(id)
	return c != nil && c.state == sent && c.gen == p.gen
}

// idOf is the raw id of the open request of p that a server means by id: the same, or the number that it holds as text.
// It is nil if there is none.
func (m *mender) idOf(p *process, id []byte) []byte {
	if m.awaits(p, id) {
		return id
	}
	if number := jsonrpc.IntegerText(id); number != nil && m.awaits(p, number) {
		return number
	}
	return nil
}

// restoreIDs returns a message of p with the number of a request in place of its text: SDKs read "7" as 7 where no
// request has the id "7", and so servers that return it work everywhere. m.env is scanned from the message.
func (m *mender) restoreIDs(p *process, line []byte) []byte {
	at, known := m.env.ID, func(id []byte) bool { return m.awaits(p, id) }
	if m.env.Kind == jsonrpc.Notification {
		at, known = m.env.ProgressToken, func(token []byte) bool { return m.calls.withToken(token) != nil || m.tasks.reports(token) }
		if mcp.Lookup(m.env.Method.Of(line)) == mcp.NoteCancelled {
			at, known = m.env.RequestID, func(id []byte) bool { return m.asks.asked(p.gen, id) }
		}
	} else if m.env.Kind != jsonrpc.Response && m.env.Kind != jsonrpc.ErrorResponse {
		return line
	}
	fixed := numberFor(line, at, known)
	if fixed == nil || m.env.Scan(fixed) != nil {
		return line
	}
	if !p.mends.textID {
		p.mends.textID = true
		m.emitOf(p, event.TextRepaired, slog.LevelWarn, "The server returns the number of a request as text; such answers are passed on",
			slog.String(event.KeyRawLine, excerpt(line)))
	}
	return fixed
}

// numberOfClient returns an answer, progress or cancellation of the client with the number that it returned as text; nil if
// there is none.
func (m *mender) numberOfClient(line []byte) []byte {
	switch {
	case m.env.Kind == jsonrpc.Response || m.env.Kind == jsonrpc.ErrorResponse:
		return numberFor(line, m.env.ID, func(id []byte) bool { return m.asks.find(id) != nil })
	case m.env.Kind != jsonrpc.Notification:
		return nil
	case m.env.RequestID.Present():
		return numberFor(line, m.env.RequestID, func(id []byte) bool { return m.calls.find(id) != nil })
	}
	return numberFor(line, m.env.ProgressToken, func(token []byte) bool { return m.asks.byToken(token) != nil })
}

// numberFor returns line with the number that the text at a place holds, if a request is known by the number and none by
// the text; nil otherwise.
func numberFor(line []byte, at jsonrpc.Span, known func(raw []byte) bool) []byte {
	text := at.Of(line)
	number := jsonrpc.IntegerText(text)
	if number == nil || known(text) || !known(number) {
		return nil
	}
	return jsonrpc.Replace(nil, line, at, number)
}

// withoutMethod returns an answer of p that has a method, too, without it. m.env is scanned from what is returned.
func (m *mender) withoutMethod(p *process, line []byte) []byte {
	if m.env.Kind != jsonrpc.Request || !m.env.Result.Present() && !m.env.Error.Present() || m.idOf(p, m.env.ID.Of(line)) == nil {
		return line
	}
	answer := jsonrpc.Delete(nil, line, "method")
	if m.env.Scan(answer) == nil {
		return answer
	}
	_ = m.env.Scan(line)
	return line
}

// oddServerLine handles a line that is not a message: mended if that is certain, otherwise noise. whole is false where
// nothing can follow that belongs to it.
func (m *mender) oddServerLine(p *process, line []byte, err error, whole bool) {
	switch {
	case m.oddMessage(p, line, err):
	case errors.Is(err, jsonrpc.ErrSyntax) && whole && line[0] == '{' && bracketsOpen(line) > 0:
		m.noiseLog.begin(p, line)
	default:
		m.noiseLog.tellNoise(p, line)
		m.endBroken(p, line)
	}
}

// oddMessage takes a message that every client would read although it is not quite one, and reports whether it was one.
// err is the result of scanning it.
func (m *mender) oddMessage(p *process, line []byte, err error) bool {
	if errors.Is(err, jsonrpc.ErrDuplicateKey) {
		line = jsonrpc.AppendLast(nil, line)
		if err = m.env.Scan(line); err == nil && !p.mends.twice {
			p.mends.twice = true
			m.emitOf(p, event.TextRepaired, slog.LevelWarn, "The server's messages have a member twice; the last one is passed on",
				slog.String(event.KeyRawLine, excerpt(line)))
		}
	}
	if err == nil && !m.env.Version2 {
		if isAnswer := m.env.Kind == jsonrpc.Response || m.env.Kind == jsonrpc.ErrorResponse; !isAnswer || m.idOf(p, m.env.ID.Of(line)) == nil {
			return false
		}
		if line, err = jsonrpc.Set(nil, line, []byte(`"2.0"`), "jsonrpc"); err == nil {
			err = m.env.Scan(line)
		}
	}
	if err != nil {
		return false
	}
	m.backend.serverMessage(p, line)
	return true
}

// endBroken ends the open request of p that text seems to answer, with an error: the answer cannot be passed on, and no
// other one will come.
func (m *mender) endBroken(p *process, text []byte) {
	recovered, ok := jsonrpc.RecoverID(text, text)
	if !ok {
		return
	}
	id := bytes.Clone(m.idOf(p, recovered))
	if id == nil {
		return
	}
	why := ""
	switch err := m.env.Scan(text); {
	case errors.Is(err, jsonrpc.ErrNoMessage) && m.env.Version2 && !m.env.Method.Present():
		why = "it has neither a result nor an error"
	case errors.Is(err, jsonrpc.ErrSyntax) && bytes.Contains(text, []byte(`"jsonrpc"`)) &&
		(bytes.Contains(text, []byte(`"result"`)) || bytes.Contains(text, []byte(`"error"`))):
		why = "it is " + jsonrpc.Problem(text)
	default:
		return
	}
	said := "the server's answer cannot be passed on, " + why + ": " + excerpt(text[:min(len(text), brokenShown)])
	data := outcome{Reason: reasonBroken, Delivered: "yes", Generation: p.gen}
	if line := jsonrpc.AppendError(nil, id, jsonrpc.InternalError, said, data.raw()); m.env.Scan(line) == nil {
		m.backend.serverMessage(p, line)
	}
}

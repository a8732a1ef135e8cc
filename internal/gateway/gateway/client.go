package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Message takes one line of the client. Its answer and notifications go to reply.
func (s *Session) Message(now time.Time, line []byte, reply Stream) {
	s.gw.now = now
	if line = jsonrpc.Trim(line); len(line) > 0 && !s.ended {
		s.message(line, reply)
	}
	s.gw.flush()
}

// Oversize takes the beginning and the end of a line over the limit.
func (s *Session) Oversize(now time.Time, head, tail []byte, size int64, reply Stream) {
	s.gw.now = now
	text := "message of " + strconv.FormatInt(size, 10) + " bytes is over the limit of outlive; it was not sent on"
	if id, ok := jsonrpc.RecoverID(head, tail); ok && !s.unreadable(id, "the client's answer: "+text) {
		reply.Send(jsonrpc.AppendError(nil, id, jsonrpc.InvalidRequest, text, nil))
	}
	s.gw.flush()
}

func (s *Session) message(line []byte, reply Stream) {
	env := &s.gw.client
	err := env.Scan(line)
	switch {
	case err == nil && env.Kind == jsonrpc.Batch:
		s.array(line, reply)
		return
	case err != nil || !env.Version2:
		reject(line, err, reply)
		return
	case env.BadUTF8 || env.Surrogate:
		const why = "Validation failed: the message has invalid UTF-8 or a lone surrogate" // TP-5
		switch env.Kind {
		case jsonrpc.Request:
			reply.Send(jsonrpc.AppendError(nil, jsonrpc.Sanitize(nil, env.ID.Of(line)), jsonrpc.InvalidParams, why, nil))
		case jsonrpc.Response, jsonrpc.ErrorResponse:
			s.unreadable(env.ID.Of(line), "the client's answer: "+why)
		}
		return
	}
	switch env.Kind {
	case jsonrpc.Request:
		s.request(line, reply)
	case jsonrpc.Notification:
		s.notification(line)
	default:
		s.reply(line)
	}
}

// reject answers what is not a message, if it has an id.
func reject(line []byte, err error, reply Stream) {
	code, text := jsonrpc.InvalidRequest, "invalid request: no JSON-RPC 2.0 message"
	if errors.Is(err, jsonrpc.ErrSyntax) {
		code, text = jsonrpc.ParseError, "parse error: the line is "+jsonrpc.Problem(line)
	}
	if id, ok := jsonrpc.RecoverID(line, line); ok && !jsonrpc.IsNull(id) {
		reply.Send(jsonrpc.AppendError(nil, id, code, text, nil))
	}
}

// request handles a request, which is answered exactly once.
func (s *Session) request(line []byte, reply Stream) {
	env := &s.gw.client
	id := string(env.ID.Of(line))
	if _, twice := s.calls[id]; twice {
		reply.Send(jsonrpc.AppendError(nil, []byte(id), jsonrpc.InvalidRequest,
			"invalid request: a request with this id is still in flight", nil))
		return
	}
	m := mcp.Lookup(env.Method.Of(line))
	if !s.hasRoom(len(line)) {
		reply.Send(jsonrpc.AppendError(nil, []byte(id), jsonrpc.InternalError, fmt.Sprintf("this session has %d requests in flight, with %d "+
			"bytes together, and no room for another: wait for answers, or cancel some; the request was not sent on", len(s.calls), s.held), nil))
		return
	}
	e := &exchange{num: s.gw.number(), session: s, stream: reply, id: id, method: m, size: len(line)}
	s.calls[id] = e
	s.held += e.size
	if !s.fits(e, line) {
		return
	}
	if _, list := mcp.ListOf(m); s.gw.opts.Plain && (list || m == mcp.Listen) {
		s.dispatch(e, line)
		return
	}
	switch m {
	case mcp.Initialize:
		s.initialize(e, line)
	case mcp.Discover:
		s.discover(e)
	case mcp.Ping:
		e.answer([]byte("{}"))
	case mcp.SetLevel:
		s.setLevel(e, line)
	case mcp.ToolsList, mcp.PromptsList, mcp.ResourcesList, mcp.TemplatesList:
		s.list(e, bytes.Clone(env.Cursor.Of(line)))
	case mcp.Listen:
		s.listen(e, line)
	default:
		s.dispatch(e, line)
	}
}

// fits answers a request that does not fit the session's era.
func (s *Session) fits(e *exchange, line []byte) bool {
	meta := s.gw.client.Meta.Of(line)
	version := jsonrpc.Find(meta, mcp.MetaProtocolVersion).Of(meta)
	switch {
	case s.own == nil && version != nil:
		if !mcp.IsModern(version) {
			e.answerError(jsonrpc.ErrorObject(nil, mcp.CodeVersion, "Unsupported protocol version", mcp.UnsupportedVersion(version)))
			return false
		}
		if slices.Contains(legacyOnly, e.method) {
			e.refuse(jsonrpc.MethodNotFound, "Method not found")
			return false
		}
		if can := jsonrpc.Find(meta, mcp.MetaClientCapabilities).Of(meta); s.gw.opts.Single && jsonrpc.IsObject(can) {
			s.gw.can = append(s.gw.can[:0], can...)
		}
	case s.own == nil && e.method != mcp.Initialize && e.method != mcp.Ping && e.method != mcp.Discover:
		e.refuse(jsonrpc.InvalidRequest, "invalid request: initialize comes first")
		return false
	case s.own != nil && (e.method == mcp.Discover || e.method == mcp.Listen): // the legacy era has no such methods
		e.refuse(jsonrpc.MethodNotFound, "Method not found")
		return false
	}
	return true
}

// list answers a list request with the merged lists.
func (s *Session) list(e *exchange, cursor []byte) {
	kind, _ := mcp.ListOf(e.method)
	sc := s.scope()
	sc.noLongerPresume()
	if len(cursor) > 0 && jsonrpc.IsNull(cursor) {
		cursor = nil
	}
	answer := func() {
		view := s.shown()
		result, err := view.Page(kind, cursor, 0) // as many as fit a line: many clients read only the first page
		if err != nil {
			e.refuse(jsonrpc.InvalidParams, "the list has changed since this cursor was given: begin again")
			return
		}
		if s.seen[kind] != view {
			s.seen[kind], s.before[kind] = view, nil
			remember(s)
		}
		if kind == mcp.Tools && cursor == nil {
			result = s.withTools(result, view)
		}
		if s.own == nil {
			head := append([]byte(`{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":`), s.gw.madeHere("")...)
			result = append(append(head, ','), result[1:]...)
			sc.showing(s.view).listed[kind] = true
		}
		e.answer(result)
	}
	sc.whenListed(e, func() {
		if cursor == nil && (s.seen[kind] != nil || s.own == nil && sc.showing(s.view).listed[kind]) {
			sc.lookAgain(e, answer) // whoever asks again wants to know what there is now
		} else {
			answer()
		}
	})
}

// notification takes a notification of the client.
func (s *Session) notification(line []byte) {
	env := &s.gw.client
	switch mcp.Lookup(env.Method.Of(line)) {
	case mcp.NoteCancelled:
		id := env.RequestID.Of(line)
		e := s.calls[string(id)]
		for _, one := range s.calls {
			if e == nil && jsonrpc.SameID([]byte(one.id), id) {
				e = one
			}
		}
		if e != nil && e.method != mcp.Initialize {
			reason, _ := jsonrpc.Unquote(jsonrpc.Find(env.Params.Of(line), "reason").Of(env.Params.Of(line)))
			s.dismiss(e, reason)
		}
	case mcp.NoteInitialized:
		if s.unplaced() { // each link has said it for itself
			s.askRoots()
		}
	case mcp.NoteProgress:
		if a := s.asked(env.ProgressToken.Of(line)); a != nil && a.token != nil {
			s.gw.post(a.link, jsonrpc.Replace(nil, line, env.ProgressToken, a.token))
		}
	default:
		if s.own == nil {
			return
		}
		s.own.tell(line) // about the client itself, such as changed roots
		s.tellPool(line)
	}
}

package streamhttp

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// The transport's headers.
const (
	headerSession   = "Mcp-Session-Id"
	headerVersion   = "Mcp-Protocol-Version"
	headerLastEvent = "Last-Event-Id"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	headerParam     = "Mcp-Param-"
)

// primedFrom is the first version whose clients expect an initial event without data.
const primedFrom = "2025-11-25"

// post takes one message of either era.
func (f *Front) post(w http.ResponseWriter, r *http.Request, who caller) {
	if f.leaving.Load() {
		refuse(w, nil, refusal{status: http.StatusServiceUnavailable, text: "shutting down"})
		return
	}
	held := &load{of: f.underWay, subject: who.Subject, alone: f.alone(who.Subject)}
	defer held.left()
	line, e, ok := f.readMessage(w, r, held)
	if !ok {
		return
	}
	if eraOf(r, line, &e) == mcp.Modern {
		f.postModern(w, r, who, line, &e)
		return
	}
	f.postLegacy(w, r, who, line, &e, held)
}

func (f *Front) postLegacy(w http.ResponseWriter, r *http.Request, who caller, line []byte, e *jsonrpc.Envelope, held *load) {
	id := e.ID.Of(line)
	if e.Kind != jsonrpc.Request {
		id = nil
	}
	initialize := e.Kind == jsonrpc.Request && mcp.Lookup(e.Method.Of(line)) == mcp.Initialize
	if version := r.Header.Get(headerVersion); version != "" && !initialize && !mcp.IsLegacy(version) {
		refuse(w, id, refusal{status: http.StatusBadRequest, text: unsupportedVersion(version)})
		return
	}
	sessionID := r.Header.Get(headerSession)
	if sessionID == "" && initialize {
		f.greet(w, r, who, line, id, held)
		return
	}
	s := f.mustFind(w, r, who, line, id)
	if s == nil {
		return
	}
	defer f.left(s)
	switch e.Kind {
	case jsonrpc.Request:
		f.ask(w, r, s, []incoming{{line, true}}, reply{id: id, held: held})
	case jsonrpc.Batch:
		f.batch(w, r, s, line, held)
	default:
		f.tell(w, s, []incoming{{line, false}})
	}
}

func unsupportedVersion(version string) string {
	return fmt.Sprintf("unsupported protocol version %.40q; supported: %s, %s", version, strings.Join(mcp.LegacyVersions, ", "), mcp.ModernVersion)
}

// greet opens a session with its first message.
func (f *Front) greet(w http.ResponseWriter, r *http.Request, who caller, line, id []byte, held *load) {
	if !f.serves() {
		refuse(w, id, refusal{status: http.StatusServiceUnavailable, text: "no session can be opened now: this gateway does not reach the fleet, where they are kept; try again"})
		return
	}
	s, why := f.open(who)
	if s == nil {
		refuse(w, id, refusal{status: http.StatusServiceUnavailable, text: why})
		return
	}
	defer f.left(s)
	f.ask(w, r, s, []incoming{{line, true}}, reply{id: id, held: held, opened: true})
	if s.protocol() == "" {
		f.end(s) // it was refused, or the client has left without the session id
	}
}

// mustFind finds a request's session, or answers it: with an error, or with what the gateway says that has the session.
func (f *Front) mustFind(w http.ResponseWriter, r *http.Request, who caller, line, id []byte) *session {
	sessionID := r.Header.Get(headerSession)
	if sessionID == "" {
		refuse(w, id, refusal{status: http.StatusBadRequest, text: "the header Mcp-Session-Id is missing"})
		return nil
	}
	p := &passing{front: f, w: w, r: r, who: who, line: line, id: id, endless: r.Method == http.MethodGet}
	for {
		s, err := f.lookUp(sessionID, who)
		var at *Elsewhere
		switch {
		case err == nil && !f.use(s, who):
			return s
		case err == nil:
			f.left(s)
			if who.passed {
				misdirected(w)
				return nil
			}
			<-s.over // it can be looked up again in a moment
		case errors.Is(err, fs.ErrNotExist):
			refuse(w, id, refusal{status: http.StatusNotFound, text: "session not found"})
			return nil
		case who.passed:
			misdirected(w)
			return nil
		case !errors.As(err, &at):
			f.refuseBusy(w, r, who, id)
			return nil
		case p.pass(at):
			return nil
		default:
			f.table.setPlace(keyOf(sessionID), nil)
			if !p.await(at) {
				f.refuseBusy(w, r, who, id)
				return nil
			}
		}
	}
}

// lookUp finds a session here, or where it is. It may be made here from its record.
func (f *Front) lookUp(id string, who caller) (*session, error) {
	if s := f.find(id, who.Subject, who.View); s != nil {
		return s, nil
	}
	key := keyOf(id)
	if at := f.table.place(key); at != nil && !who.passed {
		return nil, at
	}
	s, err := f.wake(id, who)
	var at *Elsewhere
	if errors.As(err, &at) {
		f.table.setPlace(key, at)
	}
	return s, err
}

// refuseBusy answers a request for a session that cannot be had now. A stream begins all the same, and ends when it can be: then its client
// opens it again. It may end its session for a status that says that nobody is there, as the Go SDK's does.
func (f *Front) refuseBusy(w http.ResponseWriter, r *http.Request, who caller, id []byte) {
	if r.Context().Err() != nil {
		return // nobody waits for it
	}
	if r.Method != http.MethodGet || !f.sharesSessions() {
		refuse(w, id, refusal{status: http.StatusServiceUnavailable, text: "this session cannot be had now: there is no room for it, its record cannot be read, or the gateway that has it does not answer; try again"})
		return
	}
	f.endless.Add(1)
	defer f.endless.Add(-1)
	drained := f.drain.done()
	out := eventWriter{w: w, control: http.NewResponseController(w), timeout: f.opts.WriteTimeout}
	defer out.end()
	for err := out.begin(false, 0); err == nil; err = out.comment() {
		select {
		case <-time.After(lookAgain):
		case <-drained:
			return
		case <-r.Context().Done():
			return
		}
		s, missing := f.lookUp(r.Header.Get(headerSession), who)
		var at *Elsewhere
		switch {
		case missing == nil:
			f.left(s)
			return
		case errors.Is(missing, fs.ErrNotExist), errors.As(missing, &at):
			return
		}
	}
}

// incoming is one message of a client, which was checked.
type incoming struct {
	line []byte
	asks bool // it is a request
}

// tell handles notifications and responses.
func (f *Front) tell(w http.ResponseWriter, s *session, messages []incoming) {
	for _, m := range messages {
		if !s.message(m.line, nil) {
			refuseOver(w, s, nil, "session not found")
			return
		}
	}
	w.WriteHeader(http.StatusAccepted)
}

// ask handles messages with at least one request, and writes the answers.
func (f *Front) ask(w http.ResponseWriter, r *http.Request, s *session, messages []incoming, p reply) {
	due := 0
	for _, m := range messages {
		if m.asks {
			due++
		}
	}
	p.front, p.w, p.r, p.session, p.over = f, w, r, s, s.over
	p.stream, p.reader = s.streamStore.newStream(due, p.held)
	version := s.protocol()
	if p.opened {
		first := messages[0].line
		version, _ = jsonrpc.Unquote(jsonrpc.FindPath(first, "params", "protocolVersion").Of(first))
	}
	p.prime = version >= primedFrom
	for _, m := range messages {
		var to Stream
		if m.asks {
			to = p.stream
		}
		if !s.message(m.line, to) {
			break // s.over says so, too
		}
		p.given = true
	}
	p.run()
	p.stream.left(p.reader)
}

// batch takes an array of messages, which only 2025-03-26 has. The answers are one array, too, or one event each.
func (f *Front) batch(w http.ResponseWriter, r *http.Request, s *session, line []byte, held *load) {
	if s.protocol() != mcp.BatchVersion {
		refuse(w, nil, refusal{status: http.StatusBadRequest, text: "batches are not part of the session's protocol version"})
		return
	}
	var messages []incoming
	asks := false
	for at := range jsonrpc.Elements(line) {
		one := line[at.Start:at.End:at.End]
		var e jsonrpc.Envelope
		no, id := checkMessage(one, &e)
		if no.status == 0 && (e.Kind == jsonrpc.Batch || e.Kind == jsonrpc.Request && mcp.Lookup(e.Method.Of(one)) == mcp.Initialize) {
			no, id = refusal{status: http.StatusBadRequest, text: "this may not stand in a batch"}, e.ID.Of(one)
		}
		if no.status != 0 {
			refuse(w, id, no)
			return
		}
		asks = asks || e.Kind == jsonrpc.Request
		messages = append(messages, incoming{one, e.Kind == jsonrpc.Request})
	}
	switch {
	case len(messages) == 0:
		refuse(w, nil, refusal{status: http.StatusBadRequest, text: "invalid request: an empty batch"})
	case asks:
		f.ask(w, r, s, messages, reply{array: true, held: held})
	default:
		f.tell(w, s, messages)
	}
}

// get opens the general stream, or resumes an interrupted one.
func (f *Front) get(w http.ResponseWriter, r *http.Request, who caller) {
	if !f.sessionRequest(w, r) {
		return
	}
	if !accepts(r, eventStream) {
		refuse(w, nil, refusal{status: http.StatusNotAcceptable, text: "Accept must list text/event-stream"})
		return
	}
	s := f.mustFind(w, r, who, nil, nil)
	if s == nil {
		return
	}
	defer f.left(s)
	p := reply{front: f, w: w, r: r, session: s, events: true, over: s.over}
	last := r.Header.Get(headerLastEvent)
	id, number, ok := parseEventID(last)
	switch {
	case last != "" && !ok:
		refuse(w, nil, refusal{status: http.StatusBadRequest, text: "Last-Event-ID is not one of ours"})
		return
	case last != "" && id != 0:
		p.stream = s.streamStore.find(id)
		if p.stream == nil {
			// 404 would tell the client that its session is gone.
			refuse(w, nil, refusal{status: http.StatusBadRequest, text: "that stream is no longer kept"})
			return
		}
		p.reader = p.stream.from(number)
	default:
		p.stream, p.reader = s.listen(number, last != "")
		p.prime = last == "" && s.protocol() >= primedFrom
		p.drain, p.ends = f.drain.done(), who.Expires
	}
	p.run()
	p.stream.left(p.reader)
}

// delete ends a session.
func (f *Front) delete(w http.ResponseWriter, r *http.Request, who caller) {
	if !f.sessionRequest(w, r) {
		return
	}
	s := f.mustFind(w, r, who, nil, nil)
	if s == nil {
		return
	}
	f.end(s)
	f.left(s)
	w.WriteHeader(http.StatusNoContent)
}

// sessionRequest checks the version of a GET or DELETE, which the modern era does not have.
func (f *Front) sessionRequest(w http.ResponseWriter, r *http.Request) bool {
	switch version := r.Header.Get(headerVersion); {
	case version == "" || mcp.IsLegacy(version):
		return true
	case version == mcp.ModernVersion:
		notAllowed(w, "POST")
	default:
		refuse(w, nil, refusal{status: http.StatusBadRequest, text: unsupportedVersion(version)})
	}
	return false
}

package bridge

import (
	"bytes"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// A call whose server asks something is suspended: the client is answered with the questions, and its next request, the
// call's next round, continues it.

// hasNotAnswered is the error for a question that the client did not answer.
const hasNotAnswered = "the client did not answer"

// tooOften is the error for a question beyond the call's limit.
var tooOften = "the client is not asked more than " + strconv.Itoa(roundsMost) + " times in one call"

// suspend answers the client with the server's questions.
func (s *modernSide) suspend(t *task) {
	t.Round++
	t.Asks, t.Next = append(t.Asks, t.Next...), nil
	t.Expires = s.now.Add(answerFor)
	t.State = stateOf(t, s.key)
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range t.Asks {
		if i > 0 {
			out = append(out, ',')
		}
		q.Key = "ask" + strconv.Itoa(i+1)
		out = append(append(out, '"'), q.Key+`":`...)
		out = append(out, modernAsk(q.Method, q.Params)...)
	}
	out = append(out, `},"requestState":`...)
	out = append(jsonrpc.AppendQuoted(out, t.State), '}')
	s.toClient(jsonrpc.AppendResult(nil, t.ID, out))
	t.ID, t.Token, t.Level = nil, nil, -1
}

// resume takes a call's next round: the client's answers go to the server.
func (s *modernSide) resume(id, line, meta []byte, came time.Time) {
	t := s.meant(line, came)
	if t == nil {
		s.refuse(id, jsonrpc.InvalidParams, expired)
		return
	}
	answers := s.env.InputResponses.Of(line)
	t.ID, t.Meta = bytes.Clone(id), bytes.Clone(meta)
	t.Token, t.Level = bytes.Clone(member(meta, "progressToken")), mcp.Severity(member(meta, mcp.MetaLogLevel))
	t.Can = abilitiesOf(member(meta, mcp.MetaClientCapabilities))
	if t.Behind != nil && s.env.Scan(t.Behind) == nil {
		s.progressed(t.Behind)
	}
	switch {
	case t.Finished != nil:
		if s.env.Scan(t.Finished) == nil {
			s.finish(t, t.Finished)
		}
	case t.Afresh:
		s.beginAgain(t, answers)
	default:
		s.feed(t, answers)
	}
	s.proceed()
}

// feed gives the server the client's answers. Missing ones are asked again.
func (s *modernSide) feed(t *task, answers []byte) {
	s.verbosity()
	var missing []*question
	for _, q := range t.Asks {
		value := member(answers, q.Key)
		if !jsonrpc.IsObject(value) {
			missing = append(missing, q)
			continue
		}
		s.Leveling.send(t, jsonrpc.AppendResult(nil, q.ID, legacyAnswer(q.Method, s.Version, value)), false)
	}
	t.Asks = missing
	if len(missing) == 0 && len(t.Next) == 0 {
		return
	}
	if t.Round >= roundsMost {
		for _, q := range append(t.Asks, t.Next...) {
			s.decline(q, hasNotAnswered)
		}
		t.Asks, t.Next = nil, nil
		return
	}
	s.suspend(t)
}

// declineAll refuses the questions of a call whose client no longer answers.
func (s *modernSide) declineAll(t *task) {
	for _, q := range append(t.Asks, t.Next...) {
		s.decline(q, noLonger)
	}
	t.Asks, t.Next = nil, nil
}

// openURLs answers a call that the server has refused until the client opens some URLs. It reports whether the client
// can.
func (s *modernSide) openURLs(t *task, err []byte) bool {
	wanted := member(err, "data", "elicitations")
	if !t.Open || t.Can&canURL == 0 || t.Round >= roundsMost {
		return false
	}
	for at := range jsonrpc.Elements(wanted) {
		params := set(bytes.Clone(at.Of(wanted)), []byte(`"url"`), "mode")
		t.Next = append(t.Next, &question{Method: askForm, Params: params, Need: canURL})
	}
	if len(t.Next) == 0 {
		return false
	}
	t.Afresh, t.Finished = true, nil
	s.suspend(t)
	return true
}

// beginAgain repeats a refused call, if the client has opened the URLs.
func (s *modernSide) beginAgain(t *task, answers []byte) {
	for _, q := range t.Asks {
		if !jsonrpc.EqualString(member(answers, q.Key, "action"), "accept") {
			delete(s.Calls, t.Wire)
			s.toClient(failed(t.Method, mcp.Modern, t.ID, "The server wants a URL to be opened first, and that was declined."))
			return
		}
	}
	delete(s.Calls, t.Wire)
	t.Asks, t.Afresh = nil, false
	t.Wire = string(s.private())
	t.Params = withoutReserved(t.Params, "progressToken")
	t.mark()
	s.Calls[t.Wire] = t
	s.verbosity()
	s.Leveling.send(t, jsonrpc.AppendRequest(nil, []byte(t.Wire), t.Method.String(), t.Params), true)
}

func (s *modernSide) tick() {
	s.Questions.expire()
	if s.due(s.Leveling.Until) {
		s.Leveling.release()
	}
	for _, t := range inOrder(s.Calls) {
		if !t.suspended() || !s.due(t.Expires) {
			continue
		}
		if t.Finished != nil || t.Afresh {
			delete(s.Calls, t.Wire)
			continue
		}
		s.toServer(mcp.CancelledLine([]byte(t.Wire), "the client did not answer in time"))
		s.drop(t)
	}
	s.proceed()
}

func (s *modernSide) deadline() time.Time {
	at := s.Leveling.Until
	for _, t := range s.Calls {
		if t.suspended() {
			at = deadline.Earliest(at, t.Expires)
		}
	}
	if len(s.Queue) > 0 && (s.Questions.Shared || s.Queue[0].Round) {
		at = deadline.Earliest(at, s.Queue[0].Came.Add(turnFor))
	}
	return deadline.Earliest(at, s.Questions.deadline())
}

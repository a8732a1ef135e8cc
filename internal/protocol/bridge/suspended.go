package bridge

import (
	"bytes"
	"slices"
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
func (s *modernSide) suspend(c *Call) {
	c.Rounds++
	c.Asks, c.Next = append(c.Asks, c.Next...), nil
	c.Expires = s.now.Add(answerFor)
	c.State = stateOf(c, s.key)
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range c.Asks {
		if i > 0 {
			out = append(out, ',')
		}
		q.Key = "ask" + strconv.Itoa(i+1)
		out = append(append(out, '"'), q.Key+`":`...)
		out = append(out, modernAsk(q.Method, q.Params)...)
	}
	out = append(out, `},"requestState":`...)
	out = append(append(out, c.State...), '}')
	s.toClient(jsonrpc.AppendResult(nil, c.ID, out))
	c.ID, c.Token, c.Level = nil, nil, -1
}

// resume takes a call's next round: the client's answers go to the server.
func (s *modernSide) resume(next *Call) {
	c := s.meant(next)
	if c == nil {
		s.refuse(next.ID, jsonrpc.InvalidParams, expired)
		return
	}
	c.ID, c.Line, c.Token, c.Level, c.Can = next.ID, next.Line, next.Token, next.Level, next.Can
	answers := member(c.Line, "params", "inputResponses")
	if c.Behind != nil && s.env.Scan(c.Behind) == nil {
		s.progressed(c.Behind)
	}
	switch {
	case c.Finished != nil:
		_ = s.env.Scan(c.Finished) // it was scanned when it came
		s.finish(c, c.Finished)
	case c.Afresh:
		s.beginAgain(c, answers)
	default:
		s.feed(c, answers)
	}
	s.proceed()
}

// feed gives the server the client's answers. Missing ones are asked again.
func (s *modernSide) feed(c *Call, answers []byte) {
	s.verbosity()
	var missing []*question
	for _, q := range c.Asks {
		value := member(answers, q.Key)
		if !jsonrpc.IsObject(value) {
			missing = append(missing, q)
			continue
		}
		s.toServer(jsonrpc.AppendResult(nil, q.ID, legacyAnswer(q.Method, s.Version, value)))
	}
	c.Asks = missing
	if len(missing) == 0 && len(c.Next) == 0 {
		return
	}
	if c.Rounds >= roundsMost {
		s.declineAll(c, hasNotAnswered)
		return
	}
	s.suspend(c)
}

// declineAll refuses the questions of a call whose client no longer answers.
func (s *modernSide) declineAll(c *Call, why string) {
	for _, q := range append(c.Asks, c.Next...) {
		s.decline(q, why)
	}
	c.Asks, c.Next = nil, nil
}

// openURLs answers a call that the server has refused until the client opens some URLs. It reports whether the client
// can.
func (s *modernSide) openURLs(c *Call, err []byte) bool {
	wanted := member(err, "data", "elicitations")
	if !c.Open || c.Can&canURL == 0 || c.Rounds >= roundsMost {
		return false
	}
	for at := range jsonrpc.Elements(wanted) {
		params := set(bytes.Clone(at.Of(wanted)), []byte(`"url"`), "mode")
		c.Next = append(c.Next, &question{Method: askForm, Params: params, Need: canURL})
	}
	if len(c.Next) == 0 {
		return false
	}
	c.Afresh, c.Finished = true, nil
	s.suspend(c)
	return true
}

// beginAgain repeats a refused call, if the client has opened the URLs.
func (s *modernSide) beginAgain(c *Call, answers []byte) {
	s.Calls.remove(c)
	for _, q := range c.Asks {
		if !jsonrpc.EqualString(member(answers, q.Key, "action"), "accept") {
			s.toClient(failed(c.Method, mcp.Modern, c.ID, "The server wants a URL to be opened first, and that was declined."))
			return
		}
	}
	again := *c                                                // for who remembers calls of the server, it is another one
	again.Asks, again.Afresh, again.Progress = nil, false, nil // the round's progress has another token
	s.forward(&again)
}

func (s *modernSide) tick() {
	s.Questions.expire()
	for _, c := range slices.Clone(s.Calls) {
		if !c.suspended() || !s.due(c.Expires) {
			continue
		}
		if c.Finished != nil || c.Afresh {
			s.Calls.remove(c)
			continue
		}
		s.toServer(mcp.CancelledLine([]byte(c.Wire), "the client did not answer in time"))
		s.drop(c)
	}
	s.proceed()
}

func (s *modernSide) deadline() time.Time {
	at := s.Questions.deadline()
	for _, c := range s.Calls {
		if c.suspended() {
			at = deadline.Earliest(at, c.Expires)
		}
	}
	if len(s.Queue) > 0 && (s.Questions.Shared || s.Queue[0].State != nil) {
		at = deadline.Earliest(at, s.Queue[0].Came.Add(turnFor))
	}
	return at
}

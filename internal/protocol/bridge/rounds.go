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

// A server that only wants to be asked again is asked after paceFirst, doubling to paceMost.
const (
	paceFirst = 250 * time.Millisecond
	paceMost  = 5 * time.Second
)

// round is the state of a call between two requests to the server.
type round struct {
	State []byte // raw requestState, nil for none
	Asks  []*ask // in the order of the server's questions
	Until time.Time
	Pace  time.Time // when a round without questions goes on
}

// ask is a question of the bridge to a legacy client, and its answer one member of inputResponses.
type ask struct {
	ID     []byte // raw
	Key    []byte // raw key of the server's question
	URL    []byte // raw elicitation id, nil for other questions
	Answer []byte // raw; nil until the client has answered
}

// isSent reports whether the server works on a legacy client's call.
func (c *Call) isSent() bool { return c.Wire != "" && c.Round == nil }

// unanswered are the questions of the call to a legacy client that it has not answered.
func (c *Call) unanswered() (open []*ask) {
	if c.Round == nil {
		return nil
	}
	for _, a := range c.Round.Asks {
		if a.Answer == nil {
			open = append(open, a)
		}
	}
	return open
}

// inputRequired turns a server's questions into requests to the client.
func (s *legacySide) inputRequired(c *Call, result []byte) {
	c.Rounds++
	if c.Rounds > roundsMost {
		s.fail(c, "The server asked for more input than "+strconv.Itoa(roundsMost)+" rounds can give.")
		return
	}
	s.completeURLs(c)
	r := &round{State: bytes.Clone(member(result, "requestState")), Until: s.now.Add(answerFor)}
	questions := member(result, "inputRequests")
	var lines [][]byte
	for key, value := range jsonrpc.Members(questions) {
		question := value.Of(questions)
		method, _ := jsonrpc.Unquote(member(question, "method"))
		a := &ask{ID: s.questionID(), Key: bytes.Clone(key.Of(questions))}
		elicitation := jsonrpc.AppendQuoted(nil, string(a.ID))
		params, able := legacyAsk(method, member(question, "params"), s.Can, s.Version, elicitation)
		if !able {
			s.fail(c, "The server asked for something that this client has not declared ("+method+").")
			return
		}
		if jsonrpc.EqualString(member(params, "mode"), "url") && method == askForm {
			a.URL = elicitation
		}
		r.Asks = append(r.Asks, a)
		lines = append(lines, jsonrpc.AppendRequest(nil, a.ID, method, params))
	}
	c.Round = r
	for _, line := range lines {
		s.toClient(line)
	}
	if len(r.Asks) == 0 {
		r.Pace = s.now.Add(min(paceFirst<<(c.Rounds-1), paceMost))
	}
}

// answered takes the client's answer to a question, which may have been withdrawn.
func (s *legacySide) answered(line []byte) {
	id := s.env.ID.Of(line)
	if text := jsonrpc.IntegerText(id); text != nil {
		id = text // some clients return the number as text
	}
	for _, c := range s.Calls {
		for _, a := range c.unanswered() {
			if jsonrpc.SameID(a.ID, id) {
				s.take(c, a, line)
				return
			}
		}
	}
}

// take takes the client's answer to a question of a call.
func (s *legacySide) take(c *Call, a *ask, line []byte) {
	result := s.env.Result.Of(line)
	if s.env.Kind != jsonrpc.Response || !jsonrpc.IsObject(result) {
		a.Answer = line // it is not withdrawn
		s.fail(c, "The client did not answer what the server asked: "+jsonrpc.ErrorMessage(s.env.Error.Of(line)))
		return
	}
	if a.URL != nil && jsonrpc.EqualString(member(result, "action"), "accept") {
		c.URLs = append(c.URLs, a.URL)
	}
	if a.Answer = bytes.Clone(result); len(c.unanswered()) == 0 {
		s.again(c)
	}
}

// again sends a call to the server again, under a new id, with the client's answers.
func (s *legacySide) again(c *Call) {
	params, _ := s.params(without(member(c.Line, "params"), "inputResponses", "requestState"))
	if len(c.Round.Asks) > 0 {
		out := []byte{'{'}
		for i, one := range c.Round.Asks {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(append(append(out, one.Key...), ':'), one.Answer...)
		}
		params = set(params, append(out, '}'), "inputResponses")
	}
	if c.Round.State != nil {
		params = set(params, c.Round.State, "requestState")
	}
	c.Round = nil
	c.Wire = string(s.private())
	s.send(c, jsonrpc.AppendRequest(nil, []byte(c.Wire), c.Method.String(), params))
}

// fail answers a call that cannot continue.
func (s *legacySide) fail(c *Call, text string) {
	s.drop(c, "the request has failed")
	s.completeURLs(c)
	s.toClient(failed(c.Method, mcp.Legacy, c.ID, text))
}

// completeURLs tells the client that its opened URLs are complete: the server has continued.
func (s *legacySide) completeURLs(c *Call) {
	for _, id := range c.URLs {
		params := append(append([]byte(`{"elicitationId":`), id...), '}')
		s.toClient(jsonrpc.AppendNotification(nil, "notifications/elicitation/complete", params))
	}
	c.URLs = nil
}

func (s *legacySide) tickRounds() {
	for _, c := range slices.Clone(s.Calls) {
		switch {
		case c.Round == nil:
		case s.due(c.Round.Pace):
			s.again(c)
		case s.due(c.Round.Until):
			s.fail(c, "The client did not answer what the server asked within "+answerFor.String()+".")
		}
	}
}

func (s *legacySide) roundsDeadline() time.Time {
	var at time.Time
	for _, c := range s.Calls {
		if c.Round != nil {
			at = deadline.Earliest(at, c.Round.Pace, c.Round.Until)
		}
	}
	return at
}

package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

// questions are the requests that a server may send to its client, by the argument kind of the tool ask.
var questions = map[string]struct {
	method string
	params any
}{
	"sampling": {"sampling/createMessage", object{"maxTokens": 100, "messages": []any{
		object{"role": "user", "content": object{"type": "text", "text": "What now?"}}}}},
	"elicitation": {"elicitation/create", object{"message": "Your name?", "requestedSchema": object{
		"type": "object", "properties": object{"name": object{"type": "string"}}}}},
	"roots": {"roots/list", nil},
	"ping":  {"ping", nil},
}

// ask sends the client a request during the call; its result is the call's answer. In the modern era the call is
// answered with input_required instead, and the retry with the client's input.
func (s *server) ask(c *call, a arguments) (any, error) {
	q, ok := questions[a.Kind]
	if !ok {
		return nil, rpcError(codeInvalidParams, "ask: kind is sampling, elicitation, roots or ping, not %q", a.Kind)
	}
	if c.modern {
		return s.inputRequired(c, a.Kind)
	}
	id, answered := s.open()
	c.later = func(ctx context.Context) (any, error) {
		s.out.line(requestLine(id, q.method, q.params))
		select {
		case m, ok := <-answered:
			if !ok {
				return nil, errDrop
			}
			if m.Error != nil {
				return toolError(string(m.Error)), nil
			}
			return text(string(m.Result)), nil
		case <-ctx.Done():
			s.forget(id)
			s.out.notify("notifications/cancelled", object{"requestId": id, "reason": "call cancelled"})
			return nil, ctx.Err()
		}
	}
	return nil, nil
}

// open reserves an id for a request to the client.
func (s *server) open() (json.RawMessage, chan *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := json.RawMessage(strconv.Itoa(s.nextAsk))
	if !s.o.idsFromZero {
		id = encode(fmt.Sprintf("ask-%d-%d", os.Getpid(), s.nextAsk))
	}
	s.nextAsk++
	answered := make(chan *message, 1)
	s.asked[string(id)] = answered
	return id, answered
}

func (s *server) forget(id json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, string(id))
}

// inputRequired asks in the modern era. Its requestState is valid in this process only, as for SDK servers with a key
// of their own: after a restart a retry fails with -32602.
func (s *server) inputRequired(c *call, kind string) (any, error) {
	var p struct {
		State     string                     `json:"requestState"`
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
	if err := param(c.Params, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.State == "" {
		state := fmt.Sprintf("%d-%d", os.Getpid(), s.nextAsk)
		s.nextAsk++
		s.parked[state] = kind
		request := object{"method": questions[kind].method}
		if params := questions[kind].params; params != nil {
			request["params"] = params
		}
		return object{"resultType": "input_required", "requestState": state, "inputRequests": object{kind: request}}, nil
	}
	if s.parked[p.State] != kind {
		return nil, rpcError(codeInvalidParams, "Invalid or expired requestState")
	}
	delete(s.parked, p.State)
	return text(string(p.Responses[kind])), nil
}

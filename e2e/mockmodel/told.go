package mockmodel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Call is a call of an MCP server's tool.
type Call struct {
	Server string // as the client's configuration names it
	Tool   string
	Args   map[string]any
	Prompt string // one of Script.Prompts: the agent that is meant. "": any
}

// name is the tool's name as Claude Code and Codex offer it.
func (c Call) name() string { return "mcp__" + c.Server + "__" + c.Tool }

// Result is what a client sent back for a call.
type Result struct {
	Text string // the texts of the result, or what the client says instead of a result
	// Failed says that the client marked it as an error. Codex marks nothing when its model calls tools from a program, and
	// Chat Completions have no such mark.
	Failed bool
}

// order is one answer of the model that the test has asked for.
type order struct {
	call   *Call // nil: say text and end the turn
	text   string
	prompt string // as Call.Prompt
	// loaded says that a deferred tool has been asked for already, found or not.
	loaded bool
	sent   chan sent // takes one value when the answer is sent; closed without one when the client left before
}

// sent is a tool call that the client has been told to make.
type sent struct {
	result chan Result
	loads  bool // it asks for the definition of a deferred tool; the call itself is still to come
}

// errClosed is the error of a call on a server that is closed.
var errClosed = errors.New("mock model: the server is closed")

// Call makes the agent call a tool, in mode Told: it waits for the agent's next request, answers it with the call, and
// returns what the agent's following request holds as the result. A tool whose definition the client defers is asked
// for first, with the client's own search tool. The error is ctx's when no result came in time, or says that the server
// is closed. One Call or Say at a time for each agent.
func (s *Server) Call(ctx context.Context, c Call) (Result, error) {
	for loaded := false; ; loaded = true {
		told, err := s.tell(ctx, order{call: &c, prompt: c.Prompt, loaded: loaded})
		if err != nil {
			return Result{}, err
		}
		select {
		case result := <-told.result:
			if !told.loads {
				return result, nil
			}
		case <-ctx.Done():
			return Result{}, fmt.Errorf("no result of %s: %w", c.name(), ctx.Err())
		case <-s.closed:
			return Result{}, errClosed
		}
	}
}

// Say ends the agent's turn with a text, in mode Told. It waits for the agent's next request.
func (s *Server) Say(ctx context.Context, text string) error {
	return s.SayTo(ctx, "", text)
}

// SayTo is Say for the agent with that prompt, one of Script.Prompts.
func (s *Server) SayTo(ctx context.Context, prompt, text string) error {
	_, err := s.tell(ctx, order{text: text, prompt: prompt})
	return err
}

// tell hands an order to the agent's next request. A client that leaves before it has the answer sends another request.
func (s *Server) tell(ctx context.Context, o order) (sent, error) {
	for {
		o.sent = make(chan sent, 1)
		select {
		case s.orders[o.prompt] <- o:
		case <-ctx.Done():
			return sent{}, fmt.Errorf("the agent asked for no next step: %w", ctx.Err())
		case <-s.closed:
			return sent{}, errClosed
		}
		if told, ok := <-o.sent; ok {
			return told, nil
		}
	}
}

// obey keeps the agent's own request until the test gives an order for it. ok is false when nobody waits any more.
func (s *Server) obey(r *http.Request, body []byte) (o order, ok bool) {
	var own chan order
	for _, prompt := range s.script.Prompts {
		if bytes.Contains(body, []byte(prompt)) {
			own = s.orders[prompt]
		}
	}
	select {
	case o = <-s.orders[""]:
	case o = <-own:
	case <-r.Context().Done():
		return order{}, false
	case <-s.closed:
		return order{}, false
	}
	if r.Context().Err() != nil {
		close(o.sent)
		return order{}, false
	}
	return o, true
}

// expect says that the result of call id is waited for.
func (s *Server) expect(o order, id string, loads bool) {
	result := make(chan Result, 1)
	s.mu.Lock()
	s.expected[id] = result
	s.mu.Unlock()
	o.sent <- sent{result: result, loads: loads}
}

// came takes the result of a call from a request. Clients repeat all results in each request; the first counts.
func (s *Server) came(id string, result Result) {
	s.mu.Lock()
	waits, ok := s.expected[id]
	delete(s.expected, id)
	s.mu.Unlock()
	if ok {
		waits <- result
	}
}

// texts joins the texts in a result's content, which is a string or a list of blocks.
func texts(content json.RawMessage) string {
	var whole string
	if json.Unmarshal(content, &whole) == nil {
		return whole
	}
	var blocks []struct {
		Text     string `json:"text"`
		ToolName string `json:"tool_name"` // of a deferred tool that was found
	}
	if json.Unmarshal(content, &blocks) != nil {
		return string(content)
	}
	var all []string
	for _, b := range blocks {
		all = append(all, b.Text+b.ToolName)
	}
	return strings.Join(all, "\n")
}

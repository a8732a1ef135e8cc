package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// call is one request until its answer.
type call struct {
	*message
	modern bool
	// logLevel of the request in the modern era; empty: no log messages.
	logLevel string
	// later is set by a handler that needs time: it runs in a goroutine of its own, and its result is the answer.
	later func(ctx context.Context) (any, error)
	// after runs when the answer was written.
	after func()
}

// request answers m, at once or from a goroutine of its own. The error ends the server.
func (s *server) request(m *message) error {
	s.mu.Lock()
	s.requests++
	n := s.requests
	s.mu.Unlock()
	c := &call{message: m}
	if s.crashNow(n, m.Method) {
		s.crash(c)
		return nil
	}
	result, err := s.dispatch(c)
	var fatal *fatalError
	if errors.As(err, &fatal) {
		return fatal
	}
	if c.later == nil {
		s.reply(c, n, result, err)
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	s.running[string(m.ID)] = cancel
	s.mu.Unlock()
	s.calls.Add(1)
	go func() {
		defer s.calls.Done()
		defer cancel()
		result, err := c.later(ctx)
		s.mu.Lock()
		delete(s.running, string(m.ID))
		s.mu.Unlock()
		if ctx.Err() != nil {
			err = errDrop // receivers of notifications/cancelled should not answer
		}
		s.reply(c, n, result, err)
	}()
	return nil
}

// fatalError ends a server with -strict.
type fatalError struct{ why string }

func (e *fatalError) Error() string { return "strict: " + e.why }

func (s *server) reply(c *call, n int, result any, err error) {
	if !errors.Is(err, errDrop) {
		s.out.line(s.answerLine(c, result, err))
	}
	if c.after != nil {
		c.after()
	}
	if s.o.exitAfter == n && s.o.exitAfter > 0 {
		s.exit(s.o.exitCode)
	}
}

func (s *server) answerLine(c *call, result any, err error) []byte {
	if err != nil {
		return s.out.answer(c.ID, "error", asRPCError(err))
	}
	if c.modern {
		result = s.modernResult(result)
	}
	return s.out.answer(c.ID, "result", result)
}

// dispatch determines the era of the request, then its method.
func (s *server) dispatch(c *call) (any, error) {
	if c.Method == "initialize" {
		return s.initialize(c)
	}
	meta, enveloped := requestMeta(c.Params)
	if c.Method == "server/discover" && !s.o.modern() {
		return s.probe()
	}
	if c.Method == "server/discover" && s.o.probe != "ok" && s.era() == "" {
		return s.probe()
	}
	if enveloped || !s.o.legacy() {
		if err := s.enterModern(c, meta); err != nil {
			return nil, err
		}
		return s.method(c)
	}
	if err := s.checkLegacy(c.Method); err != nil {
		return nil, err
	}
	return s.method(c)
}

func (s *server) era() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session.Era
}

// method handles the methods of both eras, and those of one era only.
func (s *server) method(c *call) (any, error) {
	if c.modern {
		switch c.Method {
		case "server/discover":
			return s.discover(), nil
		case "subscriptions/listen":
			return s.listen(c)
		}
	} else {
		switch c.Method {
		case "ping":
			return object{}, nil
		case "logging/setLevel":
			return s.setLevel(c.Params)
		case "resources/subscribe", "resources/unsubscribe":
			return s.subscribe(c)
		}
	}
	switch c.Method {
	case "tools/list":
		return s.listTools(c.Params)
	case "tools/call":
		return s.callTool(c)
	case "resources/list", "resources/templates/list", "resources/read":
		return s.resources(c)
	case "prompts/list", "prompts/get", "completion/complete":
		return s.prompts(c)
	}
	return nil, rpcError(codeNoMethod, "Method not found: %s", c.Method)
}

// probe answers server/discover before initialize, as a server that may not know it.
func (s *server) probe() (any, error) {
	switch s.o.probe {
	case "ok":
		return s.discover(), nil
	case "silent":
		return nil, errDrop
	case "exit":
		fmt.Fprintln(s.stderr, "mcptest: request before initialize: server/discover")
		s.exit(s.o.exitCode)
		return nil, errDrop
	}
	return nil, rpcError(codeNoMethod, "Method not found: server/discover")
}

// param decodes one member of an object's params into v; without the member v is not changed.
func param(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return rpcError(codeInvalidParams, "Invalid params: %v", err)
	}
	return nil
}

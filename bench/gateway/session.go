package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// patience is how long anything may take that must happen.
const patience = 20 * time.Second

// errUnanswered means that a response held no answer to what was asked, or an error.
var errUnanswered = errors.New("no good answer")

// session is one client of a gateway, with a session of the legacy era.
type session struct {
	wire   *wire
	tool   string // what the gateway calls the server's tool
	nextID int
	body   []byte
}

const initializeParams = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`

// connect opens a session and reads the tools, of which the one that ends in echo is called from then on.
func connect(endpoint string) (*session, error) {
	w, err := newWire(endpoint)
	if err != nil {
		return nil, err
	}
	s := &session{wire: w, nextID: 100_000_000}
	if err := s.initialize(); err != nil {
		w.close()
		return nil, err
	}
	tools, err := s.ask("tools/list", "{}", patience)
	if err != nil {
		w.close()
		return nil, fmt.Errorf("tools/list: %w", err)
	}
	if s.tool = echoTool(tools); s.tool == "" {
		w.close()
		return nil, fmt.Errorf("tools/list: no echo in %.200s", tools)
	}
	return s, nil
}

func (s *session) initialize() error {
	w := s.wire
	id := s.id()
	got, err := w.post([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"initialize","params":`+initializeParams+`}`), patience)
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if got.status != 200 || !good(got.message(id)) {
		return fmt.Errorf("initialize: %w: %d %.300s", errUnanswered, got.status, got.body)
	}
	if got.session != "" {
		w.addHeader("Mcp-Session-Id", got.session)
	}
	w.addHeader("Mcp-Protocol-Version", "2025-11-25")
	if _, err := w.post([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), patience); err != nil {
		return fmt.Errorf("initialized: %w", err)
	}
	return nil
}

// echoTool is the first tool of a list whose name is echo, with or without a prefix.
func echoTool(list []byte) string {
	for rest := list; ; {
		_, after, found := bytes.Cut(rest, []byte(`"name":"`))
		if !found {
			return ""
		}
		name, tail, _ := bytes.Cut(after, []byte(`"`))
		if bytes.HasSuffix(name, []byte("echo")) {
			return string(name)
		}
		rest = tail
	}
}

// id is the next request's id. All have nine digits, so that they occur nowhere else.
func (s *session) id() string {
	s.nextID++
	return strconv.Itoa(s.nextID)
}

// ask sends one request and returns its answer, valid until the next one.
func (s *session) ask(method, params string, limit time.Duration) ([]byte, error) {
	id := s.id()
	s.body = append(append(append(s.body[:0], `{"jsonrpc":"2.0","id":`...), id...), `,"method":"`...)
	s.body = append(append(append(append(s.body, method...), `","params":`...), params...), '}')
	got, err := s.wire.post(s.body, limit)
	if err != nil {
		return nil, err
	}
	message := got.message(id)
	if got.status != 200 || !good(message) {
		return nil, fmt.Errorf("%w to %s: %d %.300s", errUnanswered, method, got.status, got.body)
	}
	return message, nil
}

// good says whether a message is an answer and no error, neither the protocol's nor a tool's.
func good(message []byte) bool {
	return len(message) > 0 && bytes.Contains(message, []byte(`"result"`)) && !bytes.Contains(message, []byte(`"isError":true`))
}

// echoParams are the parameters of an echo call with a message of the given size.
func (s *session) echoParams(size int) string {
	return `{"name":"` + s.tool + `","arguments":{"message":"` + string(bytes.Repeat([]byte("x"), size)) + `"}}`
}

func (s *session) close() { s.wire.close() }

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// errUnanswered means that a response held no answer to what was asked, or an error.
var errUnanswered = errors.New("no good answer")

// session is one client of a gateway, with a session of the legacy era.
type session struct {
	wire   *wire
	tools  []string // what the gateway calls the servers' tools
	nextID int
	body   []byte
}

const initializeParams = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`

// connect opens a session and reads the tools until those of so many servers are there.
func connect(endpoint string, servers int) (*session, error) {
	w, err := newWire(endpoint)
	if err != nil {
		return nil, err
	}
	s := &session{wire: w, nextID: 100_000_000}
	if err = s.initialize(); err == nil {
		err = s.awaitTools(servers)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return s, nil
}

// awaitTools lists the tools until those of so many servers are among them: some gateways serve before their servers do.
func (s *session) awaitTools(servers int) error {
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		list, err := s.ask("tools/list", "{}", patience)
		if err != nil {
			return fmt.Errorf("tools/list: %w", err)
		}
		if s.tools = echoTools(list); len(s.tools) >= servers {
			return nil
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("tools/list: %w: %d of %d servers' tools: %.200s", errUnanswered, len(s.tools), servers, list)
		}
	}
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

// echoTools are the tools of a list whose names end in echo, each with or without a prefix.
func echoTools(list []byte) (tools []string) {
	for rest := list; ; {
		_, after, found := bytes.Cut(rest, []byte(`"name":"`))
		if !found {
			return tools
		}
		name, tail, _ := bytes.Cut(after, []byte(`"`))
		if bytes.HasSuffix(name, []byte("echo")) {
			tools = append(tools, string(name))
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

// echoParams are the parameters of a call of an echo tool with a message of the given size.
func echoParams(tool string, size int) string {
	return `{"name":"` + tool + `","arguments":{"message":"` + string(bytes.Repeat([]byte("x"), size)) + `"}}`
}

func (s *session) close() { s.wire.close() }

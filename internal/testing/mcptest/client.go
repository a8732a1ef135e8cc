package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
)

// ErrClosed is the error of requests that were open when the stream ended.
var ErrClosed = errors.New("connection closed")

// ErrNoAnswer is returned by a [Handler] to leave the request open; [Client.Answer] may answer it later.
var ErrNoAnswer = errors.New("leave the request open")

// Handler answers one request of the server. An *[RPCError] is sent as it is, any other error as -32603.
type Handler func(params json.RawMessage) (any, error)

// Message is a received line that was not an answer: a notification, or a request of the server if ID is set.
type Message struct {
	// ID holds the raw bytes of a request's id; nil for notifications.
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	// Line is the whole line as received, without its newline.
	Line string
}

// Client is a raw-line MCP client. Its methods may be called from any goroutine. Every request must get exactly one
// answer with exactly the bytes of its id: [Client.Verify] checks that.
type Client struct {
	rw io.ReadWriteCloser
	// Modern makes Call, Go and GoID add the _meta of a 2026-07-28 client to params. Set it before the first request.
	Modern bool
	// LogLevel is the log level in these requests' _meta; empty: none. Set it before the first request.
	LogLevel string

	write sync.Mutex
	done  chan struct{}
	// handling counts running handlers.
	handling sync.WaitGroup

	mu       sync.Mutex
	nextID   int
	lines    []string
	changed  chan struct{}         // closed and replaced with each line
	pending  map[string][]*Pending // open requests by raw id, oldest first
	sent     map[string]bool       // raw ids ever used
	messages []Message
	problems []string
	handlers map[string]Handler
	closed   bool
}

// NewClient starts reading. It ends with [Client.Close], or when the stream's read side ends.
func NewClient(rw io.ReadWriteCloser) *Client {
	c := &Client{
		rw: rw, done: make(chan struct{}), changed: make(chan struct{}),
		pending: map[string][]*Pending{}, sent: map[string]bool{},
		handlers: map[string]Handler{"ping": func(json.RawMessage) (any, error) { return object{}, nil }},
	}
	go c.read()
	return c
}

func (c *Client) read() {
	defer close(c.done)
	r := bufio.NewReaderSize(c.rw, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			c.receive(bytes.TrimSuffix(line, []byte("\n")), err == nil)
		}
		if err != nil {
			c.end()
			return
		}
	}
}

// end answers all open requests with ErrClosed.
func (c *Client) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, open := range c.pending {
		for _, p := range open {
			p.finish(nil, ErrClosed)
		}
	}
	c.wake()
}

// wake requires mu.
func (c *Client) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Client) receive(line []byte, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, string(line))
	defer c.wake()
	m, err := parseMessage(line)
	switch {
	case !whole:
		c.problem("line without newline: %.200q", line)
	case bytes.HasSuffix(line, []byte("\r")):
		c.problem("carriage return at the end of %.200q", line)
	case err != nil:
		c.problem("%v: %.200q", err, line)
	case m.JSONRPC != "2.0":
		c.problem("no \"jsonrpc\":\"2.0\": %.200q", line)
	case m.answer():
		c.receiveAnswer(m)
	default:
		c.messages = append(c.messages, Message{ID: m.ID, Method: m.Method, Params: m.Params, Line: string(line)})
		if m.request() {
			c.handle(m)
		}
	}
}

// problem requires mu.
func (c *Client) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// receiveAnswer requires mu.
func (c *Client) receiveAnswer(m *message) {
	id := string(m.ID)
	open := c.pending[id]
	if m.Result != nil && m.Error != nil {
		c.problem("answer to %s has result and error", id)
	}
	if len(open) == 0 {
		why := "never asked"
		if c.sent[id] {
			why = "answered before"
		}
		c.problem("answer to %s, which was %s: %.200q", id, why, m.Result)
		return
	}
	p := open[0]
	if c.pending[id] = open[1:]; len(open) == 1 {
		delete(c.pending, id)
	}
	if m.Error == nil {
		p.finish(m.Result, nil)
		return
	}
	e := &RPCError{}
	if err := json.Unmarshal(m.Error, e); err != nil {
		c.problem("answer to %s: unreadable error %.200q", id, m.Error)
	}
	p.finish(nil, e)
}

// handle requires mu; the handler runs without it.
func (c *Client) handle(m *message) {
	h, ok := c.handlers[m.Method]
	c.handling.Add(1)
	go func() {
		defer c.handling.Done()
		if !ok {
			_ = c.AnswerError(m.ID, rpcError(codeNoMethod, "Method not found: %s", m.Method))
			return
		}
		result, err := h(m.Params)
		switch {
		case errors.Is(err, ErrNoAnswer):
		case err != nil:
			_ = c.AnswerError(m.ID, asRPCError(err))
		default:
			_ = c.Answer(m.ID, result)
		}
	}()
}

// Handle sets the handler of the server's requests of method. Without a handler ping is answered with {}, everything
// else with -32601.
func (c *Client) Handle(method string, h Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handlers[method] = h
}

// Answer sends the result of a request of the server; id is its raw bytes.
func (c *Client) Answer(id json.RawMessage, result any) error {
	return c.Send(string(join(`{"jsonrpc":"2.0","id":`, id, `,"result":`, encode(result), `}`)))
}

// AnswerError sends the error answer of a request of the server; id is its raw bytes.
func (c *Client) AnswerError(id json.RawMessage, e *RPCError) error {
	return c.Send(string(join(`{"jsonrpc":"2.0","id":`, id, `,"error":`, encode(e), `}`)))
}

// Send writes one line unchanged and adds the newline.
func (c *Client) Send(line string) error {
	c.write.Lock()
	defer c.write.Unlock()
	if _, err := io.WriteString(c.rw, line+"\n"); err != nil {
		return fmt.Errorf("send %.80q: %w", line, err)
	}
	return nil
}

// Notify sends a notification; nil params are left out.
func (c *Client) Notify(method string, params any) error {
	return c.Send(string(requestLine(nil, method, params)))
}

// Close closes the stream, waits for the reader and the handlers, and returns the error of closing the stream.
func (c *Client) Close() error {
	err := c.rw.Close()
	<-c.done
	c.handling.Wait()
	return err
}

// CloseWrite ends the server's input, if the stream has a CloseWrite, and leaves the other direction open.
func (c *Client) CloseWrite() error {
	w, ok := c.rw.(interface{ CloseWrite() error })
	if !ok {
		return errors.New("the stream cannot close one direction")
	}
	return w.CloseWrite()
}

// Done is closed when the server's side has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Lines returns every line received so far, without newlines.
func (c *Client) Lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines)
}

// WaitFor returns the first line received, before or after this call, for which match is true. It fails when ctx is
// done or the stream ends first.
func (c *Client) WaitFor(ctx context.Context, match func(line string) bool) (string, error) {
	return c.WaitAfter(ctx, 0, match)
}

// WaitAfter is WaitFor without the first skip lines: pass len(Lines()) to look only at later ones.
func (c *Client) WaitAfter(ctx context.Context, skip int, match func(line string) bool) (string, error) {
	for {
		c.mu.Lock()
		lines, closed, changed := c.lines, c.closed, c.changed
		c.mu.Unlock()
		for ; skip < len(lines); skip++ {
			if match(lines[skip]) {
				return lines[skip], nil
			}
		}
		if closed {
			return "", fmt.Errorf("wait for a line: %w after %d lines", ErrClosed, len(lines))
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", fmt.Errorf("wait for a line: %w after %d lines", ctx.Err(), len(lines))
		}
	}
}

// Notifications returns the notifications of method received so far, in order; all of them if method is empty.
func (c *Client) Notifications(method string) []Message { return c.received(method, false) }

// Requests returns the server's requests of method received so far, in order; all of them if method is empty.
func (c *Client) Requests(method string) []Message { return c.received(method, true) }

func (c *Client) received(method string, requests bool) []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []Message
	for _, m := range c.messages {
		if (m.ID != nil) == requests && (method == "" || m.Method == method) {
			found = append(found, m)
		}
	}
	return found
}

// newID returns the next number as an id.
func (c *Client) newID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	return strconv.Itoa(c.nextID)
}

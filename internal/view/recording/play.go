package recording

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// Options are how a recording is played. The zero value works.
type Options struct {
	Timeout time.Duration // how long one answer may take; 0: 60 s
	Ignore  []Path        // members of the answers that are not compared
}

// Answer is what came of one request.
type Answer struct {
	Method      string       `json:"method"`
	Target      string       `json:"target,omitempty"`
	ID          string       `json:"request_id"` // raw, as recorded
	Recorded    time.Time    `json:"recorded_at"`
	TookMS      float64      `json:"duration_ms"`
	WasMS       float64      `json:"recorded_duration_ms"`
	Differences []Difference `json:"differences,omitempty"`
	// Uncompared says why there is nothing to compare the answer with; "": it was compared.
	Uncompared string `json:"uncompared,omitempty"`
	// Hidden says that the request was played with "[redacted]" in the place of a secret.
	Hidden bool `json:"hidden,omitempty"`
}

// ErrSeveral is wrapped by the error about a recording of several connections of which none was named.
var ErrSeveral = errors.New("the recording has several connections")

// step is one message of the client's that is played.
type step struct {
	said    tap.Record
	answer  *tap.Record // nil: none was recorded
	request bool
}

// Script is what of a recording is played.
type Script struct {
	steps   []step
	replies map[string][]json.RawMessage // answers of the client to the server's requests, by method, in order
}

// Requests is how many of the steps are requests.
func (s *Script) Requests() (n int) {
	for _, one := range s.steps {
		if one.request {
			n++
		}
	}
	return n
}

// Script returns what is played of one connection, 0 for the only one.
func (r *Recording) Script(connection uint64) (*Script, error) {
	all := r.Connections()
	switch {
	case connection != 0 && !slices.Contains(all, connection):
		return nil, fmt.Errorf("the recording has no connection %d; it has %v", connection, all)
	case connection == 0 && len(all) > 1:
		return nil, fmt.Errorf("%w: %v; say which one", ErrSeveral, all)
	case connection == 0 && len(all) == 1:
		connection = all[0]
	}
	s := &scripting{Script: Script{replies: map[string][]json.RawMessage{}}, open: map[string]int{}, asked: map[string]string{}, greeting: -1}
	for _, m := range r.Messages {
		if m.Connection == connection && m.Body != nil {
			s.take(m)
		}
	}
	s.steps = slices.DeleteFunc(s.steps, func(one step) bool { return one.outlives() })
	return &s.Script, nil
}

// Connections are the numbers of the recorded connections.
func (r *Recording) Connections() (all []uint64) {
	for _, m := range r.Messages {
		if !slices.Contains(all, m.Connection) {
			all = append(all, m.Connection)
		}
	}
	return all
}

// outlives reports whether a call has reached no server: it was of a tool of outlive's own, or refused.
func (s *step) outlives() bool {
	return s.answer != nil && s.answer.From == tap.Outlive && s.said.Method == mcp.ToolsCall.String() && s.answer.Call != nil && s.answer.Call.Sends == 0
}

// scripting is a script while it is made, message by message.
type scripting struct {
	Script
	open     map[string]int    // steps without an answer, by client and id
	asked    map[string]string // methods of the server's requests, likewise
	greeting int               // the step of an initialize that still needs the server's own answer; -1: none
	greeted  bool
}

func (s *scripting) take(m tap.Record) {
	key, answer := m.Client+" "+string(m.ID), m.Kind == tap.Result || m.Kind == tap.Error
	greets := m.Method == mcp.Initialize.String()
	switch {
	case m.Kind == tap.Request && greets && s.greeted && m.Note == tap.NoteEarlier: // somebody else has begun to look: it is shown to all again
	case m.Kind == tap.Request && (m.From == tap.Client || m.From == tap.Outlive && greets && !s.greeted):
		if s.open[key] = len(s.steps); greets {
			s.greeting, s.greeted = len(s.steps), true
		}
		s.steps = append(s.steps, step{said: m, request: true})
	case m.Kind == tap.Notification && m.From == tap.Client:
		s.notification(m)
	case answer && m.From == tap.Client:
		if method, ok := s.asked[key]; ok {
			s.replies[method] = append(s.replies[method], m.Body)
		}
	case m.Kind == tap.Request && m.From == tap.Server && m.To == tap.Client:
		s.asked[key] = m.Method
	case answer && greets && s.greeting >= 0 && m.From == tap.Server: // also what outlive has asked after it has answered itself
		s.steps[s.greeting].answer, s.greeting = &m, -1
	case answer && m.To == tap.Client:
		if at, ok := s.open[key]; ok {
			s.steps[at].answer = &m
			delete(s.open, key)
		}
	}
}

// notification keeps one that a server has to hear. Cancellations are not played: nothing is in flight when the next message is said.
func (s *Script) notification(m tap.Record) {
	switch mcp.Lookup([]byte(`"` + m.Method + `"`)) {
	case mcp.NoteCancelled, mcp.NoteProgress, mcp.NoteInitialized: // the last is said after each initialize
	default:
		s.steps = append(s.steps, step{said: m})
	}
}

// server is the one that a recording is played against.
type server struct {
	out      io.Writer
	patience time.Duration
	lines    chan []byte // closed at the end of its output
	early    [][]byte    // what came of them while something was said
	replies  map[string][]json.RawMessage
}

// ErrEnded is wrapped by the error about a server that has ended before it had answered everything.
var ErrEnded = errors.New("the server has ended")

// Play says what the client has said to a server that reads from in, one request after the other, each when the one before it is answered,
// and calls each with what came of each request. It answers what the server asks as the client has. It returns when everything is
// answered, or with the reason why that is not possible any more.
func (s *Script) Play(ctx context.Context, in io.Writer, out io.Reader, o Options, each func(Answer) error) error {
	srv := &server{out: in, patience: cmp.Or(o.Timeout, time.Minute), lines: make(chan []byte), replies: maps.Clone(s.replies)}
	over := make(chan struct{})
	defer close(over)
	go srv.read(out, over)
	for n, one := range s.steps {
		if !one.request {
			if err := srv.say(ctx, one.said.Body); err != nil {
				return err
			}
			continue
		}
		id := fmt.Appendf(nil, "%d", n+1)
		line, err := jsonrpc.Set(nil, one.said.Body, id, "id")
		if err != nil {
			return fmt.Errorf("request %s of the recording: %w", one.said.ID, err)
		}
		began := time.Now()
		got, err := srv.ask(ctx, id, line)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(one.said.Method+" "+one.said.Target), err)
		}
		if one.said.Method == mcp.Initialize.String() && jsonrpc.Find(got, "result").Present() {
			if err := srv.say(ctx, mcp.InitializedLine()); err != nil {
				return err
			}
		}
		a := one.compare(got, o.Ignore)
		a.TookMS = float64(time.Since(began).Microseconds()) / 1000
		if err := each(a); err != nil {
			return err
		}
	}
	return nil
}

// say writes a line. What the server says meanwhile is kept: one that cannot write reads nothing either.
func (s *server) say(ctx context.Context, line []byte) error {
	text := append(bytes.TrimSpace(line), '\n')
	written := make(chan error, 1)
	go func() { // it ends with the server's stdin, at the latest
		_, err := s.out.Write(text)
		written <- err
	}()
	late := time.NewTimer(s.patience)
	defer late.Stop()
	lines := s.lines
	for {
		select {
		case err := <-written:
			if err != nil {
				return fmt.Errorf("%w: %w", ErrEnded, err)
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return fmt.Errorf("it has not read a message within %s (--timeout)", s.patience)
		case line, more := <-lines:
			if !more {
				lines = nil // the write tells
				continue
			}
			s.early = append(s.early, line)
		}
	}
}

// read hands on the lines of the server's output until over, and closes lines at its end.
func (s *server) read(from io.Reader, over <-chan struct{}) {
	defer close(s.lines)
	for line := range linesOf(from) {
		select {
		case s.lines <- line:
		case <-over:
			return
		}
	}
}

// ask sends a request and waits for its answer.
func (s *server) ask(ctx context.Context, id, line []byte) ([]byte, error) {
	if err := s.say(ctx, line); err != nil {
		return nil, err
	}
	return s.answer(ctx, id)
}

// answer waits for the answer to a request, and answers what the server asks meanwhile.
func (s *server) answer(ctx context.Context, id []byte) ([]byte, error) {
	late := time.NewTimer(s.patience)
	defer late.Stop()
	var env jsonrpc.Envelope
	for {
		line, err := s.next(ctx, late.C)
		if err != nil {
			return nil, err
		}
		if line = jsonrpc.Trim(line); env.Scan(line) != nil {
			continue // noise on its stdout
		}
		switch env.Kind {
		case jsonrpc.Response, jsonrpc.ErrorResponse:
			if jsonrpc.SameID(env.ID.Of(line), id) {
				return line, nil
			}
		case jsonrpc.Request:
			if err := s.reply(ctx, &env, line); err != nil {
				return nil, err
			}
		}
	}
}

// next returns the next line of the server's output.
func (s *server) next(ctx context.Context, late <-chan time.Time) ([]byte, error) {
	if len(s.early) > 0 {
		line := s.early[0]
		s.early = s.early[1:]
		return line, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late:
		return nil, fmt.Errorf("no answer within %s (--timeout)", s.patience)
	case line, more := <-s.lines:
		if !more {
			return nil, fmt.Errorf("%w without an answer", ErrEnded)
		}
		return line, nil
	}
}

// reply answers a request of the server as the client has answered the next one of that method.
func (s *server) reply(ctx context.Context, env *jsonrpc.Envelope, line []byte) error {
	method, _ := jsonrpc.Unquote(env.Method.Of(line))
	id := env.ID.Of(line)
	if method == mcp.Ping.String() {
		return s.say(ctx, jsonrpc.AppendResult(nil, id, []byte("{}")))
	}
	known := s.replies[method]
	if len(known) == 0 {
		return s.say(ctx, jsonrpc.AppendError(nil, id, jsonrpc.MethodNotFound, "the recording has no answer to this", nil))
	}
	s.replies[method] = known[1:]
	out, err := jsonrpc.Set(nil, known[0], id, "id")
	if err != nil {
		return fmt.Errorf("the client's answer to %s in the recording: %w", method, err)
	}
	return s.say(ctx, out)
}

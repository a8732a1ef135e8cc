package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// server is one process of the scripted server. The reading goroutine dispatches; mu guards what it shares with calls
// that take time.
type server struct {
	o      *options
	out    *output
	stdin  io.Reader
	stderr io.Writer
	calls  sync.WaitGroup
	// quit receives the exit status of what ends the server before EOF.
	quit chan int

	mu       sync.Mutex
	tools    []tool
	session  session
	running  map[string]context.CancelFunc // by raw id
	asked    map[string]chan *message      // requests to the client, by raw id
	nextAsk  int
	parked   map[string]string // requestState -> kind, for open questions in the modern era
	listens  []listen
	versions map[string]int // of resources, by URI
	requests int
}

// session is what the client has sent to this process.
type session struct {
	Era           string          `json:"era"`
	Protocol      string          `json:"protocolVersion"`
	Initialized   bool            `json:"initialized"`
	Client        json.RawMessage `json:"clientInfo"`
	Capabilities  json.RawMessage `json:"clientCapabilities"`
	Level         string          `json:"level"`
	Subscriptions []string        `json:"subscriptions"`
}

var errDrop = errors.New("no answer")

// newServer starts the server, or returns the status of a start that the flags made fail.
func newServer(o *options, stdin io.Reader, stdout, stderr io.Writer) (*server, int) {
	s := &server{
		o: o, out: &output{o: o, w: stdout}, stdin: stdin, stderr: stderr,
		quit:     make(chan int, 1),
		running:  map[string]context.CancelFunc{},
		asked:    map[string]chan *message{},
		parked:   map[string]string{},
		versions: map[string]int{},
	}
	if err := s.start(); err != nil {
		fmt.Fprintf(stderr, "mcptest: starting\nmcptest: fatal: %v\n", err)
		return nil, startFailed
	}
	return s, 0
}

// run serves until EOF or until a fault ends it.
func (s *server) run() int {
	stop := s.ignoreSignals()
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.readLines() }()
	for {
		select {
		case code := <-s.quit:
			return code
		case err := <-ended:
			if err != nil {
				fmt.Fprintln(s.stderr, "mcptest:", err)
				return 1
			}
			if !s.o.ignoreEOF {
				s.calls.Wait()
				return s.finalCode()
			}
			ended = nil
		}
	}
}

// finalCode prefers the status of a fault that came at the same time as EOF.
func (s *server) finalCode() int {
	select {
	case code := <-s.quit:
		return code
	default:
		return 0
	}
}

func (s *server) exit(code int) {
	select {
	case s.quit <- code:
	default:
	}
}

// readLines dispatches lines until EOF (nil) or, with -strict, until one at which such servers end.
func (s *server) readLines() error {
	r := bufio.NewReaderSize(s.stdin, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			s.log(line)
			if err := s.handleLine(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
				return err
			}
		}
		if err != nil {
			return s.eof(err)
		}
	}
}

// eof cancels waiting calls: they will not be answered any more.
func (s *server) eof(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, ch := range s.asked {
		close(ch)
		delete(s.asked, id)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return fmt.Errorf("read stdin: %w", err)
}

// log appends with one write, so that lines of several processes do not mix.
func (s *server) log(line []byte) {
	if s.o.logPath == "" {
		return
	}
	entry := fmt.Appendf(nil, "%d\t%s\n", os.Getpid(), bytes.TrimSuffix(line, []byte("\n")))
	if err := appendFile(s.o.logPath, entry); err != nil {
		fmt.Fprintln(s.stderr, "mcptest:", err)
	}
}

func (s *server) handleLine(line []byte) error {
	if s.o.strict {
		if err := strictLine(line); err != nil {
			return err
		}
	}
	m, err := parseMessage(bytes.TrimSpace(line))
	switch {
	case err != nil: // like SDK servers: what is not a message is ignored
		return nil
	case m.answer():
		s.answered(m)
	case m.request():
		return s.request(m)
	default:
		s.notification(m)
	}
	return nil
}

// strictLine returns an error for a line at which servers built on a strict SDK exit.
func strictLine(line []byte) error {
	if !bytes.Equal(bytes.TrimSpace(line), line) {
		return fmt.Errorf("strict: blank around the line %.80q", line)
	}
	m, err := parseMessage(line)
	switch {
	case err != nil:
		return fmt.Errorf("strict: %.80q: %w", line, err)
	case m.JSONRPC != "2.0":
		return fmt.Errorf("strict: no \"jsonrpc\":\"2.0\" in %.80q", line)
	case m.ID != nil && oddID(m.ID):
		return fmt.Errorf("strict: odd id %s", m.ID)
	}
	return nil
}

func (s *server) answered(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch, ok := s.asked[string(m.ID)]; ok {
		delete(s.asked, string(m.ID))
		ch <- m
	}
}

func (s *server) notification(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Method {
	case "notifications/initialized":
		s.session.Initialized = true
	case "notifications/cancelled":
		var p struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &p) != nil {
			return
		}
		if cancel, ok := s.running[string(p.RequestID)]; ok {
			cancel()
		}
		s.endListen(p.RequestID)
	}
}

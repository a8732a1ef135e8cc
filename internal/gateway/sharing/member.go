package sharing

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
)

// MemberOptions are a member's settings.
type MemberOptions struct {
	Request Request
	// Dial connects to the daemon, and starts one if necessary.
	Dial func(ctx context.Context) (net.Conn, error)
	// Said is called with what the server writes to its stderr. nil: that is dropped.
	Said func([]byte)
}

// Member is a run's place at the user's daemon. It may be used from any goroutine.
type Member struct {
	opts      MemberOptions
	transport *http.Transport
	ctx       context.Context
	cancel    context.CancelFunc

	mu    sync.Mutex
	place *place // nil: none has been taken yet
}

// place is a member at one daemon.
type place struct {
	path, server string
	gone         chan struct{} // closed when the daemon has ended
}

// NewMember returns a member. It does not connect before the first [Member.Join].
func NewMember(opts MemberOptions) *Member {
	s := &Member{opts: opts}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.transport = &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return opts.Dial(ctx) },
		MaxIdleConnsPerHost: 8, DisableCompression: true,
	}
	return s
}

// Join connects to the server, and returns pipes for lines from it and to it. A daemon that does not know the place has
// taken the old one's socket, before the end of the old one was noticed: then a new place is taken.
func (s *Member) Join(ctx context.Context) (in, out *os.File, err error) {
	var unknown *place
	for {
		p, err := s.taken(unknown)
		if err != nil {
			return nil, nil, err
		}
		in, out, err := s.join(ctx, p)
		if !errors.Is(err, errNoSuchMember) {
			return in, out, err
		}
		unknown = p
	}
}

// errNoSuchMember means that the daemon does not know the place.
var errNoSuchMember = errors.New("no such member")

// join passes pipes to the daemon. They work although the connection is closed afterwards.
func (s *Member) join(ctx context.Context, p *place) (in, out *os.File, err error) {
	conn, err := s.opts.Dial(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("ask the daemon of shared servers: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := upgrade(conn, p.path+"/join"); err != nil {
		return nil, nil, fmt.Errorf("ask the daemon of shared servers: %w", err)
	}
	stream, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, fmt.Errorf("ask the daemon of shared servers: %w", errors.ErrUnsupported)
	}
	return pass(stream)
}

// upgrade asks the daemon to take pipes over the connection, and reads the answer, and not a byte more.
func upgrade(conn net.Conn, path string) error {
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: "+pipesProtocol+"\r\n\r\n"); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(byByte{conn}), nil)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // what it has is not read
	switch resp.StatusCode {
	case http.StatusSwitchingProtocols:
		return nil
	case noSuchMember:
		return errNoSuchMember
	}
	return fmt.Errorf("it answers %s", resp.Status)
}

// byByte reads one byte at a time, so that what follows an answer is left for whoever reads next.
type byByte struct{ io.Reader }

func (r byByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

// Close gives up the place.
func (s *Member) Close() {
	s.cancel()
	s.transport.CloseIdleConnections()
}

// Server is the daemon's name for the server; "": there is no place.
func (s *Member) Server() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.place == nil {
		return ""
	}
	return s.place.server
}

// Restart replaces the server's processes, for all runs that share it, and returns when that is done.
func (s *Member) Restart(ctx context.Context, source supervise.Source, reason string) error {
	p, err := s.taken(nil)
	if err != nil {
		return err
	}
	resp, err := s.post(ctx, p.path+"/restart", order{reason, source.String(), source == supervise.SourceMonitor})
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	return nil
}

// post sends v as JSON, and returns a response with a 2xx status. Any other status is an error.
func (s *Member) post(ctx context.Context, path string, v any) (*http.Response, error) {
	text, _ := json.Marshal(v) // texts and numbers only: no error
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("ask the daemon of shared servers: %w", err)
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon of shared servers: %w", err)
	}
	if resp.StatusCode > 299 {
		defer resp.Body.Close()
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // the part that could be read is used
		return nil, errors.New(strings.TrimSpace(string(why)))
	}
	return resp, nil
}

// taken returns the place. It takes a new one if there is none, or if its daemon has ended or does not know it.
func (s *Member) taken(unknown *place) (*place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.place == unknown {
		s.place = nil
	}
	if s.place != nil {
		select {
		case <-s.place.gone:
		default:
			return s.place, nil
		}
	}
	resp, err := s.post(s.ctx, "/v1/seat", s.opts.Request)
	if err != nil {
		return nil, err
	}
	lines := json.NewDecoder(resp.Body)
	var first said
	if err := lines.Decode(&first); err != nil {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("ask the daemon of shared servers: %w", err)
	}
	p := &place{path: first.Path, server: first.Server, gone: make(chan struct{})}
	go func() {
		defer close(p.gone)
		defer resp.Body.Close()
		for {
			var more said
			if lines.Decode(&more) != nil {
				return
			}
			if s.opts.Said != nil && len(more.Stderr) > 0 {
				s.opts.Said(more.Stderr)
			}
		}
	}()
	s.place = p
	return p, nil
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/bench/rawio"
)

// end is the client's end of a connection to a server, with its handshake done.
type end interface {
	// ask sends one request, of which it knows all but the id, and returns when it is answered.
	ask(method, params string) error
	// flood makes n calls with that many in flight, and returns when all are answered.
	flood(n, inFlight int) error
	close()
}

const (
	patience  = 60 * time.Second
	handshake = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`
	noted     = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// echoParams is a small call: the line has 200 bytes.
var echoParams = `{"name":"echo","arguments":{"message":"` + strings.Repeat("x", 95) + `"}}`

func request(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}`, id, method, params)
}

// stdio is an end of two pipes.
type stdio struct {
	cmd    *exec.Cmd
	in     *os.File
	out    *os.File
	w, r   int
	id     int
	buffer []byte
	rest   []byte
}

// startStdio starts a program and shakes hands with the server behind it.
func startStdio(argv, env []string, dir string) (*stdio, error) {
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Env, cmd.Dir = inR, outW, env, dir
	err = cmd.Start()
	_, _ = inR.Close(), outW.Close()
	if err != nil {
		return nil, err
	}
	s := &stdio{cmd: cmd, in: inW, out: outR, w: int(inW.Fd()), r: int(outR.Fd()), buffer: make([]byte, 1<<16)} // Fd makes them block
	if err := s.ask("initialize", handshake); err != nil {
		s.close()
		return nil, fmt.Errorf("%s: initialize: %w", strings.Join(argv, " "), err)
	}
	return s, s.write(noted)
}

func (s *stdio) write(line string) error {
	for text := []byte(line + "\n"); len(text) > 0; {
		n, err := rawio.Write(s.w, text)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		text = text[max(n, 0):]
	}
	return nil
}

// line returns the next line, valid until the next call.
func (s *stdio) line() ([]byte, error) {
	for {
		if line, rest, found := bytes.Cut(s.rest, []byte("\n")); found {
			s.rest = rest
			return line, nil
		}
		n, err := rawio.Read(s.r, s.buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return nil, errors.Join(err, io.ErrUnexpectedEOF)
		}
		s.rest = append(bytes.Clone(s.rest), s.buffer[:n]...)
	}
}

// answered reads until an answer comes, and says which id it is for.
func (s *stdio) answered() (string, error) {
	for {
		line, err := s.line()
		if err != nil {
			return "", err
		}
		if at := bytes.Index(line, []byte(`"id":`)); at >= 0 && !bytes.Contains(line, []byte(`"method":`)) {
			if bytes.Contains(line, []byte(`"error":`)) || bytes.Contains(line, []byte(`"isError":true`)) {
				return "", fmt.Errorf("answered with %.300s", line)
			}
			id, _, _ := bytes.Cut(bytes.TrimLeft(line[at+5:], " "), []byte(","))
			return strings.TrimRight(string(id), "} "), nil
		}
	}
}

func (s *stdio) ask(method, params string) error {
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	s.id++
	if err := s.write(request(s.id, method, params)); err != nil {
		return err
	}
	for {
		if id, err := s.answered(); err != nil || id == fmt.Sprint(s.id) {
			return err
		}
	}
}

func (s *stdio) flood(n, inFlight int) error {
	timer := time.AfterFunc(patience, func() { _ = s.cmd.Process.Kill() })
	defer timer.Stop()
	for sent, got := 0, 0; got < n; {
		for sent < n && sent-got < inFlight {
			s.id++
			if err := s.write(request(s.id, "tools/call", echoParams)); err != nil {
				return err
			}
			sent++
		}
		if _, err := s.answered(); err != nil {
			return err
		}
		got++
	}
	return nil
}

func (s *stdio) close() {
	_, _ = s.in.Close(), s.out.Close()
	timer := time.AfterFunc(5*time.Second, func() { _ = s.cmd.Process.Kill() })
	_ = s.cmd.Wait() // its status is of no interest
	timer.Stop()
}

// overHTTP is an end of Streamable HTTP.
type overHTTP struct {
	url     string
	session string
	client  http.Client
	mu      sync.Mutex
	id      int
}

func connectHTTP(url string) (*overHTTP, error) {
	h := &overHTTP{url: url, client: http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	if err := h.ask("initialize", handshake); err != nil {
		return nil, fmt.Errorf("%s: initialize: %w", url, err)
	}
	return h, h.post(noted, false)
}

func (h *overHTTP) post(body string, answer bool) error {
	req, err := http.NewRequest(http.MethodPost, h.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if h.session != "" {
		req.Header.Set("Mcp-Session-Id", h.session)
		req.Header.Set("MCP-Protocol-Version", "2025-06-18")
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && h.session == "" {
		h.session = id
	}
	if resp.StatusCode > 299 || answer && !bytes.Contains(text, []byte(`"result"`)) {
		return fmt.Errorf("%s: %.300s", resp.Status, text)
	}
	return nil
}

func (h *overHTTP) ask(method, params string) error {
	h.mu.Lock()
	h.id++
	id := h.id
	h.mu.Unlock()
	return h.post(request(id, method, params), true)
}

func (h *overHTTP) flood(n, inFlight int) error {
	failed := make(chan error, inFlight)
	for range inFlight {
		go func() {
			for range n / inFlight {
				if err := h.ask("tools/call", echoParams); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	var err error
	for range inFlight {
		err = errors.Join(err, <-failed)
	}
	return err
}

func (h *overHTTP) close() { h.client.CloseIdleConnections() }

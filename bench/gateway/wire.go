package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// wire is one HTTP/1.1 connection that is used for one request at a time.
type wire struct {
	address, path string
	headers       []byte // of every request, each with its line end

	conn net.Conn
	in   *bufio.Reader
	out  []byte
	body []byte
}

// answer is a response. Its body is valid until the next request.
type answer struct {
	status  int
	session string
	events  bool // the body is an event stream
	body    []byte
}

// maxBody is the longest body taken, in bytes: answers here have a few hundred.
const maxBody = 1 << 24

// errNoHTTP means that what came back is not a HTTP/1.1 response.
var errNoHTTP = errors.New("no HTTP response")

func newWire(endpoint string) (*wire, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	return &wire{address: u.Host, path: u.RequestURI(), headers: []byte("Host: " + u.Host + "\r\n" +
		"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n")}, nil
}

// addHeader adds a header to all further requests.
func (w *wire) addHeader(name, value string) {
	w.headers = append(w.headers, name+": "+value+"\r\n"...)
}

// post sends a body and reads the response whole, within limit. It connects if need be; a connection that fails is closed,
// and the request is not repeated.
func (w *wire) post(body []byte, limit time.Duration) (answer, error) {
	if w.conn == nil {
		conn, err := net.DialTimeout("tcp", w.address, limit)
		if err != nil {
			return answer{}, fmt.Errorf("connect: %w", err)
		}
		w.conn, w.in = conn, bufio.NewReaderSize(conn, 16<<10)
	}
	w.out = append(append(append(w.out[:0], "POST "...), w.path...), " HTTP/1.1\r\n"...)
	w.out = append(append(w.out, w.headers...), "Content-Length: "...)
	w.out = append(strconv.AppendInt(w.out, int64(len(body)), 10), "\r\n\r\n"...)
	w.out = append(w.out, body...)
	err := w.conn.SetDeadline(time.Now().Add(limit))
	if err == nil {
		_, err = w.conn.Write(w.out)
	}
	var got answer
	if err == nil {
		got, err = w.read()
	}
	if err != nil {
		w.close()
		return got, fmt.Errorf("request: %w", err)
	}
	return got, nil
}

func (w *wire) close() {
	if w.conn != nil {
		_ = w.conn.Close() // nothing more is wanted of it
		w.conn = nil
	}
}

// read reads one response.
func (w *wire) read() (answer, error) {
	line, err := w.line()
	if err != nil {
		return answer{}, err
	}
	_, rest, _ := bytes.Cut(line, []byte(" "))
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) || len(rest) < 3 {
		return answer{}, fmt.Errorf("%w: %.40q", errNoHTTP, line)
	}
	var got answer
	if got.status, err = strconv.Atoi(string(rest[:3])); err != nil || got.status < 100 {
		return answer{}, fmt.Errorf("%w: %.40q", errNoHTTP, line)
	}
	length, chunked, last := 0, false, false
	for {
		if line, err = w.line(); err != nil {
			return got, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 || length > maxBody {
				return got, fmt.Errorf("%w: length %.40q", errNoHTTP, value)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		case bytes.EqualFold(name, []byte("Connection")):
			last = bytes.EqualFold(value, []byte("close"))
		case bytes.EqualFold(name, []byte("Content-Type")):
			got.events = bytes.HasPrefix(value, []byte("text/event-stream"))
		case bytes.EqualFold(name, []byte("Mcp-Session-Id")):
			got.session = string(value)
		}
	}
	w.body = w.body[:0]
	if chunked {
		err = w.chunks()
	} else {
		err = w.take(length)
	}
	got.body = w.body
	if last {
		w.close()
	}
	return got, err
}

// line reads one line of a head, without its end.
func (w *wire) line() ([]byte, error) {
	line, err := w.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// take reads n bytes of the body.
func (w *wire) take(n int) error {
	at := len(w.body)
	if at+n > maxBody {
		return fmt.Errorf("%w: over %d bytes", errNoHTTP, maxBody)
	}
	w.body = slices.Grow(w.body, n)[:at+n]
	_, err := io.ReadFull(w.in, w.body[at:])
	return err
}

// chunks reads a body in chunks up to its end.
func (w *wire) chunks() error {
	for {
		line, err := w.line()
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(size), 16, 24)
		if err != nil {
			return fmt.Errorf("%w: chunk of %.40q", errNoHTTP, line)
		}
		if err := w.take(int(n)); err != nil {
			return err
		}
		if _, err := w.line(); err != nil { // after a chunk, and after the last one's trailers, which nobody sends
			return err
		}
		if n == 0 {
			return nil
		}
	}
}

// message is the JSON-RPC message with the given id in a response, nil if there is none.
func (a answer) message(id string) []byte {
	if !a.events {
		if bytes.Contains(a.body, []byte(id)) {
			return a.body
		}
		return nil
	}
	for rest := a.body; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && bytes.Contains(data, []byte(id)) {
			return bytes.TrimSpace(data)
		}
	}
	return nil
}

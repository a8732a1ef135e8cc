package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// wire is one HTTP/1.1 connection that is used for one request at a time.
type wire struct {
	address, path string
	headers       []byte // of every request, each with its line end

	conn net.Conn
	in   *bufio.Reader
	out  []byte
	body bytes.Buffer
}

// answer is a response. Its body is valid until the next request.
type answer struct {
	status  int
	session string
	events  bool // the body is an event stream
	body    []byte
}

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
	res, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	w.body.Reset()
	_, err = w.body.ReadFrom(res.Body)
	if res.Close {
		w.close()
	}
	return answer{status: res.StatusCode, session: res.Header.Get("Mcp-Session-Id"), body: w.body.Bytes(),
		events: strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")}, err
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

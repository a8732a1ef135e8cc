package main

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	const id = `"id":7`
	for _, c := range []struct {
		name, text, message string
		status              int
		err                 error
	}{
		{"JSON", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{\"id\":7}", `{"id":7}`, 200, nil},
		{"accepted", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", "", 202, nil},
		{"events in chunks", "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"10\r\nid: 1\ndata: \n\nda\r\n12\r\nta: {\"x\":{},\"id\":7\r\n3\r\n}\n\n\r\n0\r\n\r\n", `{"x":{},"id":7}`, 200, nil},
		{"cut short", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "", 200, io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &wire{in: bufio.NewReader(strings.NewReader(c.text))}
			got, err := w.read()
			if !errors.Is(err, c.err) || got.status != c.status || err == nil && string(got.message(id)) != c.message {
				t.Errorf("got %d %q, %v; want %d %q, %v", got.status, got.message(id), err, c.status, c.message, c.err)
			}
		})
	}
}

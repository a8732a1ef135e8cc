package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// netClient speaks Streamable HTTP by net/http and decodes every answer. It shares nothing with wire, so that a mistake there
// would show.
type netClient struct {
	http   *http.Client
	url    string
	header http.Header
	next   atomic.Int64
}

// newTransport keeps as many connections open as sessions of one program call at a time.
func newTransport() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: patience}
}

func newNetClient(url string, by *http.Client) *netClient {
	c := &netClient{http: by, url: url, header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}}
	c.next.Store(5 * firstID)
	return c
}

// secondClient speaks in the session of the first.
func (s *session) secondClient(url string) *netClient {
	c := newNetClient(url, newTransport())
	for line := range strings.Lines(string(s.wire.headers)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.HasPrefix(name, "Mcp-") {
			c.header.Set(name, value)
		}
	}
	return c
}

// open opens a session.
func (c *netClient) open() error {
	if _, err := c.ask("initialize", initializeParams); err != nil {
		return err
	}
	c.header.Set("Mcp-Protocol-Version", "2025-11-25")
	_, _, err := c.post(c.url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return err
}

// post sends a line and returns the body of the response.
func (c *netClient) post(url, line string) (status int, body []byte, err error) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(line))
	if err != nil {
		return 0, nil, fmt.Errorf("request: %w", err)
	}
	req.Header = c.header
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil {
		return 0, nil, fmt.Errorf("response: %w", err)
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" && c.header.Get("Mcp-Session-Id") == "" {
		c.header.Set("Mcp-Session-Id", id)
	}
	return res.StatusCode, body, nil
}

func (c *netClient) ask(method, params string) (result json.RawMessage, err error) {
	return c.askAt(c.url, method, params)
}

// askAt asks at one of the addresses that know the session, and returns the result.
func (c *netClient) askAt(url, method, params string) (json.RawMessage, error) {
	id := c.next.Add(1)
	status, body, err := c.post(url, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(body) {
		var answer struct {
			ID     int64
			Result json.RawMessage
		}
		data := bytes.TrimPrefix(line, []byte("data: "))
		if json.Unmarshal(data, &answer) == nil && answer.ID == id && answer.Result != nil {
			return answer.Result, nil
		}
	}
	return nil, fmt.Errorf("%w to %s: %d %.300s", errUnanswered, method, status, body)
}

// echoAt calls a tool and compares what comes back with what was sent.
func (c *netClient) echoAt(url, tool, message string) error {
	text, err := c.askAt(url, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{"message":%q}}`, tool, message))
	if err != nil {
		return err
	}
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(text, &result); err != nil || len(result.Content) != 1 || result.Content[0].Text != message {
		return fmt.Errorf("%w: %.300s", errUnanswered, text)
	}
	return nil
}

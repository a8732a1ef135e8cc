package main

import (
	"bufio"
	"bytes"
	_ "embed" // of the Python client
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// netClient is the second client of a session: it shares nothing with wire.go, so that a mistake there would show.
type netClient struct {
	http   *http.Client
	url    string
	tool   string
	header http.Header
	next   int
}

// secondClient speaks in the session of the first.
func (s *session) secondClient(url string) *netClient {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for line := range strings.Lines(string(s.wire.headers)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.HasPrefix(name, "Mcp-") {
			header.Set(name, value)
		}
	}
	return &netClient{http: &http.Client{Transport: &http.Transport{}, Timeout: patience}, url: url, tool: s.tools[0], header: header, next: 500_000_000}
}

// call calls the tool and compares what comes back with what was sent.
func (c *netClient) call(message string) error {
	c.next++
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.next, "method": "tools/call",
		"params": map[string]any{"name": c.tool, "arguments": map[string]any{"message": message}}})
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	req, err := http.NewRequest(http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	req.Header = c.header
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("response: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		var answer struct {
			ID     int
			Result struct{ Content []struct{ Text string } }
		}
		data := strings.TrimPrefix(line, "data: ")
		if json.Unmarshal([]byte(data), &answer) != nil || answer.ID != c.next {
			continue
		}
		if len(answer.Result.Content) == 1 && answer.Result.Content[0].Text == message {
			return nil
		}
	}
	return fmt.Errorf("%w: %d %.300s", errUnanswered, res.StatusCode, text)
}

// checkBlock is a block of calls by the second client, in the same sessions.
func (f *fleet) checkBlock(row *load, length time.Duration) error {
	counts, errs := make([]int, len(f.sessions)), make([]error, len(f.sessions))
	message := strings.Repeat("y", messageSize)
	begin := time.Now()
	var wg sync.WaitGroup
	for i, s := range f.sessions {
		s.close()
		wg.Go(func() {
			c := s.secondClient(f.url)
			defer c.http.CloseIdleConnections()
			for errs[i] == nil && time.Since(begin) < length {
				if errs[i] = c.call(message); errs[i] == nil {
					counts[i]++
				}
			}
		})
	}
	wg.Wait()
	took, sum := time.Since(begin), 0
	for _, n := range counts {
		sum += n
	}
	last := len(row.CheckRates) - 1
	row.CheckRates[last] = append(row.CheckRates[last], float64(sum)/took.Seconds())
	return errors.Join(errs...)
}

//go:embed sdkclient.py
var sdkClient string

// sdkPython is the interpreter, below DIR, that has the Python SDK.
const sdkPython = "fastmcp/bin/python"

// checks lets a client that others have written, the Python SDK's, call through each gateway, first in peace and then while a
// server is killed. Without it there are no checks.
func (b *bench) checks() []check {
	python := filepath.Join(b.peers, sdkPython)
	if _, err := os.Stat(python); b.peers == "" || err != nil {
		b.fail("the Python SDK is not there (%s): its checks are left out", python)
		return nil
	}
	script := filepath.Join(b.dir, "sdkclient.py")
	if err := os.WriteFile(script, []byte(sdkClient), 0o600); err != nil {
		b.fail("checks: %v", err)
		return nil
	}
	var rows []check
	for _, g := range b.gateways {
		b.say("the Python SDK's client: %s", g.name)
		row, err := b.checkOne(g, python, script)
		if err != nil {
			b.fail("the Python SDK's client: %s: %v", g.name, err)
			continue
		}
		rows = append(rows, row)
	}
	return rows
}

// checkOne runs the script: it says "kill" when the server is to be killed, and at its end what it has seen.
func (b *bench) checkOne(g gateway, python, script string) (check, error) {
	row := check{Name: g.name}
	r, err := b.start(g, 1)
	if err != nil {
		return row, err
	}
	defer r.stop(b.echo)
	cmd := exec.Command(python, script, r.url, strconv.Itoa(messageSize))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return row, fmt.Errorf("start client: %w", err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return row, fmt.Errorf("start client: %w", err)
	}
	for in := bufio.NewScanner(out); in.Scan(); {
		if in.Text() == "kill" {
			if _, err := b.killServers(r); errors.Is(err, errNoServer) {
				row.NoServer = true
			}
			continue
		}
		if err := json.Unmarshal(in.Bytes(), &row); err != nil {
			b.fail("the Python SDK's client says %q", in.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		return row, fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return row, nil
}

// sdkVersion is which Python SDK the checks use.
func (b *bench) sdkVersion() string {
	out, err := exec.Command(filepath.Join(b.peers, sdkPython), "-c", "import importlib.metadata as m; print(m.version('mcp'))").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

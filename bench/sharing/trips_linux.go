package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

const (
	rounds   = 40  // blocks of each way
	blockOf  = 150 // calls of a block
	warmUp   = 200
	inFlight = 16
	floodOf  = 1600 // calls of a block with inFlight in flight
	floods   = 8
)

// way is one way to a server.
type way struct {
	name string
	open func() (end, error)

	end    end
	p50    []float64 // µs, of each block
	p99    []float64
	perSec []float64
}

// measure opens all ways and has them take turns.
func measure(ways []*way) error {
	for _, w := range ways {
		var err error
		if w.end, err = w.open(); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		defer w.end.close()
		if err := w.end.ask("tools/list", "{}"); err != nil {
			return fmt.Errorf("%s: tools/list: %w", w.name, err)
		}
		if err := w.block(warmUp, nil); err != nil {
			return err
		}
	}
	for range rounds {
		for _, w := range ways {
			var times []float64
			if err := w.block(blockOf, &times); err != nil {
				return err
			}
			w.p50, w.p99 = append(w.p50, figures.Percentile(times, 0.5)), append(w.p99, figures.Percentile(times, 0.99))
		}
	}
	for range floods {
		for _, w := range ways {
			begin := time.Now()
			if err := w.end.flood(floodOf, inFlight); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			w.perSec = append(w.perSec, floodOf/time.Since(begin).Seconds())
		}
	}
	return nil
}

// block makes calls one after the other.
func (w *way) block(n int, times *[]float64) error {
	for range n {
		begin := time.Now()
		if err := w.end.ask("tools/call", echoParams); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if times != nil {
			*times = append(*times, float64(time.Since(begin).Nanoseconds())/1000)
		}
	}
	return nil
}

// tripTable shows the ways; the first is the server itself, the second what the others are compared with.
func tripTable(title, note string, ways []*way) figures.Table {
	t := figures.Table{Title: title, Note: note, Rows: [][]string{
		{"", "p50, µs", "p99, µs", "added p50, µs", "added, ÷ " + ways[1].name, fmt.Sprintf("calls/s, %d in flight", inFlight), "calls/s ÷ " + ways[1].name}}}
	base := figures.Midmean(ways[0].p50)
	first := figures.Midmean(ways[1].p50) - base
	for i, w := range ways {
		added, ratio, speed := "–", "–", "–"
		p50, perSec := figures.Midmean(w.p50), figures.Midmean(w.perSec)
		if i > 0 {
			added, ratio, speed = figures.Number(p50-base), figures.Ratio(p50-base, first), figures.Ratio(perSec, figures.Midmean(ways[1].perSec))
		}
		t.Rows = append(t.Rows, []string{w.name, figures.Number(p50), figures.Number(figures.Midmean(w.p99)), added, ratio, figures.Number(perSec), speed})
	}
	return t
}

func (b *bench) stdio(argv ...string) func() (end, error) {
	return func() (end, error) { return startStdio(argv, b.env(), b.dir) }
}

// sharedTable is the latency of a shared server.
func (b *bench) sharedTable() (figures.Table, error) {
	ways := []*way{
		{name: "the server itself", open: b.stdio(b.echo)},
		{name: "`outlive run`", open: b.stdio(b.outlive, "run", "--", b.echo)},
		{name: "`outlive run --shared`", open: b.stdio(b.outlive, "run", "--shared", "--", b.echo)},
	}
	err := measure(ways)
	return tripTable("Latency of a shared server", "A call of 200 B, one in flight, to a small Go server (`bench/echo`); all take turns in one run.", ways), err
}

// fromURLTable is a server elsewhere for a client on stdio.
func (b *bench) fromURLTable() (figures.Table, error) {
	url, closeIt, err := startHTTP()
	if err != nil {
		return figures.Table{}, err
	}
	defer closeIt()
	ways := []*way{
		{name: "over HTTP, the server itself", open: func() (end, error) { return connectHTTP(url) }},
		{name: "`outlive run URL`", open: b.stdio(b.outlive, "run", url)},
	}
	before := loadAverage()
	ways = b.addPeer(ways, "mcp-remote", "mcp-remote (npm)", func(program string) *way { return &way{open: b.stdio(program, url, "--silent")} })
	err = measure(ways)
	return tripTable("A server at a URL for a client on stdio", "The same calls; the server at the URL is a handler of Go's net/http, in a process of its own. mcp-remote with --silent: it writes a line for each "+
		"call otherwise. "+loads(before), ways), err
}

// toHTTPTable is a server on stdio for clients over HTTP.
func (b *bench) toHTTPTable() (figures.Table, error) {
	listen := func(argv func(port string) []string) func() (end, error) {
		return func() (end, error) {
			port, err := freePort()
			if err != nil {
				return nil, err
			}
			return b.startListening(argv(port), "http://127.0.0.1:"+port+"/mcp")
		}
	}
	ways := []*way{
		{name: "on stdio, the server itself", open: b.stdio(b.echo)},
		{name: "`outlive gateway --listen`", open: listen(func(port string) []string {
			return []string{b.outlive, "gateway", "--listen", "127.0.0.1:" + port, "--", b.echo}
		})},
	}
	ways = b.addPeer(ways, "supergateway", "supergateway (npm)", func(program string) *way {
		return &way{open: listen(func(port string) []string {
			return []string{program, "--stdio", b.echo, "--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--port", port}
		})}
	})
	ways = b.addPeer(ways, "mcp-proxy", "mcp-proxy (npm)", func(program string) *way {
		return &way{open: listen(func(port string) []string {
			return []string{program, "--host", "127.0.0.1", "--port", port, "--server", "stream", "--", b.echo}
		})}
	})
	ways = b.addPeer(ways, "mcp-proxy-pypi", "mcp-proxy (PyPI)", func(program string) *way {
		return &way{open: listen(func(port string) []string {
			return []string{program, "--host", "127.0.0.1", "--port", port, "--", b.echo}
		})}
	})
	before := loadAverage()
	err := measure(ways)
	return tripTable("One server on stdio for clients over HTTP", "The same calls, by a client of Go's net/http, with a session; each program with its default settings, "+
		"but without a log line for each call, and supergateway and mcp-proxy (npm) with sessions. "+loads(before), ways), err
}

// addPeer adds another program, if it is installed.
func (b *bench) addPeer(ways []*way, program, name string, make func(path string) *way) []*way {
	path := filepath.Join(b.installed, "bin", program)
	if _, err := os.Stat(path); err != nil {
		fmt.Fprintf(os.Stderr, "sharing: %s is not installed and left out\n", name)
		return ways
	}
	w := make(path)
	w.name = name
	for line := range strings.Lines(b.versions) {
		if version, ok := strings.CutPrefix(line, name+" "); ok {
			w.name += " " + strings.TrimSpace(version)
		}
	}
	return append(ways, w)
}

// listening is an end over HTTP whose program was started for it.
type listening struct {
	*overHTTP
	cmd *exec.Cmd
}

func (l *listening) close() {
	l.overHTTP.close()
	_ = l.cmd.Process.Signal(os.Interrupt)
	timer := time.AfterFunc(5*time.Second, func() { _ = l.cmd.Process.Kill() })
	_ = l.cmd.Wait() // its status is of no interest
	timer.Stop()
}

func (b *bench) startListening(argv []string, url string) (end, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = b.env(), b.dir
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var h *overHTTP
	var err error
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if h, err = connectHTTP(url); err == nil {
			return &listening{h, cmd}, nil
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	return nil, err
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// serveVerb is the argument with which this program is the server at a URL.
const serveVerb = "serve-http"

// startHTTP starts this program as a server at a URL. It has a process of its own: the clients read with system calls that Go's
// scheduler does not see, so that a garbage collection in their process waits for the answer, and a server there for the collection.
func startHTTP() (url string, closeIt func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, serveVerb)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	closeIt = func() {
		_ = in.Close()
		_ = cmd.Wait() // its status is of no interest
	}
	if url, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		closeIt()
		return "", nil, fmt.Errorf("start the server at a URL: %w", err)
	}
	return strings.TrimSpace(url), closeIt, nil
}

// serveHTTP serves an MCP server with one tool, echo, until its stdin is closed. It writes its URL to stdout.
func serveHTTP() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: http.HandlerFunc(echoHTTP), ReadHeaderTimeout: patience}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // its end is all that counts
		_ = s.Close()
	}()
	fmt.Println("http://" + l.Addr().String() + "/mcp")
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func echoHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Arguments struct {
				Message string `json:"message"`
			} `json:"arguments"`
		} `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "bench")
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"message":{"type":"string"}}},"annotations":{"readOnlyHint":true}}]}`
	case "tools/call":
		text, _ := json.Marshal(m.Params.Arguments.Message) // a string
		result = `{"content":[{"type":"text","text":` + string(text) + `}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

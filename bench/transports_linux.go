package main

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// end is the client's end of a connection to a server, with its handshake done.
type end interface {
	// call makes one small call, and returns when it is answered.
	call() error
	// flood makes about n calls with so many in flight, and returns how many it were when all are answered.
	flood(n, inFlight int) (calls int, err error)
	close()
}

// stdioEnd is an end of two pipes, with a program behind them.
type stdioEnd struct{ peer *peer }

// behind starts a program that has a server on its stdio.
func (b *bench) behind(name string, argv ...string) func() (end, error) {
	return func() (end, error) {
		p, err := b.startPeer(name, argv)
		if err != nil {
			return nil, err
		}
		if err := p.handshake(); err != nil {
			p.stop()
			return nil, err
		}
		return stdioEnd{p}, nil
	}
}

func (s stdioEnd) call() error { return s.peer.call(smallCall) }

func (s stdioEnd) flood(n, inFlight int) (int, error) {
	s.peer.load(messageSize, 1)
	first := s.peer.nextID
	f := &flow{peer: s.peer, inFlight: inFlight}
	waits, err := f.run(func() (bool, error) { return s.peer.nextID-first >= n, nil })
	if err == nil && len(f.failed) > 0 {
		err = fmt.Errorf("%w: %s", errUnanswered, f.failed[0])
	}
	return len(waits), err
}

func (s stdioEnd) close() { s.peer.stop() }

// smallCall are the parameters of a call whose line has 200 bytes.
var smallCall = echoParams("echo", messageSize-len(callHead)-idWidth-len(callBody)-len(callTail))

// httpEnd is an end of Streamable HTTP.
type httpEnd struct {
	*netClient
	program *process // that was started for it; may be nil
}

// connectHTTP opens a session as soon as somebody serves there.
func connectHTTP(url string) (c *netClient, err error) {
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		c = newNetClient(url, newTransport())
		if err = c.open(); err == nil {
			_, err = c.ask("tools/list", "{}")
			return c, err
		}
	}
	return nil, err
}

// listening starts a program that listens at a port.
func (b *bench) listening(name string, argv func(port string) []string) func() (end, error) {
	return func() (end, error) {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		p, err := b.launch(command{name: name, argv: argv(address[len("127.0.0.1:"):]), env: b.env, dir: b.dir})
		if err != nil {
			return nil, err
		}
		if err = p.listens(address); err == nil {
			var c *netClient
			if c, err = connectHTTP("http://" + address + "/mcp"); err == nil {
				return httpEnd{c, p}, nil
			}
		}
		p.end(time.Second)
		return nil, err
	}
}

func (h httpEnd) call() error { _, err := h.ask("tools/call", smallCall); return err }

func (h httpEnd) flood(n, inFlight int) (int, error) {
	failed := make(chan error, inFlight)
	var left atomic.Int64
	left.Store(int64(n))
	for range inFlight {
		go func() {
			var err error
			for err == nil && left.Add(-1) >= 0 {
				err = h.call()
			}
			failed <- err
		}()
	}
	var err error
	for range inFlight {
		err = errors.Join(err, <-failed)
	}
	return n, err
}

func (h httpEnd) close() {
	h.http.CloseIdleConnections()
	if h.program != nil {
		h.program.end(5 * time.Second)
	}
}

const (
	wayRounds   = 40   // blocks of each way
	wayBlock    = 150  // calls of a block
	wayFlood    = 1600 // calls of a block with wayInFlight in flight
	wayFloods   = 8
	wayInFlight = 16
)

// way is one way to a server.
type way struct {
	name string
	open func() (end, error)

	end      end
	p50, p99 []float64 // µs, of each block
	perSec   []float64
}

// turns opens all ways, has them take turns, and makes a table; the first is the server itself, the second what the others are
// compared with.
func (b *bench) turns(title, note string, ways []*way) (outcome, error) {
	rounds, floods := wayRounds, wayFloods
	if b.quick {
		rounds, floods = 4, 2
	}
	for _, w := range ways {
		b.say("%s: %s", title, w.name)
		var err error
		if w.end, err = w.open(); err != nil {
			return outcome{}, fmt.Errorf("%s: %w", w.name, err)
		}
		defer w.end.close()
		if _, err := w.block(wayBlock); err != nil {
			return outcome{}, err
		}
	}
	for range rounds {
		for _, w := range ways {
			times, err := w.block(wayBlock)
			if err != nil {
				return outcome{}, err
			}
			w.p50, w.p99 = append(w.p50, figures.Percentile(times, 0.5)), append(w.p99, figures.Percentile(times, 0.99))
		}
	}
	for range floods {
		for _, w := range ways {
			begin := time.Now()
			n, err := w.end.flood(wayFlood, wayInFlight)
			if err != nil {
				return outcome{}, fmt.Errorf("%s: %w", w.name, err)
			}
			w.perSec = append(w.perSec, float64(n)/time.Since(begin).Seconds())
		}
	}
	return outcome{tables: []figures.Table{wayTable(title, note, ways)}}, nil
}

// block makes calls one after the other, and returns how many µs each took.
func (w *way) block(n int) (times []float64, err error) {
	for range n {
		begin := time.Now()
		if err := w.end.call(); err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		times = append(times, float64(time.Since(begin).Nanoseconds())/1e3)
	}
	return times, nil
}

func wayTable(title, note string, ways []*way) figures.Table {
	t := figures.Table{Title: title, Note: note, Rows: [][]string{
		{"", "p50, µs", "p99, µs", "added p50, µs", "added, ÷ " + ways[1].name, fmt.Sprintf("calls/s, %d in flight", wayInFlight), "calls/s ÷ " + ways[1].name}}}
	base := figures.Midmean(ways[0].p50)
	for i, w := range ways {
		p50, perSec := figures.Midmean(w.p50), figures.Midmean(w.perSec)
		if i == 0 {
			t.Add(w.name, p50, figures.Midmean(w.p99), "–", "–", perSec, "–")
			continue
		}
		t.Add(w.name, p50, figures.Midmean(w.p99), p50-base, figures.Ratio(p50-base, figures.Midmean(ways[1].p50)-base), perSec,
			figures.Ratio(perSec, figures.Midmean(ways[1].perSec)))
	}
	return t
}

// beside adds another program to the ways, if it is installed.
func (b *bench) beside(ways []*way, program, name string, open func(name, path string) func() (end, error)) []*way {
	path, version, found := b.peer(program)
	if !found {
		if !slices.Contains(b.missing, name) {
			b.missing = append(b.missing, name)
		}
		return ways
	}
	return append(ways, &way{name: name + " " + version, open: open(name, path)})
}

// sharedLatency is the latency of a shared server.
func (b *bench) sharedLatency() (outcome, error) {
	return b.turns("Latency of a shared server", "A call of 200 B, one in flight, to a small Go server (`bench/echo`); all take turns in one run.", []*way{
		{name: "the server itself", open: b.behind("echo", b.echo)},
		{name: "`outlive run`", open: b.behind("outlive run", b.outlive, "run", "--", b.echo)},
		{name: "`outlive run --shared`", open: b.behind("outlive run --shared", b.outlive, "run", "--shared", "--", b.echo)},
	})
}

// fromURL is a server at a URL for a client on stdio.
func (b *bench) fromURL() (outcome, error) {
	address, err := freeAddress()
	if err != nil {
		return outcome{}, err
	}
	server, err := b.launch(command{name: serveVerb, argv: []string{b.self, serveVerb, address}})
	if err != nil {
		return outcome{}, err
	}
	defer server.end(time.Second)
	if err := server.listens(address); err != nil {
		return outcome{}, err
	}
	url := "http://" + address + "/mcp"
	ways := []*way{
		{name: "over HTTP, the server itself", open: func() (end, error) {
			c, err := connectHTTP(url)
			return httpEnd{netClient: c}, err
		}},
		{name: "`outlive run URL`", open: b.behind("outlive run URL", b.outlive, "run", url)},
	}
	ways = b.beside(ways, "mcp-remote", "mcp-remote (npm)", func(name, path string) func() (end, error) { return b.behind(name, path, url, "--silent") })
	return b.turns("A server at a URL for a client on stdio", "The same calls; the server at the URL is a handler of Go's net/http, in a process of its own. mcp-remote with "+
		"--silent: it writes a line for each call otherwise.", ways)
}

// toHTTP is a server on stdio for clients over HTTP.
func (b *bench) toHTTP() (outcome, error) {
	ways := []*way{
		{name: "on stdio, the server itself", open: b.behind("echo", b.echo)},
		{name: "`outlive gateway --listen`", open: b.listening("outlive gateway", func(port string) []string {
			return []string{b.outlive, "gateway", "--listen", "127.0.0.1:" + port, "--", b.echo}
		})},
	}
	for _, other := range []struct {
		program, name string
		args          func(port string) []string
	}{
		{"supergateway", "supergateway (npm)", func(port string) []string {
			return []string{"--stdio", b.echo, "--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--port", port}
		}},
		{"mcp-proxy", "mcp-proxy (npm)", func(port string) []string {
			return []string{"--host", "127.0.0.1", "--port", port, "--server", "stream", "--", b.echo}
		}},
		{"mcp-proxy-pypi", "mcp-proxy (PyPI)", func(port string) []string { return []string{"--host", "127.0.0.1", "--port", port, "--", b.echo} }},
	} {
		ways = b.beside(ways, other.program, other.name, func(name, path string) func() (end, error) {
			return b.listening(name, func(port string) []string { return append([]string{path}, other.args(port)...) })
		})
	}
	return b.turns("One server on stdio for clients over HTTP", "The same calls, by a client of Go's net/http, with a session; each program with its default settings, "+
		"but without a log line for each call, and supergateway and mcp-proxy (npm) with sessions.", ways)
}

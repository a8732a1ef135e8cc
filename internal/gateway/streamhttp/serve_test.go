package streamhttp

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// run serves on a port of its own until stop is called, which returns what Serve has said.
func run(t *testing.T, hub Hub, opts Options) (address string, stop func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := contextWithCancel(t)
	served := make(chan error, 1)
	go func() { served <- New(hub, opts).Serve(ctx, listener) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		select {
		case err := <-served:
			return err
		case <-time.After(patience):
			t.Error("Serve does not end")
			return nil
		}
	}
	t.Cleanup(func() { _ = stop() })
	return listener.Addr().String(), stop
}

// at is a client of whatever listens at address.
func at(t *testing.T, address string) *world {
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return &world{t: t, url: "http://" + address, client: client}
}

// shutDown stops a front that has an open stream and a call: the stream ends at once, and the call is finished.
func shutDown(t *testing.T, w *world, hub *testHub, stop func() error) (session string, s *testSession) {
	t.Helper()
	session = w.greet("2025-11-25")
	s = hub.session(0)
	get := w.open("GET", "", session)
	get.want("")
	calling := make(chan answer, 1)
	go func() { calling <- w.do("POST", call(1), session) }()
	s.await(t, "message "+call(1))
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	get.want("END")
	away(t, s.listener())
	s.reply(1).Send([]byte(result(1)))
	if a := <-calling; a.status != 200 || a.body != result(1) {
		t.Errorf("the call: %+v", a)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	return session, s
}

// Shutdown ends endless streams at once, lets a running call finish, and then closes every session.
func TestShutdownIsGraceful(t *testing.T) {
	hub := &testHub{answer: silent}
	address, stop := run(t, hub, Options{})
	w := at(t, address)
	_, s := shutDown(t, w, hub, stop)
	s.await(t, "close")
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("it still listens")
	}
}

func TestShutdownCutsWhatTakesTooLong(t *testing.T) {
	hub := &testHub{answer: silent, news: make(chan struct{}, 1)}
	address, stop := run(t, hub, Options{Grace: 10 * time.Millisecond})
	w := at(t, address)
	go func() {
		r := request(context.Background(), "POST", w.url+"/mcp", modernLine(1, "x", ""), modernHeaders("x")...)
		if resp, err := w.client.Do(r); err == nil {
			resp.Body.Close()
		}
	}()
	<-hub.news
	s := hub.session(0)
	s.await(t, "message")
	if err := stop(); err != nil {
		t.Error(err)
	}
	s.await(t, "close")
}

func TestListenEndsAtShutdown(t *testing.T) {
	hub := &testHub{answer: func(_ *testSession, _ []byte, reply Stream) { reply.Send([]byte(note(0))) }}
	address, stop := run(t, hub, Options{Grace: time.Hour})
	w := at(t, address)
	e := w.open("POST", modernLine(1, "subscriptions/listen", ""), modernHeaders("subscriptions/listen")...)
	e.want(note(0))
	begin := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	tier.Within(t, "a shutdown, as if a running call were waited for,", time.Since(begin), 3*time.Second)
	e.want("END")
	hub.session(0).await(t, "close")
}

func TestTLS(t *testing.T) {
	pair := httptest.NewUnstartedServer(nil)
	pair.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(pair.Certificate())
	certificates := pair.TLS.Certificates
	pair.Close()
	address, _ := run(t, &testHub{}, Options{TLS: &tls.Config{Certificates: certificates}})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(request(t.Context(), "POST", "https://"+address+"/mcp", initializeLine("2025-11-25")))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Errorf("%s %s %s, %v", resp.Proto, resp.Status, body, err)
	}
}

// A connection over the limit waits until another one has gone.
func TestConnectionLimit(t *testing.T) {
	address, _ := run(t, &testHub{}, Options{MaxConnections: 1})
	ask := func(c net.Conn) error {
		if _, err := io.WriteString(c, "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := dial()
	if err := ask(first); err != nil {
		t.Fatal(err)
	}
	second := dial()
	defer second.Close()
	answered := make(chan error, 1)
	go func() { answered <- ask(second) }()
	select {
	case err := <-answered:
		t.Fatalf("the second was served beside the first: %v", err)
	case <-time.After(50 * time.Millisecond): // the absence of something cannot be waited for
	}
	first.Close()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// A client that sends its header or its body by drops does not hold its connection for ever.
func TestSlowSendersAreCut(t *testing.T) {
	address, _ := run(t, &testHub{}, Options{ReadTimeout: 50 * time.Millisecond})
	for name, text := range map[string]string{
		"header": "POST /mcp HTTP/1.1\r\nHost: loc",
		"body":   "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			t.Errorf("%s: the connection stays open", name)
		}
		c.Close()
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// A call that takes longer than ReadTimeout is not disturbed by it.
func TestReadTimeoutIsNotForCalls(t *testing.T) {
	hub := &testHub{answer: silent}
	w := newWorld(t, hub, Options{ReadTimeout: 20 * time.Millisecond})
	session := w.greet("2025-11-25")
	calling := make(chan answer, 1)
	go func() { calling <- w.do("POST", call(1), session) }()
	s := hub.session(0)
	s.await(t, "message "+call(1))
	select {
	case a := <-calling:
		t.Fatalf("%+v", a)
	case <-time.After(100 * time.Millisecond): // five times the limit
	}
	s.reply(1).Send([]byte(result(1)))
	if a := <-calling; a.body != result(1) {
		t.Errorf("%+v", a)
	}
}

// A client that does not read loses its connection; what it has not read is there when it comes back.
func TestClientThatDoesNotReadLosesItsConnection(t *testing.T) {
	hub := &testHub{answer: silent}
	address, _ := run(t, hub, Options{WriteTimeout: time.Second, QueueBytes: 1 << 20, StoreBytes: 64 << 20, SessionRelease: 50 * time.Millisecond})
	w := at(t, address)
	session := w.greet("2025-11-25")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"+session+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	s := hub.session(0)
	s.await(t, "attach")
	general := s.listener()
	big := `{"jsonrpc":"2.0","method":"n","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`
	for range 20 { // more than the system's buffers hold
		general.Send([]byte(big))
	}
	s.await(t, "release")
	e := w.open("GET", "", session, "Last-Event-ID: 0-0")
	for range 20 {
		if data, ok := e.next(); !ok || data != big {
			t.Fatalf("after coming back: %d bytes, %v", len(data), ok)
		}
	}
}

func TestServeReportsAListenerThatFails(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	f := New(&testHub{}, Options{Log: slog.New(slog.DiscardHandler)})
	if err := f.Serve(t.Context(), listener); !errors.Is(err, net.ErrClosed) {
		t.Errorf("error: %v", err)
	}
	if w := serve(f, request(t.Context(), "POST", "http://localhost/mcp", call(1))); w.Code != 503 {
		t.Errorf("afterwards: %d", w.Code)
	}
	f.Close() // again
}

// A connection that a client has dialled to spare holds up nobody's end.
func TestShutdownDoesNotWaitForUnusedConnections(t *testing.T) {
	address, stop := run(t, &testHub{answer: silent}, Options{Grace: 20 * time.Second})
	spare, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer spare.Close()
	w := at(t, address)
	w.greet("2025-11-25") // accepted after the spare one, so that one is known
	begin := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	tier.Within(t, "a shutdown", time.Since(begin), 4*time.Second) // net/http gives such a connection five
	if err := spare.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := spare.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the spare connection is open: %v", err)
	}
}

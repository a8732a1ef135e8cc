package streamhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/sessionstore"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// given is a listener that first accepts what another process has left.
type given struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (g *given) Accept() (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.conns) > 0 {
		c := g.conns[0]
		g.conns = g.conns[1:]
		return c, nil
	}
	return g.Listener.Accept()
}

// serving is a front that serves a listener until the end of the test.
func serving(t *testing.T, hub *testHub, opts Options, l net.Listener) *Front {
	t.Helper()
	f := New(hub, opts)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	await.Until(t, "Serve has begun", func() bool { return f.conns.Load() != nil })
	return f
}

func rawPost(body, session string) string {
	return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n%s\r\nContent-Length: %d\r\n\r\n%s", session, len(body), body)
}

// Requests that come while another process takes over wait, on connections that are open as on new ones, and it answers them. Those
// that were in progress are answered before.
func TestConnectionsAreHandedOn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a program cannot hand its connections on to another one on Windows, so it is not upgraded in place there")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Store: sessionstore.New("", 0)}
	hub := &testHub{answer: func(s *testSession, line []byte, reply Stream) {
		if !strings.Contains(string(line), `"id":1,`) {
			keeping(s, line, reply)
		}
	}}
	f := serving(t, hub, opts, l)
	open, waiting, stream := dialled(t, l.Addr().String()), dialled(t, l.Addr().String()), dialled(t, l.Addr().String())
	_, _, _, err = askOn(open, rawPost(initializeLine("2025-11-25"), "X-Y: z"))
	if err != nil {
		t.Fatal(err)
	}
	session := "Mcp-Session-Id: " + f.table.all()[0].id
	inProgress := make(chan error, 1)
	go func() {
		status, body, _, err := askOn(waiting, rawPost(call(1), session))
		if err == nil && (status != 200 || !strings.Contains(body, "late")) {
			err = fmt.Errorf("%d %s", status, body)
		}
		inProgress <- err
	}()
	hub.session(0).await(t, "message "+call(1))
	if _, err := io.WriteString(stream, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"+session+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	hub.session(0).await(t, "attach")
	held := awaitHeld(t, f, 2)
	answers := make(chan error, 2)
	ask := func(c net.Conn) {
		status, body, _, err := askOn(c, rawPost(call(2), session))
		if err == nil && status != 200 {
			err = fmt.Errorf("%d %s", status, body)
		}
		answers <- err
	}
	go ask(open)
	go ask(dialled(t, l.Addr().String()))
	select {
	case err := <-held:
		t.Fatalf("a call is in progress, and it does not wait: %v", err)
	case err := <-answers:
		t.Fatalf("a call that is to wait was answered: %v", err)
	case <-time.After(100 * time.Millisecond): // nothing is to happen
	}
	hub.session(0).reply(1).Send([]byte(`{"jsonrpc":"2.0","id":1,"result":{"late":true}}`))
	if err := <-inProgress; err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, firstBody(t, stream)); err != nil {
		t.Errorf("the stream has not ended well: %v", err)
	}
	files, err := f.Connections()
	if err != nil || len(files) != 3 {
		t.Fatalf("%d connections, %v", len(files), err)
	}
	copied, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	next := &given{}
	for _, file := range files {
		c, err := net.FileConn(file)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		next.conns = append(next.conns, c)
	}
	if next.Listener, err = net.FileListener(copied); err != nil {
		t.Fatal(err)
	}
	copied.Close()
	taken := &testHub{answer: keeping}
	serving(t, taken, opts, next)
	for range 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if taken.opened() != 1 || hub.opened() != 1 {
		t.Errorf("%d and %d sessions", hub.opened(), taken.opened())
	}
}

// awaitHeld begins to hold requests back, and returns when all connections but some with a request in progress wait.
func awaitHeld(t *testing.T, f *Front, inProgress int) <-chan error {
	t.Helper()
	v := f.conns.Load().clients
	begun := func() (n int) {
		v.mu.Lock()
		defer v.mu.Unlock()
		for c := range v.all {
			c.reads.Lock()
			if c.begun {
				n++
			}
			c.reads.Unlock()
		}
		return n
	}
	until := func(what string, count func() int) {
		await.Value(t, fmt.Sprintf("%d connections %s", inProgress, what), func() (int, bool) { n := count(); return n, n == inProgress })
	}
	until("have a request in progress", begun) // a client has its answer a moment before the end of its request
	held := make(chan error, 1)
	go func() { held <- f.Hold(t.Context(), func() string { return "" }) }()
	until("may be read", v.busy)
	return held
}

// A request whose first byte came while the one before was carried out is answered by the process that has read that byte.
func TestARequestThatHasBegunIsNotHandedOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hub := &testHub{answer: func(s *testSession, line []byte, reply Stream) {
		if !strings.Contains(string(line), `"id":1,`) {
			keeping(s, line, reply)
		}
	}}
	f := serving(t, hub, Options{}, l)
	conn := dialled(t, l.Addr().String())
	if _, _, _, err := askOn(conn, rawPost(initializeLine("2025-11-25"), "X-Y: z")); err != nil {
		t.Fatal(err)
	}
	session := "Mcp-Session-Id: " + f.table.all()[0].id
	if _, err := io.WriteString(conn, rawPost(call(1), session)); err != nil {
		t.Fatal(err)
	}
	hub.session(0).await(t, "message "+call(1))
	if _, err := io.WriteString(conn, rawPost(call(2), session)); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "net/http has read the byte", func() (read bool) {
		v := f.conns.Load().clients
		v.mu.Lock()
		defer v.mu.Unlock()
		for c := range v.all {
			c.reads.Lock()
			read = read || c.early
			c.reads.Unlock()
		}
		return read
	})
	held := awaitHeld(t, f, 1)
	hub.session(0).reply(1).Send([]byte(result(1)))
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	for id := 1; id <= 2; id++ {
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", id, err)
		}
		body, err := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 || err != nil || !strings.Contains(string(body), fmt.Sprintf(`"id":%d`, id)) {
			t.Errorf("answer %d: %d %s %v", id, resp.StatusCode, body, err)
		}
	}
}

// firstBody reads the header of a response.
func firstBody(t *testing.T, c net.Conn) io.Reader {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Body
}

// Without a quiet moment everything goes on as before, and what has waited is answered.
func TestNoQuietMoment(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := serving(t, &testHub{}, Options{}, l)
	c := dialled(t, l.Addr().String())
	if status, _, _, err := askOn(c, rawPost(initializeLine("2025-11-25"), "X-Y: z")); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	session := "Mcp-Session-Id: " + f.table.all()[0].id
	held, looked := make(chan error, 1), make(chan struct{})
	look := sync.OnceFunc(func() { close(looked) })
	go func() {
		defer look()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		held <- f.Hold(ctx, func() string { look(); return "something goes on" })
	}()
	<-looked // requests are held back by now, and may pass again already
	if status, _, _, err := askOn(c, rawPost(call(2), session)); err != nil || status != 200 {
		t.Error(status, err)
	}
	if err := <-held; !errors.Is(err, ErrNotQuiet) || !strings.Contains(err.Error(), "something goes on") {
		t.Error(err)
	}
	if status, _, _, err := askOn(dialled(t, l.Addr().String()), rawPost(call(3), session)); err != nil || status != 200 {
		t.Error(status, err)
	}
}

// stuckStore stores nothing while its lock is held.
type stuckStore struct {
	Store
	held sync.Mutex
}

func (s *stuckStore) Save(key string, record []byte, until time.Time) error {
	s.held.Lock()
	defer s.held.Unlock()
	return s.Store.Save(key, record, until)
}

// A store that is slow, such as a fleet that elects a leader, does not keep requests back: without a quiet moment everything goes on.
func TestHoldWaitsForNoStore(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	store := &stuckStore{Store: sessionstore.New("", 0)}
	f := serving(t, &testHub{answer: keeping}, Options{Store: store}, l)
	c := dialled(t, l.Addr().String())
	if status, _, _, err := askOn(c, rawPost(initializeLine("2025-11-25"), "X-Y: z")); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	session := "Mcp-Session-Id: " + f.table.all()[0].id
	store.held.Lock()
	defer store.held.Unlock()
	if status, _, _, err := askOn(c, rawPost(keepNote("second"), session)); err != nil || status != 202 {
		t.Fatal(status, err)
	}
	held := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		held <- f.Hold(ctx, func() string { return "" })
	}()
	select {
	case err := <-held:
		if !errors.Is(err, ErrNotQuiet) || !strings.Contains(err.Error(), "sessions are being stored") {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it waits for the store")
	}
	if status, _, _, err := askOn(c, rawPost(call(2), session)); err != nil || status != 200 {
		t.Error(status, err)
	}
}

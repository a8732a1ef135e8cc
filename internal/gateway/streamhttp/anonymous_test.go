package streamhttp

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// askOn sends one request on a connection. kept says whether the server keeps the connection open after it.
func askOn(c net.Conn, text string) (status int, body string, kept bool, err error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, "", false, err
	}
	if _, err := io.WriteString(c, text); err != nil {
		return 0, "", false, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, "", false, err
	}
	all, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	return resp.StatusCode, string(all), !resp.Close, err
}

func dialled(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const (
	plainGet  = "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"
	withToken = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n"
)

// Who may not come in is told why, on every path, and the hub never hears of him. One connection is asked about once.
func TestPeerIsChecked(t *testing.T) {
	hub, asked := &testHub{}, new(atomic.Int32)
	health := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") })
	var refused atomic.Pointer[error]
	opts := Options{Extra: map[string]http.Handler{"/healthz": health}, Peer: func(local, remote net.Addr) error {
		asked.Add(1)
		if local.Network() != "tcp" || remote.String() == local.String() {
			t.Errorf("asked about %v and %v", local, remote)
		}
		if no := refused.Load(); no != nil {
			return *no
		}
		return nil
	}}
	address, _ := run(t, hub, opts)
	own := at(t, address)
	own.greet("2025-11-25")
	own.greet("2025-11-25")
	if n := asked.Load(); n != 1 {
		t.Errorf("a connection was asked about %d times", n)
	}
	own.client.CloseIdleConnections()
	no := errors.New("you are somebody else")
	refused.Store(&no)
	for _, path := range []string{"/mcp", "/healthz", "/elsewhere", wellKnown} {
		status, body, kept, err := askOn(dialled(t, address), "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if status != 403 || !strings.Contains(body, "you are somebody else") || kept || err != nil {
			t.Errorf("%s: %d %s, kept %v, %v", path, status, body, kept, err)
		}
	}
	if hub.opened() != 2 {
		t.Errorf("%d sessions", hub.opened())
	}
	// Where connections are not known, nobody is let in.
	if w := serve(New(hub, opts), request(t.Context(), "POST", "http://localhost/mcp", call(1))); w.Code != 403 {
		t.Errorf("without a connection: %d", w.Code)
	}
}

// A connection is kept for further requests once one of them has shown a right, and not before.
func TestConnectionIsKeptForThoseWhoMayComeIn(t *testing.T) {
	health := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") })
	address, _ := run(t, &testHub{}, Options{Bearer: []string{"secret"}, Extra: map[string]http.Handler{"/healthz": health}})
	for text, want := range map[string]bool{
		plainGet: false,
		strings.Replace(withToken, "secret", "wrong", 1): false,
		strings.Replace(plainGet, "/mcp", "/healthz", 1): false,
		withToken: true,
	} {
		if _, _, kept, err := askOn(dialled(t, address), text); kept != want || err != nil {
			t.Errorf("%q: kept %v, %v", text, kept, err)
		}
	}
	c := dialled(t, address)
	for _, text := range []string{withToken, strings.Replace(plainGet, "/mcp", "/healthz", 1), withToken} {
		if _, _, kept, err := askOn(c, text); !kept || err != nil {
			t.Errorf("after a token: kept %v, %v", kept, err)
		}
	}
}

// All connections are taken by somebody without a token, who says nothing: who has one still comes in.
func TestStrangersKeepNobodyOut(t *testing.T) {
	address, _ := run(t, &testHub{}, Options{Bearer: []string{"secret"}, MaxConnections: 3})
	known := dialled(t, address)
	if status, _, _, err := askOn(known, withToken); status != 400 || err != nil {
		t.Fatalf("%d, %v", status, err)
	}
	for range 3 {
		dialled(t, address)
	}
	if status, _, _, err := askOn(dialled(t, address), withToken); status != 400 || err != nil {
		t.Errorf("beside strangers: %d, %v", status, err)
	}
	if status, _, _, err := askOn(known, withToken); status != 400 || err != nil {
		t.Errorf("a connection with a right was closed for one without: %d, %v", status, err)
	}
}

// Those without a right have a limit of their own, which those with one are not part of.
func TestMostStrangers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := New(&testHub{}, Options{Bearer: []string{"secret"}})
	server, ended := f.server(f), make(chan error, 1)
	go func() { ended <- server.Serve(newAnonymousConns(l, 1000, 2)) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
		f.Close()
	})
	address := l.Addr().String()
	var known []net.Conn
	for range 5 {
		known = append(known, dialled(t, address))
		if status, _, _, err := askOn(known[len(known)-1], withToken); status != 400 || err != nil {
			t.Fatalf("%d, %v", status, err)
		}
	}
	silent := []net.Conn{dialled(t, address), dialled(t, address), dialled(t, address)}
	_ = silent[0].SetReadDeadline(time.Now().Add(2 * time.Minute))
	if n, err := silent[0].Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the oldest: %d, %v", n, err)
	}
	for _, c := range known {
		if status, _, _, err := askOn(c, withToken); status != 400 || err != nil {
			t.Errorf("one with a right: %d, %v", status, err)
		}
	}
}

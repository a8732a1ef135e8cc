package peers

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	secretOne = strings.Repeat("one secret of many ", 2)
	secretTwo = strings.Repeat("two secrets of many ", 2)
)

// gate is a gateway that listens for others, and answers what it gets.
type gate struct {
	t       *testing.T
	address string

	mu      sync.Mutex
	refused []error
	served  int
}

// newGate starts one.
func newGate(t *testing.T, secret string) *gate {
	g := &gate{t: t}
	l, err := link(t, secret).Listen("127.0.0.1:0", func(from netip.Addr, why error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !from.IsLoopback() {
			t.Errorf("refused: %s", from)
		}
		g.refused = append(g.refused, why)
	})
	if err != nil {
		t.Fatal(err)
	}
	g.address = l.Addr().String()
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.served++
		_, _ = io.WriteString(w, "served")
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})
	return g
}

func link(t *testing.T, secret string) *Link {
	t.Helper()
	l, err := NewLink(secret)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// saw is what a gateway was told of, and how much it has served, once it has been told of so many.
func (g *gate) saw(many int) (refused []error, served int) {
	g.t.Helper()
	await.Value(g.t, fmt.Sprintf("the gateway was told of %d", many), func() ([]error, bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		refused, served = g.refused, g.served
		return refused, len(refused) >= many
	})
	return refused, served
}

// A secret that can be guessed is none.
func TestShortSecret(t *testing.T) {
	if _, err := NewLink(strings.Repeat("a", ShortestSecret-1)); err == nil || !strings.Contains(err.Error(), "31 characters, and needs 32") {
		t.Error(err)
	}
	if _, err := NewLink(strings.Repeat("a", ShortestSecret)); err != nil {
		t.Error(err)
	}
}

// Both ends have the secret: a request is served by the gateway whose address its URL names.
func TestLink(t *testing.T) {
	g := newGate(t, secretOne)
	transport := link(t, secretOne).Transport()
	defer transport.CloseIdleConnections()
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.address+"/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); string(text) != "served" || err != nil {
		t.Errorf("%q %v", text, err)
	}
	if refused, served := g.saw(0); refused != nil || served != 1 {
		t.Errorf("%d served, refused %v", served, refused)
	}
}

// The keys of one secret are the same everywhere, each for its purpose: what an older outlive has written can be read.
func TestKeys(t *testing.T) {
	one, same, two := link(t, secretOne), link(t, secretOne), link(t, secretTwo)
	if one.Name != same.Name || one.Name == two.Name || len(one.Name) != 16 {
		t.Errorf("the names are %s, %s and %s", one.Name, same.Name, two.Name)
	}
	if !bytes.Equal(one.SessionKey, same.SessionKey) || bytes.Equal(one.SessionKey, two.SessionKey) || bytes.Equal(one.SessionKey, one.StateKey) || len(one.StateKey) != 32 {
		t.Error("the keys are not as they should be")
	}
}

// With another secret each end says so; who is asked once, until the address has shown the secret.
func TestAnotherSecret(t *testing.T) {
	g := newGate(t, secretOne)
	dial := func(secret string) error {
		conn, err := link(t, secret).Dial(t.Context(), g.address)
		if err == nil {
			_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: gateway\r\n\r\n")
		}
		if err == nil {
			_, err = http.ReadResponse(bufio.NewReader(conn), nil)
		}
		if conn != nil {
			_ = conn.Close()
		}
		return err
	}
	wrong := func() {
		t.Helper()
		if err := dial(secretTwo); !errors.Is(err, ErrSecret) || !strings.HasPrefix(err.Error(), "the gateway at 127.0.0.1:") {
			t.Errorf("another secret: %v", err)
		}
	}
	wrong()
	if refused, _ := g.saw(1); !errors.Is(refused[0], ErrSecret) {
		t.Errorf("who is asked says %v", refused)
	}
	wrong()
	if err := dial(secretOne); err != nil {
		t.Error(err)
	}
	wrong()
	if refused, served := g.saw(2); len(refused) != 2 || served != 1 {
		t.Errorf("%d served, refused %v", served, refused)
	}
}

// Who has no secret gets nothing, whatever it speaks; and who is asked is not taken for who asks.
func TestWithoutSecret(t *testing.T) {
	g := newGate(t, secretOne)
	asking := link(t, secretOne).certs[roleAsks]
	foreign := link(t, secretTwo).certs[roleAsks]
	asked := link(t, secretOne).certs[roleAsked]
	config := func(certs ...tls.Certificate) *tls.Config {
		return &tls.Config{InsecureSkipVerify: true, Certificates: certs}
	}
	older := config(asking)
	older.MaxVersion = tls.VersionTLS12
	for name, dial := range map[string]func() (net.Conn, error){
		"plain HTTP":              func() (net.Conn, error) { return net.Dial("tcp", g.address) },
		"TLS without a key":       func() (net.Conn, error) { return tls.Dial("tcp", g.address, config()) },
		"a key of its own":        func() (net.Conn, error) { return tls.Dial("tcp", g.address, config(foreign)) },
		"the key of who is asked": func() (net.Conn, error) { return tls.Dial("tcp", g.address, config(asked)) },
		"an older TLS":            func() (net.Conn, error) { return tls.Dial("tcp", g.address, older) },
		"a certificate without its key": func() (net.Conn, error) {
			return tls.Dial("tcp", g.address, config(tls.Certificate{Certificate: asking.Certificate, PrivateKey: foreign.PrivateKey}))
		},
	} {
		conn, err := dial()
		if err != nil {
			continue // the handshake says no already
		}
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n") // it may be closed already
		_ = conn.SetReadDeadline(time.Now().Add(handshakeTime))
		if text, err := io.ReadAll(conn); len(text) > 0 && text[0] != 21 { // an alert of TLS
			t.Errorf("%s gets %q, %v", name, text, err)
		}
		_ = conn.Close()
	}
	if refused, served := g.saw(1); served != 0 || len(refused) != 1 { // all come from one address
		t.Errorf("%d served, refused %v", served, refused)
	}
	conn, err := tls.Dial("tcp", g.address, config(asking))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusOK { // or the cases above prove nothing
		t.Errorf("with the key: %v %v", resp, err)
	}
	_ = conn.Close()
}

// Somebody who says nothing is cut off, and nobody is told: so do those who look whether somebody listens.
func TestSilentStranger(t *testing.T) {
	g := newGate(t, secretOne)
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	begun := time.Now()
	_ = conn.SetReadDeadline(begun.Add(4 * handshakeTime))
	if text, err := io.ReadAll(conn); len(text) > 0 || err != nil {
		t.Errorf("%q %v", text, err)
	}
	if took := time.Since(begun); took < handshakeTime-time.Second {
		t.Errorf("cut off after %s", took)
	}
	if refused, served := g.saw(0); refused != nil || served != 0 {
		t.Errorf("%d served, refused %v", served, refused)
	}
}

// What listens at a gateway's address is something else.
func TestDialSomethingElse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler()}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	defer serving.Wait()
	defer server.Close()
	if _, err := link(t, secretOne).Dial(t.Context(), l.Addr().String()); !errors.Is(err, errNoLink) {
		t.Error(err)
	}
}

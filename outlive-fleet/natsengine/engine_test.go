package natsengine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/enginetest"
)

// Every promise of an engine, of several clients of one embedded server.
func TestEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, members int) []engine.Engine {
		h, own, err := StartHub(HubOptions{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		t.Cleanup(own.Close)
		all := []engine.Engine{own}
		for len(all) < members {
			e, err := Connect(Options{Host: ownUser, Password: h.ownPassword, Machine: "test", inProcess: h.server}, false)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			all = append(all, e)
		}
		return all[:members]
	})
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// listening is a hub that others connect to, who have the password "secret".
func listening(t *testing.T, dir, address string, pair tls.Certificate) (*Hub, *Engine) {
	t.Helper()
	h, own, err := StartHub(HubOptions{Dir: dir, Listen: address, Certificate: pair, Admit: func(_, _, password, _ string) error {
		if password != "secret" {
			return errors.New("no")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := own.MakeTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, own
}

func options(h *Hub, pair tls.Certificate, host, password string) Options {
	pin := sha256.Sum256(pair.Certificate[0])
	return Options{URL: "nats://" + h.Address(), Host: host, Machine: host, Password: password, Pin: pin[:]}
}

// Whoever comes without a token leaves nothing behind in a hub, nor do connections that have ended.
func TestConnectionsAreForgotten(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer h.Close()
	defer own.Close()
	known := func() (n int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, all := range h.conns {
			n += len(all)
		}
		return n
	}
	for _, host := range []string{"a", "b", strings.Repeat("long", 100)} {
		if _, err := Connect(options(h, pair, host, "guess"), false); !errors.Is(err, ErrRefused) {
			t.Errorf("%.10s with a wrong token: %v", host, err)
		}
	}
	if n := known(); n != 0 {
		t.Errorf("%d refused connections are known", n)
	}
	for range 3 {
		a, err := Connect(options(h, pair, "a", "secret"), false)
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		await.Until(t, "the hub has no connections but its own two", func() bool { return h.server.NumClients() == 2 })
	}
	if n := known(); n > 2 { // an engine has two
		t.Errorf("%d connections of one machine are known", n)
	}
}

// A machine may write what it says of itself and ask everybody; it may not write for others, be asked as another one, or change the
// tables. Without the token, or where another certificate is shown, nobody comes in.
func TestRights(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer h.Close()
	defer own.Close()
	if _, err := Connect(options(h, pair, "a", "guess"), false); !errors.Is(err, ErrRefused) {
		t.Errorf("with a wrong token: %v", err)
	}
	if _, err := Connect(options(h, certificate(t), "a", "secret"), false); !errors.Is(err, ErrStranger) {
		t.Errorf("with another certificate: %v", err)
	}
	a, err := Connect(options(h, pair, "a", "secret"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	within := func(limit time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		t.Cleanup(cancel)
		return ctx
	}
	allowed := func() context.Context { return within(2 * time.Minute) }
	refused := func() context.Context { return within(2 * time.Second) } // what is refused may have no answer
	if _, err := a.Put(allowed(), "digest.a", []byte("x")); err != nil {
		t.Errorf("a writes of itself: %v", err)
	}
	if e, err := a.Get(allowed(), "digest.a"); err != nil || string(e.Value) != "x" {
		t.Errorf("a reads of itself: %q, %v", e.Value, err)
	}
	for _, key := range []string{"digest.b", "beat.b", "lease.other", "lease.gateway", "other.a"} {
		if _, err := a.Put(refused(), key, []byte("x")); err == nil {
			t.Errorf("a may write %s", key)
		}
	}
	for _, key := range []string{"lease.judge", "esc.silent.b", "beat.a", "lease.gateway.g", "session.g.one"} { // any machine may be the judge, or have a gateway's sessions
		if _, err := a.CAS(allowed(), key, []byte("x"), 0); err != nil {
			t.Errorf("a writes %s: %v", key, err)
		}
	}
	for _, address := range []string{"run.b", "ping.b", EndedAddress} {
		if _, err := a.Serve(address, func(context.Context, string, []byte) []byte { return nil }); err == nil {
			if _, err := own.Request(allowed(), address, nil); !errors.Is(err, engine.ErrNoOwner) {
				t.Errorf("a is asked as %s: %v", address, err)
			}
		}
	}
	stop, err := own.Serve("run.b", func(_ context.Context, asker string, q []byte) []byte {
		return append([]byte("to b from "+asker+": "), q...)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if answer, err := a.Request(allowed(), "run.b", []byte("hello")); err != nil || string(answer) != "to b from a: hello" {
		t.Errorf("a asks b: %q, %v", answer, err)
	}
	// It cannot ask as another machine: whoever is asked never hears of that.
	if m, err := a.call.RequestWithContext(refused(), "run.b.c", []byte("hello")); err == nil {
		t.Errorf("a asks as c: %q", m.Data)
	}
	if e, err := a.Get(allowed(), "session.g.one"); err != nil || string(e.Value) != "x" {
		t.Errorf("a reads a session: %q, %v", e.Value, err)
	}
	if s, err := own.js.Stream(allowed(), "KV_"+bucketPrefix+"session"); err != nil || s.CachedInfo().Config.AllowDirect {
		t.Errorf("sessions are read from any server: %v", err)
	}
	if err := a.Delete(allowed(), "session.g.one"); err != nil {
		t.Errorf("a deletes a session: %v", err)
	}
	if err := a.js.DeleteStream(refused(), "KV_"+bucketPrefix+"digest"); err == nil {
		t.Error("a may delete a table")
	}
	// Nor does it get further by a message to itself that wants its answer where a may not write.
	for _, subject := range []string{"$KV." + bucketPrefix + "digest.digest.b", "$JS.API.STREAM.DELETE.KV_" + bucketPrefix + "digest"} {
		asked, err := a.call.SubscribeSync("run.a.a")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.call.PublishRequest("run.a.a", subject, nil), a.call.FlushWithContext(allowed())); err != nil {
			t.Fatal(err)
		}
		m, err := asked.NextMsg(time.Second) // a server that delivers it has done so by now
		if errors.Is(err, nats.ErrTimeout) {
			continue // since 2.15.3 a server refuses some of them itself
		} else if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(m.Respond([]byte("forged")), a.call.FlushWithContext(allowed()), asked.Unsubscribe()); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := own.Get(allowed(), "digest.b"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a has written of b: %q, %v", e.Value, err)
	}
	if e, err := own.Get(allowed(), "digest.a"); err != nil || string(e.Value) != "x" {
		t.Errorf("what a has said of itself: %q, %v", e.Value, err)
	}
}

// A machine cannot have a server ask another one under a name that is not its own, nor have an answer written where it may not write: a
// question is one of its asker only with an inbox of that for the answer.
func TestForgedQuestions(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer h.Close()
	defer own.Close()
	a, err := Connect(options(h, pair, "a", "secret"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Put(t.Context(), "digest.a", []byte("forged")); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []string
	stop, err := own.Serve("run.b", func(_ context.Context, asker string, question []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, asker+": "+string(question))
		return []byte("done")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	came, err := own.call.SubscribeSync("run.b.c")
	if err != nil {
		t.Fatal(err)
	}
	table := "." + bucketPrefix + "digest.digest."
	for _, forged := range []struct{ subject, reply string }{
		{".API.DIRECT.GET.KV_" + bucketPrefix + "digest." + table + "a", "run.b.c"}, // as c
		{"run.b.a", table + "b"}, // the answer is written as if b had
	} {
		if err := errors.Join(own.call.Flush(), a.call.PublishRequest(forged.subject, forged.reply, nil), a.call.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := came.NextMsg(time.Second); err != nil {
		t.Logf("the server delivers nothing by itself: %v", err)
	} else if string(m.Data) != "forged" {
		t.Errorf("it delivers %q", m.Data)
	}
	if answer, err := a.Request(t.Context(), "run.b", []byte("mine")); err != nil || string(answer) != "done" {
		t.Errorf("a asks by itself: %q, %v", answer, err)
	}
	stop()
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 1 || asked[0] != "a: mine" {
		t.Errorf("b is asked %q", asked)
	}
	if e, err := own.Get(t.Context(), "digest.b"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("a has had written of b: %q, %v", e.Value, err)
	}
}

// A table of sessions that was made, and then nobody could say that it is read from its leader, is so at the next use.
func TestSessionsAreReadFromTheLeader(t *testing.T) {
	h, own, err := StartHub(HubOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	defer own.Close()
	if _, err := own.js.CreateOrUpdateKeyValue(t.Context(), own.configOf("session")); err != nil {
		t.Fatal(err)
	}
	direct := func() bool {
		s, err := own.js.Stream(t.Context(), "KV_"+bucketPrefix+"session")
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().Config.AllowDirect
	}
	if !direct() {
		t.Error("NATS makes such a table by itself: the engine need not")
	}
	if _, err := own.CAS(t.Context(), "session.g.one", []byte("x"), 0); err != nil {
		t.Error(err)
	}
	if e, err := own.Get(t.Context(), "session.g.one"); err != nil || string(e.Value) != "x" || direct() {
		t.Errorf("%q, %v; read from any server: %t", e.Value, err, direct())
	}
}

// A hub that ends and comes back: what was watched goes on, and what had gone meanwhile is told. A machine that was dropped and is
// not let in any more is told so.
func TestHubReturns(t *testing.T) {
	pair, dir := certificate(t), t.TempDir()
	h, own := listening(t, dir, "127.0.0.1:0", pair)
	o := options(h, pair, "a", "secret")
	a, err := Connect(o, false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for n := range 3 {
		if _, err := own.Put(t.Context(), fmt.Sprintf("state.h%d", n), []byte("1")); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes, err := a.Watch(ctx, "state")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	until := func(what string, done func(engine.Change) bool) {
		t.Helper()
		limit := time.After(2 * time.Minute)
		for {
			select {
			case c := <-changes:
				if c.Gone {
					delete(known, c.Key)
				} else if !c.Synced {
					known[c.Key] = string(c.Value)
				}
				if done(c) {
					return
				}
			case <-limit:
				t.Fatalf("%s: not told; known is %v", what, known)
			}
		}
	}
	until("everything at first", func(c engine.Change) bool { return c.Synced })
	if len(known) != 3 {
		t.Fatalf("known is %v", known)
	}
	address := h.Address()
	own.Close()
	h.Close()
	h, own = listening(t, dir, address, pair)
	defer h.Close()
	defer own.Close()
	if err := own.Delete(t.Context(), "state.h1"); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Put(t.Context(), "state.h2", []byte("2")); err != nil {
		t.Fatal(err)
	}
	until("what has changed", func(engine.Change) bool { _, there := known["state.h1"]; return !there && known["state.h2"] == "2" })
}

// While the hub cannot be reached nothing is known of who is there: no question says that nobody is.
func TestRequestWithoutHub(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer own.Close()
	a, err := Connect(options(h, pair, "a", "secret"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ask := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := a.Request(ctx, "run.b", nil)
		return err
	}
	if err := ask(2 * time.Minute); !errors.Is(err, engine.ErrNoOwner) {
		t.Errorf("nobody is there: %v", err)
	}
	h.Close()
	for range 3 {
		if err := ask(time.Second); !errors.Is(err, engine.ErrUnknown) || errors.Is(err, engine.ErrNoOwner) {
			t.Errorf("without a hub: %v", err)
		}
	}
}

// A hub tells a connection that was closed from one that fell silent.
func TestHowEnded(t *testing.T) {
	pair := certificate(t)
	h, own := listening(t, t.TempDir(), "127.0.0.1:0", pair)
	defer h.Close()
	defer own.Close()
	is := func(want HowEnded) {
		t.Helper()
		await.Value(t, fmt.Sprintf("its end is %q", want), func() (HowEnded, bool) { how := h.howEnded("a"); return how, how == want })
	}
	if how := h.howEnded("hub"); how != NotKnown { // a machine may be called so
		t.Errorf("a machine that never came is said to be %q", how)
	}
	is(NotKnown)
	a, err := Connect(options(h, pair, "a", "secret"), false)
	if err != nil {
		t.Fatal(err)
	}
	is(Lives)
	a.Close()
	is(Closed)
	// One that was killed with bytes unread: its system resets the connection.
	reset := newTunnel(t, h.Address())
	o := options(h, pair, "a", "secret")
	o.URL = "nats://" + reset.address
	if a, err = Connect(o, false); err != nil {
		t.Fatal(err)
	}
	is(Lives)
	reset.reset()
	a.Close()
	is(Closed)
	// One whose bytes do not come any more, and whose system does not say that it has ended.
	through := newTunnel(t, h.Address())
	o.URL = "nats://" + through.address
	if a, err = Connect(o, false); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	is(Lives)
	through.mute()
	is(FellMute)
}

// tunnel carries connections, until nothing passes any more.
type tunnel struct {
	address  string
	listener net.Listener
	muted    chan struct{}

	mu    sync.Mutex
	there []*net.TCPConn
}

func newTunnel(t *testing.T, to string) *tunnel {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	one := &tunnel{address: listener.Addr().String(), listener: listener, muted: make(chan struct{})}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			t.Cleanup(func() { _, _ = from.Close(), there.Close() })
			one.mu.Lock()
			one.there = append(one.there, there.(*net.TCPConn))
			one.mu.Unlock()
			go one.carry(there, from)
			go one.carry(from, there)
		}
	}()
	return one
}

func (o *tunnel) carry(to, from net.Conn) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		select {
		case <-o.muted:
			return
		default:
		}
		if err == nil {
			_, err = to.Write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

func (o *tunnel) mute() { close(o.muted) }

// reset resets the connections, and takes no others.
func (o *tunnel) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.listener.Close()
	for _, one := range o.there {
		_ = one.SetLinger(0)
		_ = one.Close()
	}
}

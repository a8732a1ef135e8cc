package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a core at a listener in memory, which can end and begin anew. It is for a bubble of synctest.
type house struct {
	t    *testing.T
	opts CoreOptions

	mu     sync.Mutex
	core   *Core
	server *http.Server
	door   *door
	over   chan struct{}
	news   []string
}

func newHouse(t *testing.T, opts CoreOptions) *house {
	h := &house{t: t, opts: opts}
	h.opts.Came = func(a Attendant) { h.note("came " + a.URL) }
	h.opts.Left = func(a Attendant) { h.note("left " + a.URL) }
	return h
}

func (h *house) note(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.news = append(h.news, what)
}

// said are the news since it was last asked.
func (h *house) said() []string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.news
	h.news = nil
	return all
}

func (h *house) begin() {
	core, over := NewCore(h.opts), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { core.Take(w, r, over) })}
	d := &door{conns: make(chan net.Conn), closed: make(chan struct{})}
	h.mu.Lock()
	h.core, h.server, h.door, h.over = core, server, d, over
	h.mu.Unlock()
	go func() { _ = server.Serve(d) }()
}

// end is a shutdown; killed: connections break.
func (h *house) end(killed bool) {
	h.mu.Lock()
	server, d, over := h.server, h.door, h.over
	h.door = nil
	h.mu.Unlock()
	if !killed {
		close(over)
		synctest.Wait()
	}
	_ = server.Close()
	_ = d.Close()
	synctest.Wait()
}

// dial is Options.Dial.
func (h *house) dial(context.Context) (net.Conn, error) {
	h.mu.Lock()
	d := h.door
	h.mu.Unlock()
	if d == nil {
		return nil, errors.New("nobody listens")
	}
	here, there := net.Pipe()
	select {
	case d.conns <- there:
		return here, nil
	case <-d.closed:
		return nil, errors.New("nobody listens any more")
	}
}

// door is a net.Listener in memory.
type door struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

func (d *door) Addr() net.Addr { return &net.UnixAddr{Name: "door", Net: "unix"} }

// guest is a replica that attends.
type guest struct {
	*Replica
	leave func()
	mu    sync.Mutex
	news  []string
}

func (h *house) guest(url string) *guest {
	g := &guest{}
	g.Replica = New(Options{
		Me: Attendant{URL: url, PID: 7, Version: "1"}, Dial: h.dial,
		Reload: func() { g.note("reload") },
		Tell: func(err error) {
			if err == nil {
				g.note("back")
				return
			}
			g.note("lost: " + err.Error())
		},
	})
	g.attend()
	return g
}

// attend has it attend until leave is called.
func (g *guest) attend() {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		g.Attend(ctx)
	}()
	g.leave = func() {
		cancel()
		<-over
		g.Close()
	}
}

func (g *guest) note(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.news = append(g.news, what)
}

func (g *guest) said() []string {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.news
	g.news = nil
	return all
}

func want(t *testing.T, what string, got []string, wanted ...string) {
	t.Helper()
	if !slices.Equal(got, wanted) {
		t.Errorf("%s: %q, want %q", what, got, wanted)
	}
}

// Replicas come, are told to reload, and leave.
func TestAttendance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, CoreOptions{})
		h.begin()
		b := h.guest("http://b")
		want(t, "one", h.said(), "came http://b")
		a := h.guest("http://a")
		want(t, "two", h.said(), "came http://a")
		if all := h.core.Replicas(); !slices.Equal(all, []Attendant{{URL: "http://a", PID: 7, Version: "1"}, {URL: "http://b", PID: 7, Version: "1"}}) {
			t.Errorf("the replicas are %v", all)
		}
		h.core.Reload()
		want(t, "a is told", a.said(), "reload")
		want(t, "b is told", b.said(), "reload")
		a.leave()
		want(t, "one leaves", h.said(), "left http://a")
		h.core.Reload()
		want(t, "b is told again", b.said(), "reload")
		want(t, "a is not", a.said())
		b.leave()
		want(t, "the last", h.said(), "left http://b")
		if all := h.core.Replicas(); all != nil {
			t.Errorf("the replicas are %v", all)
		}
		h.end(false)
	})
}

// A core that ends is looked for again and again, and told of once.
func TestCoreEndsAndBegins(t *testing.T) {
	for _, killed := range []bool{true, false} {
		t.Run(fmt.Sprint("killed=", killed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, CoreOptions{})
				h.begin()
				g := h.guest("http://a")
				want(t, "it comes", h.said(), "came http://a")
				h.end(killed)
				time.Sleep(time.Minute)
				if said := g.said(); len(said) != 1 || !strings.HasPrefix(said[0], "lost: ") || !strings.Contains(said[0], "nobody listens") {
					t.Errorf("without a core: %q", said)
				}
				h.said()
				h.begin()
				time.Sleep(again)
				want(t, "it comes again", h.said(), "came http://a")
				want(t, "it says so", g.said(), "back")
				h.end(killed) // and once more, with a core that is there at once
				h.said()
				h.begin()
				time.Sleep(again)
				want(t, "the next core", h.said(), "came http://a")
				g.leave()
				h.end(false)
			})
		})
	}
}

// A core ends when there were no replicas for the whole of its time, be it from the beginning or later.
func TestUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = time.Minute
		var unused atomic.Int32
		h := newHouse(t, CoreOptions{Idle: idle, Unused: func() { unused.Add(1) }})
		h.begin()
		time.Sleep(idle - time.Nanosecond)
		g := h.guest("http://a")
		h.said()
		time.Sleep(10 * idle)
		if unused.Load() != 0 {
			t.Error("it ends with a replica")
		}
		g.leave()
		h.said()
		time.Sleep(idle / 2)
		g = h.guest("http://a") // restarted
		h.said()
		g.leave()
		h.said()
		time.Sleep(idle - time.Nanosecond)
		synctest.Wait()
		if unused.Load() != 0 {
			t.Error("it ends too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if unused.Load() != 1 {
			t.Errorf("it ended %d times", unused.Load())
		}
		h.end(false)
	})
}

// A core without a time goes on without replicas.
func TestNeverUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		NewCore(CoreOptions{Unused: func() { t.Error("it ends") }})
		time.Sleep(1000 * time.Hour)
	})
}

// Who does not say who it is, is no replica; and what is no core is not attended at.
func TestStrangers(t *testing.T) {
	c := NewCore(CoreOptions{Came: func(a Attendant) { t.Errorf("%v came", a) }})
	for _, header := range []string{"", "a replica"} {
		r := httptest.NewRequest(http.MethodGet, Path, nil)
		r.Header.Set(attendant, header)
		w := httptest.NewRecorder()
		c.Take(w, r, nil)
		if w.Code != http.StatusBadRequest {
			t.Errorf("%q: %d", header, w.Code)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, CoreOptions{})
		h.begin()
		h.mu.Lock()
		h.server.Handler = http.NotFoundHandler()
		h.mu.Unlock()
		g := h.guest("http://a")
		time.Sleep(time.Minute)
		want(t, "another server", g.said(), "lost: the core answers 404 Not Found")
		g.leave()
		h.end(false)
	})
}

// A request that could not be sent is told from one whose answer did not come.
func TestForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, CoreOptions{})
		g := New(Options{Dial: h.dial})
		defer g.Close()
		ask := func() error {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://core/mcp", bytes.NewReader([]byte("{}")))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := g.Forward(r)
			if err == nil {
				err = resp.Body.Close()
			}
			return err
		}
		if err := ask(); !errors.Is(err, streamhttp.ErrNotSent) {
			t.Errorf("without a core: %v", err)
		}
		h.begin()
		h.mu.Lock()
		h.server.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		h.mu.Unlock()
		if err := ask(); err == nil || errors.Is(err, streamhttp.ErrNotSent) {
			t.Errorf("a core that ends: %v", err)
		}
		h.end(true)
	})
}

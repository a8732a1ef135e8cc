package replica

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// asked is a request at a replica of h, and what became of it and when.
type asked struct {
	text string
	err  error
	took time.Duration
}

func ask(ctx context.Context, forward func(*http.Request) (*http.Response, error)) (a asked) {
	begun := time.Now()
	defer func() { a.took = time.Since(begun) }()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://core/mcp", strings.NewReader("a line"))
	if err != nil {
		return asked{err: err}
	}
	resp, err := forward(r)
	if err != nil {
		return asked{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return asked{text: string(text), err: err}
}

// far is a house at another machine, whose core answers with what it is sent, and a replica of it that waits ten seconds. The replica looks for
// its core once the test calls attend: when the core is there, if it is to be found at first sight.
func far(t *testing.T, dial func(h *house) error) (*house, *guest) {
	h := newHouse(t, CoreOptions{})
	g := &guest{}
	g.Replica = New(Options{
		Me: Attendant{URL: "http://a"}, Patience: 10 * time.Second, Silence: 20 * time.Second,
		Dial: func(ctx context.Context) (net.Conn, error) {
			if err := dial(h); err != nil {
				return nil, err
			}
			return h.dial(ctx)
		},
		Tell: func(err error) {
			if err == nil {
				g.note("back")
				return
			}
			g.note(err.Error())
		},
	})
	return h, g
}

// open begins with a core that echoes.
func (h *house) open() {
	h.begin()
	h.mu.Lock()
	defer h.mu.Unlock()
	attend := h.server.Handler
	h.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Path {
			attend.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
}

func anyway(*house) error { return nil }

// A request waits for a core that comes again in time, and is sent whole, once it is known to be there.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, g := far(t, anyway)
		h.open()
		g.attend()
		if a := ask(t.Context(), g.Forward); a.text != "a line" || a.err != nil {
			t.Errorf("with a core: %+v", a)
		}
		for _, known := range []bool{false, true} {
			h.end(true)
			if known {
				time.Sleep(time.Minute)
			}
			answers := make(chan asked)
			go func() { answers <- ask(t.Context(), g.Forward) }()
			time.Sleep(4 * time.Second)
			h.open()
			if a := <-answers; a.text != "a line" || a.err != nil || a.took > 6*time.Second {
				t.Errorf("known=%v: %+v", known, a)
			}
		}
		g.leave()
		h.end(false)
	})
}

// It does not wait for ever, nor longer than its client; and what asks for the core's health does not wait at all.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, g := far(t, anyway)
		h.open()
		g.attend()
		synctest.Wait()
		h.end(true)
		a := ask(t.Context(), g.Forward)
		if !errors.Is(a.err, streamhttp.ErrNotSent) || a.took < 10*time.Second || a.took > 11*time.Second {
			t.Errorf("%+v", a)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if a := ask(ctx, g.Forward); a.err == nil || a.took > time.Second {
			t.Errorf("a client that has left: %+v", a)
		}
		if a := ask(t.Context(), g.ForwardNow); !errors.Is(a.err, streamhttp.ErrNotSent) || a.took != 0 {
			t.Errorf("health: %+v", a)
		}
		g.leave()
	})
}

// Another secret is not waited for, and is told of even if the core was away before.
func TestPatienceIsNotForAnotherSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wrong atomic.Bool
		h, g := far(t, func(*house) error {
			if wrong.Load() {
				return ErrSecret
			}
			return nil
		})
		g.attend()
		time.Sleep(time.Minute)
		wrong.Store(true)
		time.Sleep(time.Minute)
		if a := ask(t.Context(), g.Forward); !errors.Is(a.err, ErrSecret) || !errors.Is(a.err, streamhttp.ErrNotSent) || a.took != 0 {
			t.Errorf("%+v", a)
		}
		h.open()
		wrong.Store(false)
		time.Sleep(again)
		want(t, "it says", g.said(), "nothing was sent: nobody listens", "nothing was sent: it has another secret", "back")
		g.leave()
		h.end(false)
	})
}

// The core knows at which machine a replica is, and where clients find it there.
func TestSeenFrom(t *testing.T) {
	for _, c := range []struct{ url, from, wantURL, wantAddress string }{
		{"http://127.0.0.1:8081/mcp", "@", "http://127.0.0.1:8081/mcp", ""},
		{"http://localhost:8081/mcp", "", "http://localhost:8081/mcp", ""},
		{"http://localhost:8081/mcp", "10.0.0.5:40000", "http://10.0.0.5:8081/mcp", "10.0.0.5"},
		{"https://localhost:8081/mcp", "[2001:db8::5]:40000", "https://[2001:db8::5]:8081/mcp", "2001:db8::5"},
		{"http://10.0.0.6:8081/mcp", "[::ffff:10.0.0.5]:40000", "http://10.0.0.6:8081/mcp", "10.0.0.5"},
	} {
		a := Attendant{URL: c.url, Address: "what it says itself"}
		if a.seenFrom(c.from); a.URL != c.wantURL || a.Address != c.wantAddress {
			t.Errorf("%s from %q: %+v", c.url, c.from, a)
		}
	}
	c := NewCore(CoreOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, Path, nil)
	r.Header.Set(attendant, `{"url":"http://localhost:1/mcp"}`)
	r.RemoteAddr = "10.0.0.5:40000"
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.Take(httptest.NewRecorder(), r, nil)
	}()
	await.Until(t, "a replica is there", func() bool { return len(c.Replicas()) > 0 })
	if all := c.Replicas(); all[0].URL != "http://10.0.0.5:1/mcp" {
		t.Errorf("%+v", all)
	}
	cancel()
	<-over
}

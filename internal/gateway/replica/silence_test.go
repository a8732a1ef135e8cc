package replica

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// stops makes a core that lives for a time, and then says nothing any more, as a process does that is stopped: connections stay, and what is
// sent is taken. The next one that begins is as it should be.
func (h *house) stops(after time.Duration) {
	h.open()
	h.mu.Lock()
	defer h.mu.Unlock()
	begun := time.Now()
	h.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path != Path || time.Since(begun) >= after {
			<-r.Context().Done()
			return
		}
		out := http.NewResponseController(w)
		for next := time.Now(); next.Before(begun.Add(after)); next = next.Add(beatEvery) {
			time.Sleep(time.Until(next))
			_, _ = io.WriteString(w, beat+"\n")
			_ = out.Flush()
		}
		<-r.Context().Done()
	})
}

// A core whose process is stopped is given up after a while: what waits for its answer gets an error, and the next core is looked for.
func TestSilentCore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, g := far(t, anyway)
		h.stops(time.Minute)
		g.attend()
		begun := time.Now()
		a := ask(t.Context(), g.Forward)
		if a.err == nil || a.took != time.Minute-beatEvery+20*time.Second {
			t.Errorf("in flight at a core that was stopped: %+v", a)
		}
		want(t, "it says", g.said(), errSilent.Error())
		h.end(true) // only its listener matters now: nobody has a connection
		h.open()
		if a := ask(t.Context(), g.Forward); a.text != "a line" || a.err != nil {
			t.Errorf("with the next core: %+v", a)
		}
		want(t, "it says", g.said(), "back")
		if took := time.Since(begun); took > 2*time.Minute {
			t.Errorf("all this took %v", took)
		}
		g.leave()
		h.end(false)
	})
}

// elsewhere is a connection to an address.
type elsewhere struct {
	net.Conn
	to string
}

func (e elsewhere) RemoteAddr() net.Addr { return &net.UnixAddr{Name: e.to, Net: "unix"} }

// A silent core that is given up takes no connection to the next one with it.
func TestConnectionsToTheNextCoreStay(t *testing.T) {
	var c connections
	live := map[string]net.Conn{}
	for _, to := range []string{"silent", "next"} {
		near, far := net.Pipe()
		defer far.Close()
		live[to] = c.add(elsewhere{near, to})
		go func() { _, _ = io.Copy(io.Discard, far) }() // it ends with far
	}
	c.closeTo("silent")
	for to, open := range map[string]bool{"silent": false, "next": true} {
		if _, err := live[to].Write([]byte("x")); (err == nil) != open {
			t.Errorf("to the %s core: %v", to, err)
		}
	}
	c.closeTo("")
	if _, err := live["next"].Write([]byte("x")); err == nil {
		t.Error("where it is not known which core is silent a connection stays")
	}
}

// A core says that it lives as long as it does, and one of an older release, which never says so, is not given up.
func TestQuietCoreStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, g := far(t, anyway)
		h.open()
		g.attend()
		time.Sleep(time.Hour)
		want(t, "it says", g.said())
		g.leave()
		h.end(false)
	})
	synctest.Test(t, func(t *testing.T) {
		h, g := far(t, anyway)
		h.stops(0) // it takes the replica, and no more
		h.mu.Lock()
		h.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		h.mu.Unlock()
		g.attend()
		time.Sleep(time.Hour)
		want(t, "it says", g.said())
		g.leave()
		h.end(true)
	})
}

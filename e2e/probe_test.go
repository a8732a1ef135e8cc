package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// oddServer is a server without SDK that does one thing badly, see servers/odd.py.
func oddServer(kind string) server {
	argv := []string{tools.python, "-S", "-E", filepath.Join(tools.root, "servers", "odd.py"), kind}
	return server{name: kind, argv: argv, legacy: kind != "ok", modern: kind == "ok", match: "odd.py " + kind}
}

// TestProbe: a client that probes is connected within 3 s, whatever the server makes of the probe. Without outlive
// the silent and the exiting server are out of reach for most of these clients.
func TestProbe(t *testing.T) {
	kinds := []string{"ok", "error", "silent", "exits"}
	if direct() {
		kinds = kinds[:2]
	}
	for row, kind := range kinds {
		for column, name := range []string{"go", "ts2-auto", "py-auto", "ts1"} {
			c, srv := clients()[name], oddServer(kind)
			if c.modes == "legacy" && !srv.legacy {
				continue // an old client and a server that speaks 2026-07-28 only share no protocol
			}
			t.Run(kind+"/"+name, func(t *testing.T) {
				onePerKind(t, (row+column)%2 == 0)
				besideOthers(t)
				s, hello := connect(t, c, srv)
				if hello.Error != nil {
					t.Fatalf("connect: %s", hello)
				}
				s.checkEra(t, c)
				inTime(t, "connected", time.Duration(s.hello.MS)*time.Millisecond, 3*time.Second)
				s.oddCalls(t)
				s.do(t, step{"op": "close"})
				<-s.driver.exited()
				s.noneLeft(t)
				if !direct() {
					s.noCrash(t)
				}
			})
		}
	}
}

// oddCalls: the connection carries calls, also over a kill.
func (s *session) oddCalls(t *testing.T) {
	t.Helper()
	s.toolNames(t) // every real client lists before it calls
	for i := range 2 {
		text := fmt.Sprint("after ", i, " kills")
		if got := s.call(t, "echo", map[string]any{"text": text}).text(); got != text {
			t.Errorf("echo: %q, want %q", got, text)
		}
		if i == 0 && !direct() {
			kill(t, s.serverPID(t))
		}
	}
}

// noCrash: an exit that a probe caused is not a crash; only the kill of the test is one.
func (s *session) noCrash(t *testing.T) {
	t.Helper()
	crashes := 0
	for _, e := range s.audit(t) {
		if e["event_type"] == "server_crashed" {
			crashes++
		}
	}
	if crashes != 1 {
		t.Errorf("%d crashes in the audit log, want 1 (the kill)", crashes)
	}
	for _, e := range s.seen(0) {
		if e.Event == "error" || e.Event == "closed" || strings.Contains(e.Method, "list_changed") {
			t.Errorf("the client noticed: %s", e)
		}
	}
}

// TestKilledDuringTheVeryFirstCall: the probe is answered from memory, so the first thing a modern server hears is a
// call. It has no handshake that would prove that it was not yet at work: the call must not be run twice.
func TestKilledDuringTheVeryFirstCall(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, name := range []string{"go", "ts2-auto", "py-auto"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := servers()["go"]
			w := newWorkspace(t)
			for i := range 2 {
				s := &session{workspace: w, client: name, server: srv}
				d, hello := clients()[name].start(s, w.wrap(srv.argv))
				if s.driver = d; hello.Error != nil {
					t.Fatalf("connect: %s", hello)
				}
				_ = json.Unmarshal(hello.Result, &s.hello)
				value := fmt.Sprint("start", i)
				_, ch := s.begin(step{"op": "call", "tool": "bump", "args": map[string]any{"value": value, "ms": 60000}})
				s.awaitTrace(t, "bump "+value, 1)
				kill(t, s.currentPID(t, "bump "+value))
				s.wantUnknown(t, s.await(t, "bump", ch))
				s.call(t, "echo", map[string]any{"text": "x"})
				if n := s.count("bump " + value); n != 1 {
					t.Errorf("the first call of start %d ran %d times, want once", i+1, n)
				}
				s.do(t, step{"op": "close"})
				<-d.exited()
			}
			w.noneLeft(t)
		})
	}
}

// TestProbeIsRemembered: the second start of the same command answers the probe without asking the server, which is
// what makes the throw-away copy of the TypeScript SDK's auto mode cheap.
func TestProbeIsRemembered(t *testing.T) {
	needFull(t, "it judges how soon a client is connected")
	needOutlive(t)
	srv := oddServer("silent")
	w := newWorkspace(t)
	for i := range 2 {
		s := &session{workspace: w, client: "go", server: srv}
		d, hello := clients()["go"].start(s, w.wrap(srv.argv))
		if s.driver = d; hello.Error != nil {
			t.Fatalf("connect: %s", hello)
		}
		limit := 3000
		if i == 1 {
			limit = 1000
		}
		if hello.MS >= limit {
			t.Errorf("start %d: connected after %d ms, want less than %d", i+1, hello.MS, limit)
		}
		s.call(t, "echo", map[string]any{"text": "x"})
		s.do(t, step{"op": "close"})
		<-d.exited()
		w.noneLeft(t)
	}
}

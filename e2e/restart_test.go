package e2e

import (
	"strings"
	"testing"
	"time"
)

// restarts: every way in which a restart is asked for.
func (s *session) restarts(t *testing.T) {
	s.runEnding(t, "exit 42", func(t *testing.T) {
		old := s.serverPID(t)
		s.call(t, "leave", map[string]any{"code": 42})
		s.awaitNewServer(t, old)
	})
	s.runEnding(t, "marker on stderr", func(t *testing.T) {
		old := s.serverPID(t)
		s.call(t, "marker", nil)
		s.awaitNewServer(t, old)
	})
	s.runEnding(t, "restart_server", func(t *testing.T) {
		old := s.serverPID(t)
		since := time.Now().UTC().Add(-time.Millisecond).Format("2006-01-02T15:04:05.000000+00:00")
		got := s.call(t, "restart_server", map[string]any{"reason": "e2e says so"}).text()
		if want := "Server restart scheduled (reason: e2e says so). Server will exit with code 42 in 500ms, supervisor will spawn new instance."; got != want {
			t.Errorf("restart_server: %q, want %q", got, want)
		}
		verify := step{"op": "call", "tool": "verify_server_restarted", "args": map[string]any{"since_timestamp": since}}
		var last reply
		if !eventually(func() bool {
			_, ch := s.begin(step{"op": verify["op"], "tool": verify["tool"], "args": verify["args"]})
			last = s.await(t, "verify_server_restarted", ch)
			return strings.HasPrefix(last.text(), "✅ Server restart verified: occurred at ") && strings.HasSuffix(last.text(), " (reason: e2e says so)")
		}) {
			t.Errorf("verify_server_restarted: %s", last)
		}
		if now := s.serverPID(t); now == old {
			t.Errorf("verified, but the server is still process %d", old)
		}
		s.call(t, "server_status", map[string]any{})
		_, ch := s.begin(step{"op": "call", "tool": "verify_server_restarted", "args": map[string]any{"since_timestamp": "2999-01-01T00:00:00Z"}})
		if r := s.await(t, "verify", ch); !r.tool().IsError || !strings.HasPrefix(r.text(), "❌ No recent restart detected since 2999-01-01T00:00:00+00:00.") {
			t.Errorf("verify of a restart that never was: %s", r)
		}
	})
	s.run(t, "subscription after all that", s.touch)
}

// awaitNewServer: another process answers, and meanwhile no call fails.
func (s *session) awaitNewServer(t *testing.T, old int) {
	t.Helper()
	if !eventually(func() bool { return s.serverPID(t) != old }) {
		t.Errorf("the server is still process %d", old)
	}
}

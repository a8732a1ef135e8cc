package e2e

import "testing"

// asks: the server asks its client for a sample, an answer of the user, and its roots.
func (s *session) asks(t *testing.T) {
	s.run(t, "server asks", func(t *testing.T) {
		s.checkAsks(t)
	})
	if direct() {
		return
	}
	s.runEnding(t, "killed while the user is asked", func(t *testing.T) {
		from := s.mark()
		s.do(t, step{"op": "hold"})
		_, ch := s.begin(step{"op": "call", "tool": "elicit", "args": map[string]any{"question": "held"}})
		s.awaitEvent(t, from, "the question", asked("elicitation/create"))
		pid, translated := s.currentPID(t, "elicit-asked held"), s.takenForLegacy(t) // the next process may be taken for something else
		killed(t, pid)
		switch {
		case s.modern() && s.server.modern && !translated:
			s.answeredLater(t, ch)
		case s.modern(): // bridged: the legacy server's call was parked in the dead process, and may have done something
			s.do(t, step{"op": "release"})
			s.wantUnknown(t, s.await(t, "elicit", ch))
		default:
			s.withdrawn(t, from, ch)
		}
		s.checkAsks(t)
	})
}

// takenForLegacy reports whether outlive translates now for a server of both eras, because its process was too slow to be asked: that
// happens on a busy machine, and only the full run takes it for a fault.
func (s *session) takenForLegacy(t *testing.T) bool {
	t.Helper()
	return !full() && !direct() && s.told(t, "bridge_engaged") > s.told(t, "bridge_released")
}

func (s *session) checkAsks(t *testing.T) {
	t.Helper()
	from := s.mark()
	if got := s.call(t, "sample", map[string]any{"text": "q"}).text(); got != "sampled fixed reply" {
		t.Errorf("sample: %q", got)
	}
	if got := s.call(t, "elicit", map[string]any{"question": "q"}).text(); got != "elicited yes" {
		t.Errorf("elicit: %q", got)
	}
	// The Go SDK 1.8.0 client cannot decode an embedded roots/list without params, as the Python SDK 2.3.0 sends it.
	if !s.modern() || s.client != "go" || s.server.name != "py" {
		if got := s.call(t, "roots", map[string]any{}).text(); got != "roots file:///e2e/root" {
			t.Errorf("roots: %q", got)
		}
	}
	for _, method := range []string{"sampling/createMessage", "elicitation/create"} {
		s.awaitEvent(t, from, method, asked(method))
	}
}

// withdrawn (legacy): the question came from the dead server, so the dialogue closes, the call's outcome is unknown,
// and the late answer reaches nobody.
func (s *session) withdrawn(t *testing.T, from int, ch <-chan reply) {
	t.Helper()
	s.wantUnknown(t, s.await(t, "elicit", ch))
	s.awaitEvent(t, from, "withdrawal of the question", func(e event) bool { return e.Event == "withdrawn" })
	s.do(t, step{"op": "release"})
	if n := s.count("elicit held"); n != 0 {
		t.Errorf("the late answer reached a server: the tool went on %d times", n)
	}
}

// answeredLater (modern): the question was the end of a request, so the answer goes to the new server, which may
// have to ask once more when it cannot open the old one's state.
func (s *session) answeredLater(t *testing.T, ch <-chan reply) {
	t.Helper()
	s.do(t, step{"op": "release"})
	r := s.await(t, "elicit", ch)
	if r.Error != nil || r.text() != "elicited yes" {
		t.Errorf("answer after a restart: %s", r)
	}
	if n := s.count("elicit held"); n != 1 {
		t.Errorf("the tool went on %d times, want once", n)
	}
}

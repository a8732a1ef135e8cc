package monitor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// stalls is a monitor that goes on, before an agent whose crash somebody is to be told of; look is a look with what it sends.
func stalls(t *testing.T, w *world) (look func()) {
	t.Helper()
	w.claude("shop", 1001).prompt()
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	look = func() {
		w.pass(5 * time.Second)
		if _, err := m.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		sending, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		m.notifiers.outbox.Drain(sending)
	}
	look()
	clear(w.living)
	for range 5 {
		look()
	}
	return look
}

// shopTold declares an agent whose crash is told by one channel at once.
func shopTold(w *world, head string) {
	w.declare(head, w.agent("shop", "kind: claude\npolicy: {crashed: [escalate]}\n"+starts))
}

// unsentOf is what Inspect says has not arrived of the only incident.
func unsentOf(t *testing.T, w *world) []Unsent {
	t.Helper()
	view, err := Inspect(t.Context(), w.opts)
	if err != nil || len(view.Incidents) != 1 {
		t.Fatalf("%d incidents, %v", len(view.Incidents), err)
	}
	return view.Unsent[view.Incidents[0].ID]
}

// What a channel that could not be opened has to say is not lost: it is sent once the registry names the right one, and the
// incident says meanwhile why nobody was told.
func TestAChannelThatIsMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.Channels = nil
	w.opts.OpenChannel = func(c registry.Channel) (notify.Channel, error) {
		if c.Address == "exec:wrong" {
			return nil, errors.New("no such program")
		}
		return w, nil
	}
	shopTold(w, "channels: {me: 'exec:wrong'}\n")
	look := stalls(t, w)
	if got := unsentOf(t, w); len(w.said) != 0 || len(got) != 1 || got[0].Channel != "me" || !strings.Contains(got[0].Error, "no such program") || got[0].Next.IsZero() {
		t.Fatalf("said %q, not sent %+v", w.said, got)
	}
	shopTold(w, "channels: {me: 'exec:right'}\n")
	look()
	if got := unsentOf(t, w); len(w.said) != 1 || !strings.Contains(w.said[0], "shop has crashed") || len(got) != 0 {
		t.Errorf("said %q, not sent %+v", w.said, got)
	}
}

// A message that waits after a failure is tried again when anything in the registry changes, not before.
func TestTriedAgainWhenTheRegistryChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sendErr = &notify.SendError{Failure: notify.Refused, Err: errors.New("blocked by the user")}
	shopTold(w, "")
	look := stalls(t, w)
	if got := unsentOf(t, w); len(got) != 1 || got[0].Channel != "telegram" || !strings.Contains(got[0].Error, "blocked by the user") {
		t.Fatalf("not sent %+v", got)
	}
	w.sendErr = nil
	if look(); len(w.said) != 0 {
		t.Fatalf("said %q before its time", w.said)
	}
	shopTold(w, "# the bot was let in again\n")
	if look(); len(w.said) != 1 {
		t.Errorf("said %q", w.said)
	}
	if got := unsentOf(t, w); len(got) != 0 {
		t.Errorf("not sent %+v", got)
	}
}

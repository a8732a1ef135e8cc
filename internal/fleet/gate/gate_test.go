package gate

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
	"github.com/outlive-mcp/outlive/internal/fleet/mem"
)

func term(holder string, epoch uint64) lease.Term {
	return lease.Term{Lease: "judge", Holder: holder, Epoch: epoch}
}

// Every answer of a gate, in one life and over a kill.
func TestObeyed(t *testing.T) {
	m := newMachine(t)
	e := mem.New()
	m.start(e)
	steps := []struct {
		what  string
		c     Command
		want  Outcome
		floor uint64
	}{
		{"a ping", Command{Verb: Ping}, Done, 0},
		{"no id", Command{Agent: "a", Incarnation: "1", Verb: "restart"}, Refused, 0},
		{"no incarnation", Command{ID: "x", Agent: "a", Verb: "restart"}, Refused, 0},
		{"epoch 5", Command{ID: "1", Term: term("one", 5), Incarnation: "1"}, Done, 0},
		{"the same again", Command{ID: "1", Term: term("one", 5), Incarnation: "1"}, Done, 0},
		{"the same, by a holder that is not obeyed any more", Command{ID: "1", Term: term("old", 2), Incarnation: "1"}, Done, 0},
		{"another for what is mended", Command{ID: "2", Term: term("one", 5), Incarnation: "1"}, Changed, 0},
		{"a lower epoch", Command{ID: "3", Term: term("one", 4), Incarnation: "2"}, Stale, 5},
		{"the same epoch of another", Command{ID: "4", Term: term("two", 5), Incarnation: "2"}, Stale, 5},
		{"no epoch at all", Command{ID: "5", Term: lease.Term{Lease: "judge", Holder: "two"}, Incarnation: "2"}, Stale, 5},
		{"another lease", Command{ID: "6", Term: lease.Term{Lease: "other", Holder: "two", Epoch: 1}, Incarnation: "1"}, Changed, 0},
		{"a person", Command{ID: "7", Incarnation: "2"}, Done, 0},
		{"a higher epoch", Command{ID: "8", Term: term("two", 6), Incarnation: "3"}, Done, 0},
		{"the former holder", Command{ID: "9", Term: term("one", 5), Incarnation: "4"}, Stale, 6},
	}
	for _, restart := range []bool{false, true} {
		for _, s := range steps {
			if restart {
				m.start(e)
			}
			if s.c.Verb == "" {
				s.c.Agent, s.c.Verb = "a", "restart"
			}
			reply := m.gate.Do(t.Context(), s.c)
			if s.floor == 5 && restart {
				s.floor = 6
			}
			if reply.Outcome != s.want || reply.Floor != s.floor {
				t.Errorf("%s (restarted: %t): %+v, want %s, floor %d", s.what, restart, reply, s.want, s.floor)
			}
		}
	}
	if m.incarnation != 4 {
		t.Errorf("%d commands were carried out, want 3", m.incarnation-1)
	}
	m.stop()
}

// Of a gate that cannot write nothing new is obeyed, and a file that cannot be read is not taken for an empty one.
func TestFile(t *testing.T) {
	m := newMachine(t)
	m.start(mem.New())
	if err := os.Mkdir(m.path, 0o700); err != nil {
		t.Fatal(err)
	}
	c := Command{ID: "1", Term: term("one", 1), Agent: "a", Incarnation: "1", Verb: "restart"}
	if reply := m.gate.Do(t.Context(), c); reply.Outcome != Refused || m.incarnation != 1 {
		t.Errorf("what cannot be written down is obeyed: %+v", reply)
	}
	if err := os.Remove(m.path); err != nil {
		t.Fatal(err)
	}
	if reply := m.gate.Do(t.Context(), c); reply.Outcome != Done {
		t.Errorf("when it can: %+v", reply)
	}
	for content, want := range map[string]string{"{": "move the file away", `{"version":2}`: "newer"} {
		if err := os.WriteFile(m.path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(m.path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
	m.stop()
}

// The answer to a command that is carried out when it comes again is that of the first.
func TestSentAgainMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mem.New()
		m := newMachine(t)
		m.takes = time.Minute // longer than one answer is waited for
		m.start(e)
		defer m.stop()
		c := Command{ID: NewID(), By: "somebody", Agent: "a", Incarnation: "1", Verb: "restart"}
		reply, err := Send(t.Context(), e, "host", c, nil)
		if err != nil || reply.Outcome != Done || reply.Text != "mended" || m.incarnation != 2 {
			t.Errorf("%+v, %v, incarnation %d", reply, err, m.incarnation)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		c = Command{ID: NewID(), Agent: "a", Incarnation: "2", Verb: "restart"}
		if reply, err := Send(ctx, e, "host", c, nil); !errors.Is(err, engine.ErrUnknown) || reply.Outcome != Unsure {
			t.Errorf("without an answer in time: %+v, %v", reply, err)
		}
		if _, err := Send(t.Context(), e, "nobody", c, nil); !errors.Is(err, engine.ErrNoOwner) {
			t.Errorf("a machine that is not there: %v", err)
		}
	})
}

// A registry that has lost its content begins at epoch 1 again: the machine names its floor, and the holder is raised above it.
func TestRaisedAboveFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mem.New()
		m := newMachine(t)
		m.start(e)
		defer m.stop()
		c := Command{ID: NewID(), Term: term("before", 41), Agent: "a", Incarnation: "1", Verb: "restart"}
		if reply := m.gate.Do(t.Context(), c); reply.Outcome != Done {
			t.Fatal(reply)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		held, err := lease.Acquire(ctx, e, "judge", "now", lease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c = Command{ID: NewID(), Agent: "a", Incarnation: "2", Verb: "restart"}
		if reply, err := Send(ctx, e, "host", c, held); err != nil || reply.Outcome != Done {
			t.Errorf("%+v, %v", reply, err)
		}
		if now, err := held.Term(); err != nil || now.Epoch != 42 {
			t.Errorf("%+v, %v", now, err)
		}
		cancel()
		if _, err := Send(t.Context(), e, "host", c, held); !errors.Is(err, context.Canceled) {
			t.Errorf("without the lease: %v", err)
		}
	})
}

package monitor

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// A home that cannot be written stops the work, and not the monitor: a human is told once, by the channel itself, and when it
// can be written again, what was left is done.
func TestAHomeThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log strings.Builder
	w.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	w.claude("shop", 1001).prompt()
	w.opts.Interval = 10 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	looks := 0
	var m *Monitor
	full := func(yes string) {
		if _, err := m.store.db.ExecContext(ctx, "PRAGMA query_only="+yes); err != nil {
			t.Error(err)
		}
	}
	w.opts.Looked = func(error) {
		w.pass(time.Second)
		switch looks++; looks {
		case 2:
			full("on")
			clear(w.living)
		case 12:
			if len(w.said) != 1 || !strings.Contains(w.said[0], "cannot be written") || !strings.Contains(w.said[0], "shop (crashed)") || len(w.started) != 0 {
				t.Errorf("while it cannot be written: said %q, started %v", w.said, w.started)
			}
			if strings.Contains(log.String(), "something is done") {
				t.Errorf("log:\n%s", log.String())
			}
			full("off")
		case 16:
			cancel()
		}
	}
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Run(ctx), m.Close()); err != nil {
		t.Fatal(err)
	}
	if len(w.started) != 1 || len(w.said) != 2 || !strings.Contains(w.said[1], "can be written again") {
		t.Errorf("afterwards: said %q, started %v", w.said, w.started)
	}
}

// failing is a channel on which nothing can be sent.
type failing struct {
	err   error
	tries int
}

func (f *failing) Send(context.Context, notify.Message) (string, error) {
	f.tries++
	return "", f.err
}

// A channel that fails at a full disk is tried again with growing pauses, and not for ever. So it is afterwards.
func TestAFailingChannelAtAFullDisk(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err   error
		tries int // of both messages
	}{
		"no answer":                  {&notify.SendError{Failure: notify.Unreachable, Err: os.ErrDeadlineExceeded}, 12},
		"a dead token":               {&notify.SendError{Failure: notify.Refused, Err: os.ErrPermission}, 2},
		"a message that is wrong":    {&notify.SendError{Failure: notify.Rejected, Err: os.ErrInvalid}, 2},
		"one that may have arrived":  {&notify.SendError{Failure: notify.Unreachable, Unsure: true, Err: os.ErrDeadlineExceeded}, 4},
		"an error without a meaning": {errors.New("no"), 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dead := &failing{err: tt.err}
			w.opts.Channels["dead"] = dead
			w.declare("", w.agent("shop", "kind: command\n"))
			m, err := Open(t.Context(), w.opts)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, disk := range []error{syscall.ENOSPC, nil} {
				for range 100 {
					w.pass(5 * time.Second)
					m.last = w.now()
					m.mindDisk(t.Context(), disk)
				}
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if dead.tries != tt.tries || len(w.said) != 2 {
				t.Errorf("tried %d times, want %d; the other channel said %q", dead.tries, tt.tries, w.said)
			}
		})
	}
}

package monitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// run lets the loop run for so long, under the clock of the bubble.
func (w *world) run(d time.Duration) {
	w.t.Helper()
	w.wall = time.Now()
	w.opts.clock = func() Clocks {
		w.pass(time.Since(w.wall))
		return w.now()
	}
	m, err := Open(w.t.Context(), w.opts)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	if err := errors.Join(m.Run(ctx), m.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// PIV-14: an initial cycle immediately, and one every 15 minutes; SIGINT (the end of ctx) cleans up the PID file.
func TestTheLoopKeepsPIVsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run(61 * time.Minute)
		if n := strings.Count(w.out.String(), "Monitor cycle complete: 0 projects, 0 stalled, 0 recovered\n"); n != 5 {
			t.Errorf("%d cycles in an hour, want 5:\n%s", n, w.out.String())
		}
		if _, err := os.Stat(filepath.Join(w.home, "supervisor.pid")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the PID file is still there: %v", err)
		}
	})
}

func TestTheIntervalIsAnOption(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.opts.Interval = time.Second
		w.run(10*time.Second + 500*time.Millisecond)
		if n := strings.Count(w.out.String(), "complete"); n != 11 {
			t.Errorf("%d cycles in ten seconds, want 11", n)
		}
	})
}

// Acceptance: a stall is found within 15 minutes of its heartbeat going stale; in fact within 5 seconds (defect 11).
func TestAStallIsFoundWhenItIsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wall = time.Now()
		w.registry(w.entry("shop", piv.Running, 14*time.Minute, 1001))
		var at time.Time
		w.onStop = func() { at = time.Now() }
		begin := time.Now()
		w.run(2 * time.Minute)
		if found := at.Sub(begin.Add(time.Minute)); found <= 0 || found > 6*time.Second {
			t.Errorf("found %v after it went stale", found)
		}
		if want := "1 projects, 1 stalled, 1 recovered"; !strings.Contains(w.out.String(), want) {
			t.Errorf("said %q", w.out.String())
		}
	})
}

// A declared agent that ends is gone on with at the next look, and nobody waits for a cycle; the same loop tells of the day
// at its hour.
func TestADeclaredAgentInTheLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wall = time.Now()
		hour := w.wall.Add(loopTime / 2).Format("15:04")
		w.declare("digest: {at: \""+hour+"\"}\n", w.agent("shop", "kind: claude\n"+starts))
		w.claude("shop", 1001).prompt()
		var begun, ended, again time.Time
		w.opts.Looked = func(error) {
			switch {
			case ended.IsZero() && len(w.living) == 1 && time.Since(begun) > time.Minute:
				clear(w.living)
				ended = time.Now()
			case again.IsZero() && len(w.started) == 1:
				again = time.Now()
				w.claude("shop", 5001).ends("Done.")
			}
		}
		begun = time.Now()
		w.run(loopTime)
		if took := again.Sub(ended); took <= 0 || took > 6*time.Second || len(w.started) != 1 {
			t.Errorf("gone on with after %v: %v", took, w.started)
		}
		if len(w.said) != 1 || !strings.Contains(w.said[0], "shop") {
			t.Errorf("said %q", w.said)
		}
	})
}

// hanging never answers, until it is given up.
type hanging struct{ given chan struct{} }

func (h hanging) Send(ctx context.Context, _ notify.Message) (string, error) {
	<-ctx.Done()
	close(h.given)
	return "", ctx.Err()
}

// A Bot API that hangs holds up nobody, and the end comes soon.
func TestTelegramHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.wall = time.Now()
		h := hanging{make(chan struct{})}
		w.opts.Channels, w.opts.Restarts = map[string]notify.Channel{"telegram": h}, 1
		w.registry(w.entry("shop", piv.Running, time.Hour, 1001), w.entry("blog", piv.Running, 14*time.Minute, 1002))
		w.process(1001, "/", 2*time.Hour)
		begin := time.Now()
		w.run(5 * time.Minute)
		<-h.given
		if took := time.Since(begin); took > 5*time.Minute+4*time.Second {
			t.Errorf("it took %v to end", took)
		}
		if len(w.started) != 1 {
			t.Errorf("started %v: blog should have been restarted meanwhile", w.started)
		}
	})
}

// The monitor of a container is its first process: who looks beside it sees that it runs. The file that it leaves keeps nobody out.
func TestAMonitorThatIsTheFirstProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.processes = process.System{}
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	w.write("supervisor.pid", "1\n")
	var running *RunningError
	if _, err := Open(t.Context(), w.opts); !errors.As(err, &running) || running.PID != 1 {
		t.Errorf("a second one beside it: %v", err)
	}
	if view, err := Inspect(t.Context(), w.opts); err != nil || view.Running != 1 {
		t.Errorf("%d runs, %v", view.Running, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	w.write("supervisor.pid", "1\n")
	if m, err = Open(t.Context(), w.opts); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// "PID file prevents duplicate supervisor instances"; contract: the second names the first's PID.
func TestOnlyOneMonitor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.processes = process.System{}
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.read("supervisor.pid"); got != strconv.Itoa(os.Getpid())+"\n" {
		t.Errorf("the PID file holds %q", got)
	}
	var running *RunningError
	if _, err := Open(t.Context(), w.opts); !errors.As(err, &running) || running.PID != os.Getpid() {
		t.Errorf("the second: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	// One of another make takes no lock: its PID file counts while it lives, and only if it can have written it.
	other := stays(t)
	w.write("supervisor.pid", strconv.Itoa(other)+"\n")
	if _, err := Open(t.Context(), w.opts); !errors.As(err, &running) || running.PID != other {
		t.Errorf("beside one of another make: %v", err)
	}
	long := time.Unix(1e9, 0)
	for name, text := range map[string]string{"written before it lived": strconv.Itoa(other), "dead": "2147483646", "no number": "x", "empty": ""} {
		w.write("supervisor.pid", text)
		if err := os.Chtimes(filepath.Join(w.home, "supervisor.pid"), long, long); err != nil {
			t.Fatal(err)
		}
		m, err := Open(t.Context(), w.opts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func verifyNoLeaks(m *testing.M) int {
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	return code
}

// What agents write asks for a look: not constantly, and yet soon, also on a machine that is so busy that a look takes long.
func TestAnEventIsLookedAtSoon(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ took, event, most time.Duration }{
		{10 * time.Millisecond, 0, wakeGap},
		{100 * time.Millisecond, time.Second, 2 * time.Second}, // a twentieth of the time
		{230 * time.Millisecond, 0, 2 * time.Second},
		{230 * time.Millisecond, 4 * time.Second, 4*time.Second + wakeGap}, // it has rested
		{3 * time.Second, 0, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			news := make(chan struct{}, 1)
			m := &Monitor{alarms: alarms{vendors: news}}
			begin := time.Now()
			time.AfterFunc(tc.event, func() { news <- struct{}{} })
			if !m.wait(nil, lookEvery, tc.took) {
				t.Error("it is told to end")
			}
			if at := time.Since(begin); at > tc.most {
				t.Errorf("after a look of %v, an event %v later is looked at after %v, want %v at most", tc.took, tc.event, at, tc.most)
			}
		})
	}
}

// A look that ends many processes comes round late: the service manager hears before each act that the monitor lives.
func TestEachActIsASignOfLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("blog", "kind: claude\n"+starts), w.agent("shop", "kind: claude\n"+starts))
	w.claude("blog", 1001).prompt()
	w.claude("shop", 1002).prompt()
	w.cycle()
	alive, ends := false, 0
	w.opts.Acting = func() { alive = true }
	w.onStop = func() {
		if !alive {
			t.Error("nothing was heard since the act before")
		}
		alive = false
		ends++
	}
	clear(w.living)
	w.spends(3*time.Minute, time.Minute)
	if ends != 2 || len(w.started) != 2 {
		t.Errorf("ended %d, started %v", ends, w.rungs())
	}
}

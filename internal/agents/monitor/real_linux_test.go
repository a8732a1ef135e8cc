package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/testing/agenttest"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// alarm is a human who looks at the clock when told.
type alarm struct{ rang chan time.Time }

func (a alarm) Send(context.Context, notify.Message) (string, error) {
	a.rang <- time.Now()
	return "", nil
}

// The end of an agent is told of at once, not at the next look: the kernel says when a process ends.
func TestACrashIsNoticedAtOnce(t *testing.T) {
	h := declaredHouse(t, "crashed: [escalate]")
	a := alarm{make(chan time.Time, 8)}
	looked := make(chan struct{}, 1)
	m, err := Open(t.Context(), Options{Home: h.home, Channels: map[string]notify.Channel{"telegram": a}, Looked: func(error) {
		select {
		case looked <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	<-looked
	killed := time.Now()
	_ = syscall.Kill(h.old, syscall.SIGKILL)
	select {
	case rang := <-a.rang:
		took := rang.Sub(killed)
		t.Logf("from the kill to the message: %s", took.Round(time.Millisecond))
		tier.Within(t, "the message, as if it had waited for the next look,", took, lookEvery-time.Second)
	case <-time.After(2 * time.Minute):
		t.Error("nobody was told")
	}
	cancel()
	if err := errors.Join(<-ended, m.Close()); err != nil {
		t.Error(err)
	}
}

// All is the table of an hour later.
func (a aged) All() []process.Process {
	all := a.System.All()
	for i := range all {
		all[i].Age += time.Hour
	}
	return all
}

// once is one cycle of a monitor in this process.
func (h *house) once(opts Options) Summary {
	h.t.Helper()
	opts.Home = h.home
	opts.Environ = append(os.Environ(), opts.Environ...)
	opts.Environ = append(opts.Environ, agenttest.Starts+"="+filepath.Join(h.home, "starts"))
	m, err := Open(h.t.Context(), opts)
	if err != nil {
		h.t.Fatal(err)
	}
	s, err := m.Once(h.t.Context())
	if err := errors.Join(err, m.Close()); err != nil {
		h.t.Fatal(err)
	}
	return s
}

// A process that was stopped takes no signal but the last one; its successor begins when it is dead.
func TestAnAgentThatWasStopped(t *testing.T) {
	h := declaredHouse(t, "stopped: [restart]") // its owner wants it
	err := heartbeat.Write(BeatDir(h.home), heartbeat.Observation{Agent: "shop", Wall: time.Now().Add(-10 * time.Minute), State: heartbeat.Working})
	if err != nil {
		t.Fatal(err)
	}
	h.stops()
	if s := h.once(Options{processes: aged{}, Environ: []string{agenttest.Role + "=agent"}}); s.Recovered != 1 {
		t.Fatalf("%v", s)
	}
	h.startedOnce()
}

// stops stops the agent and returns when it is stopped: the signal takes its time where the machine is busy.
func (h *house) stops() {
	h.t.Helper()
	if err := syscall.Kill(h.old, syscall.SIGSTOP); err != nil {
		h.t.Fatal(err)
	}
	await.Value(h.t, "the agent is stopped", func() (string, bool) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.old))
		if err != nil {
			h.t.Fatalf("the agent is not stopped: %v", err)
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		return string(stat), strings.HasPrefix(rest, "T")
	})
}

// What a crashed agent has left behind, in another session and with init for its parent, is ended before the next one
// starts.
func TestWhatACrashLeavesBehind(t *testing.T) {
	h := declaredHouse(t, "crashed: [restart]")
	h.dead()
	opts := Options{Environ: []string{agenttest.Role + "=agent stubborn away"}}
	if s := h.once(opts); s.Recovered != 1 {
		t.Fatalf("%v", s)
	}
	leader := atoi(t, strings.Fields(h.waitStarts()[0])[0])
	first := h.pair()
	h.once(opts) // which sees it
	h.old = leader
	h.dead()
	later := opts
	later.clock = func() Clocks { // the limits of all agents are over
		m := now()
		m.Wall, m.Mono, m.Up = m.Wall.Add(10*time.Minute), m.Mono+10*time.Minute, m.Up+10*time.Minute
		return m
	}
	if s := h.once(later); s.Recovered != 1 {
		t.Fatalf("%v", s)
	}
	for _, pid := range h.pair() {
		if slices.Contains(first, pid) {
			t.Errorf("%d still lives", pid)
		}
	}
}

// pair waits until an agent and what it has started elsewhere live.
func (h *house) pair() []int {
	h.t.Helper()
	return await.Value(h.t, "two live", func() ([]int, bool) {
		living := h.living()
		return living, len(living) == 2
	})
}

// Behind a shell the agent is what the shell has started: both end, and neither is taken for the other's death.
func TestAnAgentBehindAShell(t *testing.T) {
	h := declaredHouse(t, "crashed: [restart]")
	h.dead()
	text, err := os.ReadFile(filepath.Join(h.home, "registry.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	h.file("registry.yaml", strings.Replace(string(text), fmt.Sprintf("cmd: [%s]", os.Args[0]), fmt.Sprintf("cmd: [sh, -c, '%s & wait']", os.Args[0]), 1))
	opts := Options{Environ: []string{agenttest.Role + "=agent"}}
	if s := h.once(opts); s.Recovered != 1 {
		t.Fatalf("%v", s)
	}
	h.waitStarts()
	for range 2 {
		if s := h.once(opts); s.Stalled != 0 || len(h.lines("starts")) != 1 {
			t.Fatalf("%v, started %v", s, h.lines("starts"))
		}
	}
	h.userRequests("stop", "")
	h.once(opts)
	if living := h.living(); len(living) != 0 {
		t.Errorf("there live %v", living)
	}
	if s := h.once(opts); s.Stalled != 0 || len(h.lines("starts")) != 1 {
		t.Errorf("%v: it was stopped by a person", s)
	}
}

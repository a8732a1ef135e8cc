package monitor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/testing/agenttest"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

func itoa(n int) string { return strconv.Itoa(n) }

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// house is a home with one silent project, and a real agent that runs in it.
type house struct {
	t    *testing.T
	home string
	old  int
	env  []string
}

func newHouse(t *testing.T, env ...string) *house {
	h := &house{t: t, home: t.TempDir(), env: env}
	dir := filepath.Join(h.home, "shop")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h.old = agenttest.Start(t, "agent", dir)[0]
	h.registry(h.old)
	t.Cleanup(func() {
		for _, pid := range everybodyOf(h.home) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return h
}

func (h *house) registry(pid int) {
	text := fmt.Sprintf("projects:\n  shop:\n    name: shop\n    path: %s\n    status: running\n    heartbeat: '%s'\n    currentPhase: 4\n    orchestratorPid: %d\nlastUpdated: 'x'\n",
		filepath.Join(h.home, "shop"), piv.FormatTime(time.Now().Add(-time.Hour)), pid)
	if err := os.WriteFile(filepath.Join(h.home, "registry.yaml"), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// lines are those of a file of the home; none when there is no file.
func (h *house) lines(name string) []string {
	b, err := os.ReadFile(filepath.Join(h.home, name))
	text := strings.TrimSpace(string(b))
	if err != nil || text == "" { // also one that is only just begun
		return nil
	}
	return strings.Split(text, "\n")
}

// monitor runs one cycle, as a process of its own, which is killed at a step.
func (h *house) monitor(step string) error { return h.actor("monitor " + step) }

// actor runs the test binary in another role.
func (h *house) actor(words string) error {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), agenttest.Role+"="+words, "OUTLIVE_TEST_HOME="+h.home, "GORACE=atexit_sleep_ms=0"), h.env...)
	out, err := cmd.CombinedOutput()
	if err != nil && strings.HasSuffix(words, " -") {
		h.t.Errorf("%v\n%s", err, out)
	}
	return err
}

// killedAt runs the cycle with a kill -9 at a step, and then once or twice without.
func (h *house) killedAt(step string) {
	h.t.Helper()
	if err := h.monitor(step); err == nil || len(h.lines("died")) != 1 {
		h.t.Fatalf("it was not killed at %s: the test does not reach it", step)
	}
	for range 2 {
		_ = h.monitor("-")
	}
}

func (h *house) entries() int {
	b, _ := os.ReadFile(filepath.Join(h.home, "improvement-log.md"))
	return strings.Count(string(b), "### ")
}

// The monitor is killed at every step of a recovery. Whatever the next run finds: the old agent is dead, exactly one new
// one was started, the registry names it, and the improvement log tells of it once.
func TestKillAtEachStepOfARecovery(t *testing.T) {
	for _, step := range []string{
		"begun", "stopping", "killed", "stopped", "starting", "spawned", "started", "published", "completed",
		"journal-before", "journal-after", "send-before", "send-after",
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.dead()
			h.killedAt(step)
			starts := h.waitStarts()
			if len(starts) != 1 {
				t.Fatalf("%d were started: %v", len(starts), starts)
			}
			pid := atoi(t, strings.Fields(starts[0])[0])
			text, err := os.ReadFile(filepath.Join(h.home, "registry.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			r, err := piv.ParseRegistry(text)
			if err != nil || r.Projects[0].PID != pid || identityOf(pid) == (process.Identity{}) {
				t.Errorf("the registry names %d, which was started is %d (%v)", r.Projects[0].PID, pid, err)
			}
			if n := h.entries(); n != 1 {
				t.Errorf("%d entries in the improvement log", n)
			}
			if said := h.lines("said"); len(said) != 0 {
				t.Errorf("a human was told: %v", said)
			}
		})
	}
}

// dead ends the agent that the registry names.
func (h *house) dead() {
	_ = syscall.Kill(h.old, syscall.SIGKILL)
	await.Until(h.t, "the agent has ended", func() bool { return identityOf(h.old) == process.Identity{} })
}

// waitStarts waits until the started agent has said so: it may need a moment to come up.
func (h *house) waitStarts() []string {
	h.t.Helper()
	return await.Value(h.t, "an agent says that it was started", func() ([]string, bool) {
		l := h.lines("starts")
		return l, len(l) > 0
	})
}

// The monitor is killed at every step of an escalation. The human is told once; only when the message may have gone out
// although nobody could write that down is it sent again, and says so.
func TestKillAtEachStepOfAnEscalation(t *testing.T) {
	for step, want := range map[string][]string{
		"escalate-before": {"plain"}, "escalated": {"plain"}, "journal-before": {"plain"}, "journal-after": {"plain"},
		"send-before": {"plain"}, "send-after": {"plain"}, "send-not-out": {"again"}, "send-out": {"plain", "again"},
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, "OUTLIVE_TEST_TELL=1")
			if err := os.MkdirAll(filepath.Join(h.home, "shop", ".agents"), 0o700); err != nil {
				t.Fatal(err)
			}
			err := os.WriteFile(filepath.Join(h.home, "shop", ".agents", "manifest.yaml"),
				[]byte("failures: [{error_category: integration_auth, resolution: pending}]\n"), 0o600)
			if err != nil {
				t.Fatal(err)
			}
			h.dead()
			h.killedAt(step)
			var got []string
			for _, line := range h.lines("said") {
				kind := "plain"
				if strings.Contains(line, "sent again") {
					kind = "again"
				}
				if !strings.Contains(line, "Supervisor Escalation") || !strings.Contains(line, "integration_auth") {
					t.Errorf("said %q", line)
				}
				got = append(got, kind)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("told %v, want %v", got, want)
			}
			if n := h.entries(); n != 1 {
				t.Errorf("%d entries in the improvement log", n)
			}
			if starts := h.lines("starts"); len(starts) != 0 {
				t.Errorf("started: %v", starts)
			}
		})
	}
}

// The same while a broken registry is dealt with.
func TestKillWhileTheRegistryIsMended(t *testing.T) {
	for _, step := range []string{"aside", "escalate-before", "escalated", "told"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			text := strings.Replace(strings.Join(h.lines("registry.yaml"), "\n"), "status: running", "status: idle", 1) + "\n"
			path := filepath.Join(h.home, "registry.yaml")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_ = h.monitor("-") // which knows a good copy now
			if err := os.WriteFile(path, []byte("projects: ["), 0o600); err != nil {
				t.Fatal(err)
			}
			h.killedAt(step)
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("the registry: %q, %v", got, err)
			}
			if said := h.lines("said"); len(said) != 1 {
				t.Errorf("said %v", said)
			}
			if aside, _ := filepath.Glob(path + ".broken-*"); len(aside) != 1 {
				t.Errorf("kept aside: %v", aside)
			}
		})
	}
}

// aged is the world of processes an hour later.
type aged struct{ process.System }

func (a aged) Look(pid int) (process.Process, error) {
	p, err := a.System.Look(pid)
	p.Age += time.Hour
	return p, err
}

// The whole way with real processes: a silent agent that lives is ended, with what it has left elsewhere, its successor
// runs, and the monitor's end does not touch it.
func TestARealRestart(t *testing.T) {
	h := newHouse(t)
	h.registry(h.old)
	opts := Options{
		Home: h.home, Command: []string{os.Args[0]}, processes: aged{},
		Environ: append(os.Environ(), agenttest.Role+"=agent stubborn away", agenttest.Starts+"="+filepath.Join(h.home, "starts")),
	}
	for n := 1; n <= 2; n++ {
		mon, err := Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		s, err := mon.Once(t.Context())
		if err := mon.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil || s.Recovered != 1 {
			t.Fatalf("%v, %v", s, err)
		}
		await.Until(t, fmt.Sprint("start ", n), func() bool { return len(h.lines("starts")) >= n })
		if identityOf(h.old) != (process.Identity{}) {
			t.Fatal("the old one lives")
		}
		h.old = atoi(t, strings.Fields(h.lines("starts")[n-1])[0])
		if identityOf(h.old) == (process.Identity{}) {
			t.Fatal("the new one does not live")
		}
		if n == 1 { // as if it had beaten, and then been silent
			opts.clock = func() Clocks {
				m := now()
				m.Wall, m.Mono, m.Up = m.Wall.Add(time.Hour), m.Mono+time.Hour, m.Up+time.Hour
				return m
			}
			text := strings.Join(h.lines("registry.yaml"), "\n")
			text = text[:strings.Index(text, "heartbeat: '")] + "heartbeat: '" + piv.FormatTime(time.Now().Add(time.Second)) + text[strings.Index(text, "'\n    currentPhase"):] + "\n"
			if err := os.WriteFile(filepath.Join(h.home, "registry.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left := everybodyOf(h.home); len(left) > 3 {
		t.Errorf("of three starts there live %v", left)
	}
}

// everybodyOf are the living agents that work below a directory.
func everybodyOf(dir string) []int {
	var pids []int
	for _, s := range (process.System{}).All() {
		if p, err := (process.System{}).Look(s.PID); err == nil && (&sources{}).within(p.Dir, dir) {
			pids = append(pids, s.PID)
		}
	}
	return pids
}

package monitor

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/piv"
)

// PIV-6: a silent orchestrator that lives hangs; it is restarted twice in one phase, and the third time a human is told. That
// none of the new ones beats makes nothing else of it: nobody has shown that it waits for input.
func TestAnOrchestratorThatNeverBeatsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.process(1001, "/", time.Hour)
	w.registry(w.entry("shop", piv.Running, 20*time.Minute, 1001))
	w.spends(2*time.Hour, time.Minute)
	if len(w.started) != 2 || len(w.said) != 1 {
		t.Errorf("started %d, said %q", len(w.started), w.said)
	}
	if log := w.read("improvement-log.md"); strings.Contains(log, "agent_waiting_for_input") || strings.Count(log, "**Stall:** session_hung") != 3 {
		t.Errorf("log:\n%s", log)
	}
	for _, l := range w.started {
		for _, kv := range l.Environ {
			if strings.HasPrefix(kv, "PIV_AUTONOMOUS_PREAMBLE") {
				t.Errorf("started with %s", kv)
			}
		}
	}
}

// One that has never written a heartbeat is as silent as one whose last is old (PIV-3), once it has had its time.
func TestAMissingHeartbeatIsStale(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.process(1001, w.dir("shop"), 20*time.Minute)
	entry := w.entry("shop", piv.Running, 0, 1001)
	i := strings.Index(entry, "heartbeat: '")
	w.registry(entry[:i] + "heartbeat: ''" + entry[i+strings.Index(entry[i:], "\n"):])
	w.cycle()
	if log := w.read("improvement-log.md"); !strings.Contains(log, "session_hung") || len(w.started) != 1 {
		t.Errorf("started %v, log:\n%s", w.started, log)
	}
}

// A restarted orchestrator has as long as any heartbeat may be old to show itself, also when the last one is of the future.
func TestARestartAfterAHeartbeatOfTheFuture(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.process(1001, "/", time.Hour)
	w.registry(w.entry("shop", piv.Running, -1000*time.Hour, 1001))
	for len(w.started) == 0 && w.mono < 20*time.Hour {
		w.spends(30*time.Second, 30*time.Second)
	}
	first := w.wall
	w.spends(14*time.Minute, 30*time.Second)
	if len(w.started) != 1 {
		t.Fatalf("%d starts within %s", len(w.started), w.wall.Sub(first))
	}
	w.spends(3*time.Minute, 30*time.Second)
	if len(w.started) != 2 {
		t.Errorf("%d starts: the new one is silent for longer than any may be", len(w.started))
	}
}

// The same of a declared agent.
func TestADeclaredRestartAfterAHeartbeatOfTheFuture(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\nexpect: {beat: 5m}\nmatch: {pidfile: pid}\n"+starts))
	w.process(1001, w.dir("shop"), time.Hour)
	w.pidfile("shop", "1001")
	was := w.wall
	w.wall = was.Add(1000 * time.Hour)
	w.beats("shop", "working")
	w.wall = was
	for len(w.started) == 0 && w.mono < 20*time.Hour {
		w.spends(30*time.Second, 30*time.Second)
	}
	w.spends(14*time.Minute, 30*time.Second)
	if len(w.started) != 1 {
		t.Errorf("%d starts", len(w.started))
	}
}

// PIV's message names how many restarts there are at most, also for what none cures.
func TestTheMessageNamesTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.process(1001, w.dir("shop"), time.Hour)
	w.registry(w.entry("shop", piv.Running, 20*time.Minute, 1001))
	w.write("projects/shop/.agents/manifest.yaml", "failures:\n- {category: integration_auth, phase: 3, resolution: pending, details: key}\n")
	w.cycle()
	if len(w.said) != 1 || !strings.Contains(w.said[0], "Restarts: 0/3") {
		t.Errorf("said %q", w.said)
	}
}

// Every entry of the improvement log says what was wrong.
func TestTheLogNamesTheStall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts+"policy: {api_backoff: [hold, escalate]}\n"))
	c := w.claude("shop", 1001)
	c.prompt()
	for n := range 9 {
		c.writes(`"type":"system","subtype":"api_error","error":{"status":529,"message":"overloaded"},"retryAttempt":` + string(rune('1'+n)) + `,"maxRetries":10`)
		w.spends(5*time.Minute, time.Minute)
	}
	log := w.read("improvement-log.md")
	if !strings.Contains(log, "**Stall:** api_backoff") || strings.Contains(log, "**Stall:** \n") || strings.Contains(log, "**Stall:** none") {
		t.Errorf("log:\n%s", log)
	}
}

// A dead process with a fresh heartbeat is not pruned to idle, as the original does: nothing is done until the heartbeat is stale, and
// then it is restarted.
func TestADeadProcessWithAFreshHeartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Minute, 1001))
	w.spends(13*time.Minute, time.Minute)
	if p := w.project("shop"); len(w.started) != 0 || p.Status != piv.Running {
		t.Errorf("while its heartbeat is fresh: %d starts, status %s", len(w.started), p.Status)
	}
	w.spends(2*time.Minute, 30*time.Second)
	if p := w.project("shop"); len(w.started) != 1 || p.Status != piv.Running {
		t.Errorf("once it is stale: %d starts, status %s", len(w.started), p.Status)
	}
}

package monitor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

const agents = "projects/shop/.agents/manifest.yaml"

// PIV-17, healthy monitoring: three fresh projects, no intervention.
func TestSC001HealthyMonitoring(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for pid := 1001; pid <= 1003; pid++ {
		w.process(pid, "/", time.Hour)
	}
	w.registry(w.entry("shop", piv.Running, time.Minute, 1001), w.entry("blog", piv.Running, 14*time.Minute, 1002), w.entry("api", piv.Running, 0, 1003))
	before := w.read("registry.yaml")
	w.cycle()
	if got := w.out.String(); got != "Monitor cycle complete: 3 projects, 0 stalled, 0 recovered\n" {
		t.Errorf("said %q", got)
	}
	if len(w.started)+len(w.stopped)+len(w.said)+w.interventions() != 0 || w.read("registry.yaml") != before {
		t.Errorf("something was done: started %v, stopped %v, said %v", w.started, w.stopped, w.said)
	}
}

// PIV-17, agent waiting: waiting for input is ended and restarted with the preamble, twice; the third time a human is told.
func TestSC005AgentWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	w.process(1001, "/", 2*time.Hour)
	w.write(agents, "notifications:\n- {type: escalation, blocking: true, category: approval, details: May I?}\n")
	for n := 1; n <= 2; n++ {
		if s := w.cycle(); s.Recovered != 1 {
			t.Fatalf("occurrence %d: %v", n, s)
		}
		l := w.started[n-1]
		if !slices.Contains(l.Environ, "PIV_AUTONOMOUS_PREAMBLE=strict") || !slices.Contains(l.Environ, "OUTLIVE_AGENT_PHASE=3") {
			t.Errorf("environment %v", l.Environ)
		}
		if d := cmp.Diff([]string{"npx", "tsx", ".claude/orchestrator/src/index.ts"}, l.Command); d != "" || l.Dir != filepath.Join(w.home, "projects", "shop") {
			t.Errorf("command %v in %s", l.Command, l.Dir)
		}
		w.pass(20 * time.Minute) // it never beats: it asks again
	}
	if d := cmp.Diff([]int{1001, 5001}, w.stopped); d != "" {
		t.Errorf("who was ended: %s", d)
	}
	if s := w.cycle(); s.Escalated != 1 || len(w.started) != 2 {
		t.Fatalf("the third occurrence: %v, %d starts", s, len(w.started))
	}
	if len(w.said) != 1 || !strings.Contains(w.said[0], "Stall Type: agent_waiting_for_input") || !strings.Contains(w.said[0], "May I?") || !strings.Contains(w.said[0], "Restarts: 2/2") {
		t.Errorf("said %q", w.said)
	}
	if p := w.project("shop"); p.Status != piv.Stalled {
		t.Errorf("status %s", p.Status)
	}
	if n := w.interventions(); n != 3 {
		t.Errorf("%d interventions in the log:\n%s", n, w.read("improvement-log.md"))
	}
}

// PIV-17, crash: a dead orchestrator is restarted at its phase, silently.
func TestSC006OrchestratorCrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, 16*time.Minute, 1001), w.entry("blog", piv.Running, time.Minute, 1002))
	w.process(1002, "/", time.Hour)
	beatBefore := w.project("shop").Heartbeat
	if s := w.cycle(); s != (Summary{Projects: 2, Stalled: 1, Recovered: 1}) {
		t.Fatalf("%v", s)
	}
	p := w.project("shop")
	if p.PID != 5001 || p.Status != piv.Running {
		t.Errorf("the registry says %+v", p)
	}
	if p.Heartbeat != beatBefore {
		t.Error("the monitor has forged a heartbeat")
	}
	if env := w.started[0].Environ; slices.Contains(env, "PIV_AUTONOMOUS_PREAMBLE=strict") || !slices.Contains(env, "OUTLIVE_AGENT_PHASE=3") {
		t.Errorf("environment %v", env)
	}
	want := "### 2026-03-02T02:00:00.000Z — shop (Phase 3)\n- **Stall:** orchestrator_crashed\n- **Action:** restart\n" +
		"- **Outcome:** restarted, PID 5001 (1 of 5 restarts)\n- **Details:** [R2 crashed] heartbeat 16m0s ago; PID 1001 is dead\n\n"
	if d := cmp.Diff(want, w.read("improvement-log.md")); d != "" || len(w.said) != 0 {
		t.Errorf("log: %s\nsaid %v", d, w.said)
	}
}

// PIV-17, a problem for a person: what only a human can cure is told at once, with what is needed, and nothing is restarted.
func TestSC007HumanEscalation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	w.process(1001, "/", 2*time.Hour)
	w.write(agents, "failures:\n- {command: execute, phase: 3, error_category: integration_auth, resolution: pending, details: STRIPE_KEY is missing <b>}\n")
	w.cycle()
	want := "🔴 Supervisor Escalation\n\nProject: shop\nPhase: 3\nStall Type: execution_error\n" +
		"Details: integration_auth in execute, phase 3: STRIPE_KEY is missing <b>; PID 1001 is alive\nAction Taken: none: a human is needed\nRestarts: 0/3"
	if d := cmp.Diff([]string{want}, w.said); d != "" {
		t.Error(d)
	}
	if len(w.started)+len(w.stopped) != 0 || w.project("shop").Status != piv.Failed {
		t.Errorf("started %v, stopped %v, %s", w.started, w.stopped, w.project("shop").Status)
	}
	for range 5 {
		w.pass(20 * time.Minute)
		w.cycle()
	}
	if len(w.said) != 1 {
		t.Errorf("told %d times", len(w.said))
	}
}

// PIV-2: registries that are not there, empty, or of others.
func TestRegistriesWithNothingToDo(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"Registry missing": "", "Empty registry": "projects: {}\nlastUpdated: ''\n", "an empty file": " "} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if text != "" {
				w.write("registry.yaml", text)
			}
			if s := w.cycle(); s != (Summary{}) || len(w.said) != 0 {
				t.Errorf("%v, said %v", s, w.said)
			}
		})
	}
}

// The rest of the way after an escalation: it is watched on, and its end is told.
func TestAfterAnEscalation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	w.process(1001, "/", 2*time.Hour)
	w.opts.Restarts = 1 // tell at the first occurrence
	w.cycle()
	if len(w.said) != 1 || w.project("shop").Status != piv.Stalled {
		t.Fatalf("said %v, status %s", w.said, w.project("shop").Status)
	}
	w.pass(time.Hour)
	w.registry(w.entry("shop", piv.Stalled, time.Minute, 1001)) // it beats again
	w.cycle()
	if d := cmp.Diff([]string{"🟢 Recovered\n\nProject: shop\nStall Type: session_hung, after 1h0m0s"}, w.said[1:]); d != "" {
		t.Error(d)
	}
	if p := w.project("shop"); p.Status != piv.Running {
		t.Errorf("status %s: nobody would look at it again", p.Status)
	}
	w.pass(time.Hour)
	w.cycle() // a new episode is news
	if len(w.said) != 3 {
		t.Errorf("said %v", w.said)
	}
}

// A stalled project of somebody else's monitor, and one that is over, are left alone.
func TestOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("a", piv.Stalled, time.Hour, 0), w.entry("b", piv.Complete, time.Hour, 7), w.entry("c", piv.Idle, time.Hour, 0), w.entry("d", piv.Failed, time.Hour, 0))
	before := w.read("registry.yaml")
	if s := w.cycle(); s != (Summary{Projects: 4}) || len(w.started) != 0 || w.read("registry.yaml") != before {
		t.Errorf("%v, started %v", s, w.started)
	}
}

// "Orchestrator spawns but immediately crashes → detected on next cycle", and a crash loop ends with a human (defect 4),
// across restarts of the monitor (defect 5).
func TestACrashLoopEndsWithAHuman(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	for range 12 {
		w.cycle()
		clear(w.living)
		w.pass(2 * time.Minute)
	}
	if len(w.started) != 5 || len(w.said) != 1 || !strings.Contains(w.said[0], "Restarts: 5/5") {
		t.Errorf("%d starts, said %v", len(w.started), w.said)
	}
	w.pass(time.Hour) // the budget is one of an hour: then it is tried again, and nobody is told twice
	w.cycle()
	if len(w.started) != 6 || len(w.said) != 1 {
		t.Errorf("an hour later: %d starts, said %v", len(w.started), w.said)
	}
}

// Nobody is started while somebody may live (defect 7): EPERM is not death, and neither is a process that stays.
func TestNothingIsStartedWithoutProofOfDeath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	w.process(1001, "/", 2*time.Hour)
	w.stopErr = &process.StopError{PID: 1001, Err: os.ErrPermission}
	w.cycle()
	if len(w.started) != 0 || len(w.said) != 1 || !strings.Contains(w.said[0], "Cannot kill PID 1001, manual intervention needed") {
		t.Errorf("started %v, said %v", w.started, w.said)
	}
	if !strings.Contains(w.read("improvement-log.md"), "Cannot kill PID 1001") {
		t.Error("the improvement log does not say so")
	}
	w.living[1001] = process.Process{} // it cannot even be looked at any more
	w.pass(20 * time.Minute)
	w.cycle()
	if len(w.started) != 0 {
		t.Error("a process that cannot be looked at was taken for a dead one")
	}
}

// "Spawn fails → Log error, escalate, retry next cycle."
func TestASpawnThatFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	w.startErr = errors.New("npx: executable file not found")
	w.cycle()
	w.pass(15 * time.Minute)
	w.cycle()
	if len(w.said) != 1 || !strings.Contains(w.said[0], "npx: executable file not found") || w.interventions() != 2 {
		t.Errorf("said %v, %d interventions", w.said, w.interventions())
	}
	w.startErr = nil
	w.pass(15 * time.Minute)
	if s := w.cycle(); s.Recovered != 1 || w.project("shop").PID != 5001 {
		t.Errorf("once it works: %v", s)
	}
}

// The heartbeat of the dead says nothing of the new one (defect 8): it has the time of any other to show itself.
func TestANewOrchestratorHasItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	w.cycle()
	for range 14 {
		w.pass(time.Minute)
		if s := w.cycle(); s.Stalled != 0 {
			t.Fatalf("condemned while starting: %v", s)
		}
	}
	w.registry(w.entry("shop", piv.Running, 0, 5001))
	w.cycle()
	w.pass(10 * time.Minute)
	if s := w.cycle(); s.Stalled != 0 || len(w.started) != 1 {
		t.Errorf("%v, %d starts", s, len(w.started))
	}
}

// A number that was given to another process is nobody to kill.
func TestAReusedNumber(t *testing.T) {
	t.Parallel()
	for name, seenBefore := range map[string]bool{"seen before": true, "never seen": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if seenBefore {
				w.process(1001, filepath.Join(w.home, "projects", "shop"), time.Hour)
				w.registry(w.entry("shop", piv.Running, 0, 1001))
				w.cycle()
				w.pass(30 * time.Minute)
			} else {
				w.registry(w.entry("shop", piv.Running, 30*time.Minute, 1001))
			}
			dir := "/somewhere" // else it could be an orchestrator that was started by hand
			if seenBefore {
				dir = filepath.Join(w.home, "projects", "shop")
			}
			w.living[1001] = process.Process{Identity: process.Identity{PID: 1001, Start: 77, Boot: w.boot}, Age: 20 * time.Minute, Dir: dir}
			if s := w.cycle(); s.Recovered != 1 || len(w.stopped) != 0 {
				t.Errorf("%v, stopped %v", s, w.stopped)
			}
			if _, alive := w.living[1001]; !alive || !strings.Contains(w.read("improvement-log.md"), "another process's now") {
				t.Errorf("the stranger: alive %v; log:\n%s", alive, w.read("improvement-log.md"))
			}
		})
	}
}

// An orchestrator that was started by hand has not beaten yet: it is not the one that died.
func TestStartedByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.process(1001, filepath.Join(w.home, "projects", "shop", "sub"), time.Minute)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	if s := w.cycle(); s.Stalled != 0 || len(w.stopped) != 0 {
		t.Errorf("%v, stopped %v", s, w.stopped)
	}
}

// It came back between the look and the kill: nothing is done, and nothing is counted.
func TestItCameBackInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	w.process(1001, "/", 2*time.Hour)
	w.opts.checkpoint = func(step string) {
		if step == string(begun) {
			w.registry(w.entry("shop", piv.Running, 0, 1001))
		}
	}
	w.cycle()
	if len(w.stopped)+len(w.started)+len(w.said)+w.interventions() != 0 {
		t.Errorf("stopped %v, started %v, said %v", w.stopped, w.started, w.said)
	}
	w.opts.checkpoint = nil
	w.pass(20 * time.Minute)
	if w.cycle(); !strings.Contains(w.read("improvement-log.md"), "(1 of 2 restarts)") {
		t.Errorf("the one that was not done was counted:\n%s", w.read("improvement-log.md"))
	}
}

// A night of sleep condemns nobody, and a real stall is found nevertheless.
func TestASleepCondemnsNobody(t *testing.T) {
	t.Parallel()
	for name, asleep := range map[string]func(w *world){
		"suspended":                   func(w *world) { w.sleep(8 * time.Hour) },
		"the clock was set forward":   func(w *world) { w.wall = w.wall.Add(8 * time.Hour) },
		"before anybody had looked":   func(w *world) { _ = os.Remove(w.opts.Database()); w.sleep(8 * time.Hour) },
		"started again, then resumed": func(w *world) { w.sleep(4 * time.Hour); w.cycle(); w.sleep(4 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.process(1001, "/", time.Hour)
			w.registry(w.entry("shop", piv.Running, time.Minute, 1001))
			w.cycle()
			asleep(w)
			if s := w.cycle(); s.Stalled != 0 || len(w.stopped) != 0 {
				t.Fatalf("condemned: %v", s)
			}
			w.pass(4 * time.Minute) // the grace is over, and the sleep was not silence
			if s := w.cycle(); name != "before anybody had looked" && s.Stalled != 0 {
				t.Fatalf("condemned after the grace: %v", s)
			}
			w.pass(16 * time.Minute) // it does not beat
			if s := w.cycle(); s.Recovered+len(w.started) == 0 {
				t.Errorf("a real stall: %v", s)
			}
		})
	}
}

// The same within one run.
func TestASleepWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.process(1001, "/", time.Hour)
	w.registry(w.entry("shop", piv.Running, time.Minute, 1001))
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	look := func(want int) {
		t.Helper()
		if s, err := m.look(t.Context()); err != nil || s.Stalled != want {
			t.Errorf("%v, %v, want %d stalled", s, err, want)
		}
	}
	look(0)
	w.sleep(8 * time.Hour)
	look(0)
	w.pass(4 * time.Minute)
	look(0)
	w.pass(11 * time.Minute)
	look(1)
}

// Whoever starts agents when the machine starts goes first.
func TestTheMachineHasJustStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	w.mono = time.Minute
	if s := w.cycle(); s.Stalled != 0 {
		t.Errorf("%v", s)
	}
	w.pass(3 * time.Minute)
	if s := w.cycle(); s.Recovered != 1 {
		t.Errorf("%v", s)
	}
}

// "Heartbeat timestamp in the future → treat as fresh", but not for ever.
func TestAHeartbeatOfTheFuture(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.process(1001, "/", time.Hour)
	w.registry(w.entry("shop", piv.Running, -1000*time.Hour, 1001))
	for range 3 {
		if s := w.cycle(); s.Stalled != 0 {
			t.Fatalf("%v", s)
		}
		w.pass(5 * time.Minute)
	}
	w.pass(time.Minute)
	if s := w.cycle(); s.Stalled != 1 {
		t.Errorf("it has not changed for 16 minutes: %v", s)
	}
}

// Claude Code says itself that it waits (rules W1, W2).
func TestClaudeWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.Places = agentcli.Places{agentcli.Claude: filepath.Join(w.home, "claude")}
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	w.process(1001, "/", 2*time.Hour)
	w.process(1002, "/", 2*time.Hour)
	if err := os.MkdirAll(filepath.Join(w.home, "claude", "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.home, "projects", "shop")
	w.write("claude/sessions/1002.json", `{"pid":1002,"cwd":"`+inJSON(dir)+`","procStart":"1002001","status":"waiting","waitingFor":"permission prompt","x":1}`)
	w.write("claude/sessions/3.json", `{"pid":3,"cwd":"`+inJSON(dir)+`","procStart":"1","status":"waiting","waitingFor":"input needed"}`) // dead
	w.write("claude/sessions/4.json", `{`)
	w.cycle()
	if log := w.read("improvement-log.md"); !strings.Contains(log, "[W1 waiting_permission]") || !strings.Contains(log, "restart_with_preamble") {
		t.Errorf("log:\n%s", log)
	}
}

// A message that cannot be sent now is sent by a later run (defect 10).
func TestAMessageWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	w.process(1001, "/", 2*time.Hour)
	w.opts.Restarts = 1
	w.sendErr = &notify.SendError{Failure: notify.Refused, Err: errors.New("401")} // "Telegram bot token revoked"
	w.cycle()
	if !strings.Contains(w.read("improvement-log.md"), "Telegram message queued") {
		t.Errorf("log:\n%s", w.read("improvement-log.md"))
	}
	w.sendErr = nil
	w.cycle()
	w.cycle()
	if len(w.said) != 1 {
		t.Errorf("said %v", w.said)
	}
}

// An improvement log that cannot be written keeps nobody from being restarted, and the entry waits (PIV-13).
func TestAnImprovementLogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	log := filepath.Join(w.home, "improvement-log.md")
	if err := os.Mkdir(log, 0o700); err != nil {
		t.Fatal(err)
	}
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if s, err := m.Once(t.Context()); s.Recovered != 1 || len(w.started) != 1 || err == nil || !strings.Contains(err.Error(), "improvement-log.md") {
		t.Errorf("%v, started %v, %v", s, w.started, err)
	}
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Once(t.Context()); err != nil || w.interventions() != 1 {
		t.Errorf("once it can be written: %v\n%s", err, w.read("improvement-log.md"))
	}
}

// "Telegram config is optional — monitor works without it (just can't escalate)."
func TestWithoutTelegram(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001))
	w.process(1001, "/", 2*time.Hour)
	w.opts.Restarts, w.opts.Channels = 1, nil
	if s := w.cycle(); s.Escalated != 1 || !strings.Contains(w.read("improvement-log.md"), "Telegram is not configured") {
		t.Errorf("%v\n%s", s, w.read("improvement-log.md"))
	}
}

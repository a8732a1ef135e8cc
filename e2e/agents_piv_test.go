package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// orchestrator is a PIV orchestrator as far as its supervisor sees it: it writes its registry, not at once, with its
// process and a heartbeat, twice a second instead of every two minutes.
const orchestrator = `const { writeFileSync } = require("node:fs");
const { homedir } = require("node:os");
const registered = new Date().toISOString();
function beat() {
  const now = new Date().toISOString();
  writeFileSync(homedir() + "/.piv/registry.yaml", [
    "projects:", "  shop:", "    name: shop", "    path: " + process.cwd(), "    status: running",
    "    heartbeat: " + now, "    currentPhase: 2", "    pivCommandsVersion: 1.4.0", "    orchestratorPid: " + process.pid,
    "    registeredAt: " + registered, "    lastCompletedPhase: 1", "lastUpdated: " + now, "",
  ].join("\n"));
}
beat();
setInterval(beat, 500);
`

// npx stands for the real one, which would look for tsx on the network: it writes down how it was called, and runs the
// program with node.
const npx = `#!/bin/sh
echo "$PWD: $* (${OUTLIVE_AGENT_PHASE:-} ${PIV_AUTONOMOUS_PREAMBLE:-})" >>"$E2E_DIR/npx.log"
[ "$1" = tsx ] || exit 1
shift
exec node "$@"
`

// orchestratorSource is where the supervisor's fixed command looks for the orchestrator.
const orchestratorSource = ".claude/orchestrator/src/index.ts"

// TestMonitorInPlaceOfPIV: without a word of configuration, outlive monitor takes over a home of the PIV supervisor,
// restarts its orchestrator with its command, and writes its files and messages.
func TestMonitorInPlaceOfPIV(t *testing.T) {
	t.Parallel()
	m, first := pivHome(t)
	a, w := m.a, m.a.w
	m.start()
	m.await("a healthy cycle", func() bool { return m.said("Monitor cycle complete: 1 projects, 0 stalled, 0 recovered") })

	killed(t, first)
	passed := time.Now()
	m.sevenMinutesPass()
	m.await("the new orchestrator's heartbeat", func() bool {
		return !m.registered(first) && m.registered(only(w.processes(orchestratorSource)))
	})
	t.Logf("the new orchestrator has beaten %v after the old one's heartbeat was stale", time.Since(passed).Round(time.Millisecond))
	// The monitor writes the new process into the registry, perhaps before that has done anything.
	m.await("npx to be called", func() bool { text, _ := os.ReadFile(w.path("npx.log")); return strings.HasSuffix(string(text), "\n") })
	if called, _ := os.ReadFile(w.path("npx.log")); string(called) != a.project+": tsx "+orchestratorSource+" (2 )\n" {
		t.Errorf("npx was called so: %q", called)
	}
	m.await("the summary", func() bool { return m.said("Monitor cycle complete: 1 projects, 1 stalled, 1 recovered") })
	for _, line := range []string{
		"# PIV Improvement Log", "— shop (Phase 2)", "- **Stall:** orchestrator_crashed", "- **Action:** restart", "- **Outcome:** restarted, PID ",
	} {
		m.await("the improvement log's "+line, func() bool { return strings.Contains(m.journal(), line) })
	}
	m.tellsNobody()

	// A failure that no restart cures is told in the supervisor's words, once, and nothing is done.
	a.write(filepath.Join(a.project, ".agents", "manifest.yaml"), `phases: {}
failures:
  - {command: execute, phase: 2, error_category: integration_auth, retry_count: 0, max_retries: 0, resolution: pending, details: 'the key < has > expired'}
`)
	killed(t, only(w.processes(orchestratorSource)))
	m.sevenMinutesPass()
	m.tells(1, says("🔴 Supervisor Escalation\n\nProject: shop\nPhase: 2\nStall Type: execution_error\nDetails: ", "the key < has > expired", "\nAction Taken: "))
	m.await("two more cycles", m.twoMore())
	if list := m.phone.Messages(); len(list) != 1 || len(list[0].Buttons) != 0 {
		t.Errorf("%d messages: %+v", len(list), list)
	}
	if left := w.processes(orchestratorSource); len(left) != 0 {
		t.Errorf("it was restarted: %v", left)
	}
}

// pivHome makes a home of the PIV supervisor in its default place, and starts an orchestrator that has registered there.
func pivHome(t *testing.T) (m *watcher, orchestratorPID int) {
	t.Helper()
	m = newWatcher(t)
	w := newWorkspace(t)
	a := &agent{t: t, w: w, kind: "piv", home: w.path("home"), project: w.path("shop"), cmd: exec.Command(tools.node, orchestratorSource)}
	m.a, m.dir = a, filepath.Join(a.home, ".piv")
	m.env = []string{"PATH=" + w.path("bin") + ":" + os.Getenv("PATH"), fmt.Sprintf("PIV_MONITOR_INTERVAL_MS=%d", max(time.Second, waits(2*time.Second)).Milliseconds()), "PIV_HEARTBEAT_STALE_MS=360000"}
	a.write(filepath.Join(a.project, orchestratorSource), orchestrator)
	a.write(filepath.Join(a.project, ".agents", "manifest.yaml"), "phases: {}\nfailures: []\n")
	a.write(filepath.Join(m.dir, "improvement-log.md"), "# PIV Improvement Log\n")
	a.write(w.path("bin/npx"), npx)
	if err := os.Chmod(w.path("bin/npx"), 0o700); err != nil {
		t.Fatal(err)
	}
	a.cmd.Dir, a.cmd.Env = a.project, append(w.env(), "HOME="+a.home)
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = a.cmd.Wait() // it is killed
	}()
	t.Cleanup(func() {
		for pid := range w.processes(orchestratorSource) { // also those that the monitor has started
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-gone
	})
	m.await("the orchestrator's heartbeat", func() bool { return m.registered(a.cmd.Process.Pid) })
	return m, a.cmd.Process.Pid
}

// registered reports whether the registry, whole or half written, names the process.
func (m *watcher) registered(pid int) bool {
	text, _ := os.ReadFile(filepath.Join(m.dir, "registry.yaml"))
	return strings.Contains(string(text), fmt.Sprintf("orchestratorPid: %d\n", pid))
}

var beaten = regexp.MustCompile(`heartbeat: \S+`)

// sevenMinutesPass makes the heartbeat of a dead orchestrator seven minutes old: the supervisor believes a fresh one,
// whatever became of the process, and no limit below six minutes.
func (m *watcher) sevenMinutesPass() {
	m.t.Helper()
	path := filepath.Join(m.dir, "registry.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		m.t.Fatal(err)
	}
	m.a.write(path, beaten.ReplaceAllString(string(text), "heartbeat: "+ago(7*time.Minute)))
}

// ago is a time as a registry has it.
func ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format("2006-01-02T15:04:05.000Z") }

// said reports whether the monitor has printed the line.
func (m *watcher) said(line string) bool {
	log, _ := os.ReadFile(m.a.w.path("monitor.log"))
	return strings.Contains(string(log), line+"\n")
}

// twoMore is a wish for two more cycles than there are now.
func (m *watcher) twoMore() func() bool {
	before := m.cycles()
	return func() bool { return m.cycles() >= before+2 }
}

// only is the one process of a list, 0 when there is another number.
func only(processes map[int]string) int {
	if len(processes) != 1 {
		return 0
	}
	for pid := range processes {
		return pid
	}
	return 0
}

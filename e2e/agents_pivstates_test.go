package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pivState is what stands in a home of the PIV supervisor, and what the monitor must call it.
type pivState struct {
	name     string
	class    string
	age      time.Duration // of the heartbeat of an orchestrator that is stopped; 0: it beats
	replace  [2]string     // in the registry
	manifest string
	then     func(m *watcher, registry string) // once the monitor has seen that registry
}

// nearlyStale is an age at which a heartbeat is fresh for some seconds more: the supervisor's least limit is six minutes.
const nearlyStale = 6*time.Minute - 15*time.Second

var pivStates = []pivState{
	{name: "beats", class: "healthy"},
	{name: "complete", class: "complete", age: time.Minute, replace: [2]string{"status: running", "status: complete"}},
	{name: "unreadable", class: "unreadable", age: time.Minute, replace: [2]string{"heartbeat: ", "heartbeat: yesterday "}},
	{name: "silent", class: "heartbeat_lost", age: 7 * time.Minute},
	{name: "asks", class: "waiting_other", age: 7 * time.Minute, manifest: `phases: {}
notifications:
  - {type: escalation, severity: warning, category: decision, command: execute, phase: 2, details: Which till?, blocking: true, acknowledged: false}
`},
	{name: "failed", class: "execution_error", age: 7 * time.Minute, manifest: `phases: {}
failures:
  - {command: execute, phase: 2, error_category: test_failure, retry_count: 3, max_retries: 3, resolution: pending, details: two tests fail}
`},
	{name: "manifest", class: "manifest", age: 7 * time.Minute, manifest: "phases: ["},
	{name: "lost", class: "lost", age: nearlyStale, then: func(m *watcher, registry string) {
		if err := os.Remove(registry); err != nil {
			m.t.Fatal(err)
		}
	}},
	{name: "vanished", class: "vanished", age: nearlyStale, then: func(m *watcher, registry string) {
		m.a.write(registry, "projects: {}\nlastUpdated: "+ago(0)+"\n")
	}},
	{name: "grace", class: "grace", age: nearlyStale, then: func(m *watcher, registry string) {
		m.a.write(registry, "projects: [\n") // the last good copy takes its place, and its heartbeats are old
	}},
}

// TestMonitorDetectsPIV: what the monitor calls a project of the PIV supervisor, by what stands in its files, with its shortest
// limit: six minutes, of which the heartbeat is written old.
func TestMonitorDetectsPIV(t *testing.T) {
	t.Parallel()
	for _, s := range pivStates {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			m, pid := pivHome(t)
			registry := filepath.Join(m.dir, "registry.yaml")
			if s.manifest != "" {
				m.a.write(filepath.Join(m.a.project, ".agents", "manifest.yaml"), s.manifest)
			}
			m.start()
			j := m.judges("healthy") // whoever is younger than its heartbeat, and was never seen before, has only just been started
			if s.age > 0 {
				m.standsStill(pid, registry, s)
			}
			if s.then != nil {
				m.await("two more cycles", m.twoMore())
				s.then(m, registry)
			}
			if s.class != "healthy" {
				j = m.judges(s.class)
			}
			t.Logf("%s: %s", j.Verdict.Rule, j.Verdict.Details)
		})
	}
}

// standsStill stops the orchestrator, so that nothing but the test writes the registry, and makes that what the state wants.
func (m *watcher) standsStill(pid int, registry string, s pivState) {
	m.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		m.t.Fatal(err)
	}
	m.await("the orchestrator to stop", func() bool { return stopped(pid) })
	text, err := os.ReadFile(registry)
	if err != nil {
		m.t.Fatal(err)
	}
	changed := beaten.ReplaceAllString(string(text), "heartbeat: "+ago(s.age))
	if s.replace[0] != "" {
		changed = strings.Replace(changed, s.replace[0], s.replace[1], 1)
	}
	m.a.write(registry, changed)
}

// TestMonitorIsUnsure: the registry names a process that is younger than the heartbeat, and whose directory the system does not
// tell: it may be the orchestrator or a stranger. Nothing is done to it.
func TestMonitorIsUnsure(t *testing.T) {
	t.Parallel()
	m, pid := pivHome(t)
	state := pivState{age: 20 * 365 * 24 * time.Hour, replace: [2]string{fmt.Sprintf("orchestratorPid: %d", pid), "orchestratorPid: 1"}}
	m.standsStill(pid, filepath.Join(m.dir, "registry.yaml"), state)
	if os.Getuid() == 0 { // for root nothing is hidden
		m.runsAsNobody()
	}
	m.start()
	j := m.judges("unsure")
	t.Logf("%s: %s", j.Verdict.Rule, j.Verdict.Details)
	m.tells(1, says("Project: shop", "monitor_blind"))
}

// runsAsNobody gives the home to a user who may see nobody's processes but its own.
func (m *watcher) runsAsNobody() {
	m.t.Helper()
	const nobody = 65534
	m.user = &syscall.Credential{Uid: nobody, Gid: nobody}
	for dir := filepath.Dir(m.a.w.dir); dir != filepath.Clean(os.TempDir()) && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	err := filepath.WalkDir(m.a.w.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

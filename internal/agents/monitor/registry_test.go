package monitor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
)

// Contract: "a registry that cannot be parsed: last good copy used, file kept aside, one escalation; never overwritten
// with an empty one". PIV-2.
func TestABrokenRegistry(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]string{
		"no YAML": "projects: [", "empty": "", "half": "projects:\n  shop:\n    name: shop\n    path: /x\n    status: running\n", "binary": "\x00\x01\x02",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.process(1001, "/", time.Hour)
			w.registry(w.entry("shop", piv.Running, time.Minute, 1001), w.entry("blog", piv.Running, 14*time.Minute, 1002))
			w.cycle()
			good := w.read("registry.yaml")
			w.pass(3 * time.Minute)
			w.write("registry.yaml", broken)
			s := w.cycle()
			if s.Projects != 2 || s.Recovered != 1 {
				t.Errorf("%v: the last good copy is not used, or the dead one of it was not recovered", s)
			}
			aside, _ := filepath.Glob(filepath.Join(w.home, "registry.yaml.broken-*"))
			if len(aside) != 1 {
				t.Fatalf("kept aside: %v", aside)
			}
			if b, err := os.ReadFile(aside[0]); err != nil || string(b) != broken {
				t.Errorf("kept aside: %q, %v", b, err)
			}
			if len(w.said) != 1 || !strings.Contains(w.said[0], "cannot be understood") || !strings.Contains(w.said[0], aside[0]) {
				t.Errorf("said %v", w.said)
			}
			if p := w.project("shop"); !strings.Contains(good, p.Heartbeat) || p.PID != 1001 {
				t.Errorf("the registry is now:\n%s", w.read("registry.yaml"))
			}
			w.cycle()
			if len(w.said) != 1 || len(w.stopped) != 0 {
				t.Errorf("said %v, stopped %v", w.said, w.stopped)
			}
		})
	}
}

// What nobody has ever understood is left as it is.
func TestARegistryThatNeverWasOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("registry.yaml", "projects: [")
	w.cycle()
	w.cycle()
	if len(w.said) != 1 || w.read("registry.yaml") != "projects: [" {
		t.Errorf("said %v, the file is %q", w.said, w.read("registry.yaml"))
	}
}

// Without the file nobody can beat: the living are not condemned for it, and a human hears of it once.
func TestARegistryThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.process(1001, "/", time.Hour)
	w.registry(w.entry("shop", piv.Running, time.Minute, 1001))
	w.cycle()
	if err := os.Remove(filepath.Join(w.home, "registry.yaml")); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		w.pass(20 * time.Minute)
		w.cycle()
	}
	if len(w.stopped) != 0 || len(w.said) == 0 || len(w.said) > 2 || !strings.Contains(w.said[0], "is missing") {
		t.Errorf("stopped %v, said %v", w.stopped, w.said)
	}
	if _, err := os.Stat(filepath.Join(w.home, "registry.yaml")); err == nil {
		t.Error("it was made again, although somebody took it away")
	}
}

// The original's writers lose entries: the dead one's never comes back. A human is told; it is not restarted, because
// somebody may have taken it out on purpose.
func TestAnEntryThatVanishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Minute, 1001), w.entry("blog", piv.Idle, 0, 0))
	w.cycle()
	w.registry(w.entry("blog", piv.Idle, 0, 0))
	for range 10 {
		w.pass(5 * time.Minute)
		w.cycle()
	}
	if len(w.started) != 0 || len(w.said) != 1 || !strings.Contains(w.said[0], "vanished from the registry") {
		t.Errorf("started %v, said %v", w.started, w.said)
	}
}

func TestAnEntryThatCannotBeJudged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, s string) string{
		"no path":         func(_ *world, s string) string { return strings.Replace(s, "path:", "way:", 1) },
		"a relative path": func(w *world, s string) string { return strings.Replace(s, "path: "+w.home, "path: home", 1) },
		"a heartbeat":     func(_ *world, s string) string { return strings.Replace(s, "heartbeat: '", "heartbeat: 'x", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.registry(change(w, w.entry("shop", piv.Running, time.Hour, 1001)))
			for n := range 5 {
				w.cycle()
				if want := min(n/2, 1); len(w.said) != want {
					t.Errorf("after %d looks told %d times", n+1, len(w.said))
				}
				w.pass(15 * time.Minute)
			}
			if len(w.started)+len(w.stopped) != 0 {
				t.Error("something was done about what cannot be judged")
			}
		})
	}
}

// Heartbeats that come while the monitor works are not rolled back (defect 6).
func TestOthersHeartbeatsStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001), w.entry("blog", piv.Running, 10*time.Minute, 1002))
	w.process(1002, "/", time.Hour)
	var fresh string
	w.onStop = func() { // blog beats while shop is being restarted
		text := strings.Replace(w.read("registry.yaml"), piv.FormatTime(w.wall.Add(-10*time.Minute)), piv.FormatTime(w.wall), 1)
		fresh = piv.FormatTime(w.wall)
		w.write("registry.yaml", text)
	}
	w.cycle()
	if p := w.project("blog"); p.Heartbeat != fresh {
		t.Errorf("blog's heartbeat is %s, it wrote %s", p.Heartbeat, fresh)
	}
	if p := w.project("shop"); p.PID != 5001 {
		t.Errorf("shop: %+v", p)
	}
}

// Looking changes nothing (defect 3), and works beside a running monitor.
func TestPreview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.registry(w.entry("shop", piv.Running, time.Hour, 1001), w.entry("blog", piv.Running, 0, 0))
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	before := w.read("registry.yaml")
	view, err := Inspect(t.Context(), w.opts)
	list := view.Findings
	if err != nil || view.Lost != "" || len(list) != 2 || view.Running != os.Getpid() {
		t.Fatalf("%+v, %v", view, err)
	}
	want := "shop (Phase 3): orchestrator_crashed [R2 crashed, high confidence]: heartbeat 1h0m0s ago; PID 1001 is dead -> restart (0 of 5 restarts used)"
	if got := list[0].String(); got != want {
		t.Errorf("%s", got)
	}
	if got := list[1].String(); got != "blog (Phase 3): healthy: heartbeat 0s ago" {
		t.Errorf("%s", got)
	}
	work := Finding{Name: "work", Diagnosis: diagnose.Diagnosis{Class: diagnose.NotWatched, Details: "declared, and not seen yet"}}
	if got := work.String(); got != "work: not_watched: declared, and not seen yet" {
		t.Errorf("%s", got)
	}
	if w.read("registry.yaml") != before || len(w.started) != 0 || w.read("improvement-log.md") != "" {
		t.Error("something was done")
	}
}

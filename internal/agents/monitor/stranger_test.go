package monitor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// pidfile writes a number into the pidfile of an agent, now.
func (w *world) pidfile(name, pid string) {
	w.t.Helper()
	w.write("projects/"+name+"/pid", pid+"\n")
	if err := os.Chtimes(filepath.Join(w.dir(name), "pid"), w.wall, w.wall); err != nil {
		w.t.Fatal(err)
	}
}

// userRequest is what a person wants of the monitor.
func (w *world) userRequest(agent, verb string) {
	w.t.Helper()
	s, err := openStore(w.t.Context(), w.opts.withDefaults().Database())
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = addRequest(w.t.Context(), s.db, UserRequest{Agent: agent, Verb: verb, By: "@ann"}, w.wall)
	if err := errors.Join(err, s.close()); err != nil {
		w.t.Fatal(err)
	}
}

// A pidfile is a file of the repository: whoever writes it must not choose whom the monitor ends.
func TestAPIDFileNamesAStranger(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind string
		is   func(w *world)
	}{
		"in another directory": {"command", func(w *world) { w.process(1001, w.dir("elsewhere"), time.Hour) }},
		"in no known one":      {"command", func(w *world) { w.process(1001, "", time.Hour) }},
		"of another user": {"command", func(w *world) {
			w.process(1001, w.dir("shop"), time.Hour)
			p := w.living[1001]
			p.User = "4711"
			w.living[1001] = p
		}},
		"its CLI in another directory": {"claude", func(w *world) {
			w.process(1001, w.dir("elsewhere"), time.Hour)
			w.args[1001] = []string{"claude"}
		}},
		"its CLI in no known one": {"claude", func(w *world) {
			w.process(1001, "", time.Hour)
			w.args[1001] = []string{"claude"}
		}},
		"another program in its directory": {"claude", func(w *world) {
			w.process(1001, w.dir("shop"), time.Hour)
			w.args[1001] = []string{"vim", "notes"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: "+tt.kind+"\nmatch: {pidfile: pid}\n"+starts))
			tt.is(w)
			w.pidfile("shop", "1001")
			w.cycle()
			w.beats("shop", "working")
			w.spends(2*time.Hour, 5*time.Minute) // long silent: an agent of this kind would be restarted
			w.userRequest("shop", "restart")
			w.cycle()
			w.userRequest("shop", "stop")
			w.cycle()
			if len(w.stopped) != 0 || len(w.started) != 0 {
				t.Errorf("stopped %v, started %v", w.stopped, w.started)
			}
			clear(w.living) // the stranger ends by itself
			w.spends(10*time.Minute, time.Minute)
			if len(w.stopped) != 0 {
				t.Errorf("stopped %v after its end", w.stopped)
			}
		})
	}
}

// What the monitor thinks of such a process is said, so that its owner can mend the declaration.
func TestAStrangerInAPIDFileIsExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\nmatch: {pidfile: pid}\n"+starts))
	w.process(1001, w.dir("elsewhere"), time.Hour)
	w.pidfile("shop", "1001")
	w.cycle()
	view, err := Inspect(t.Context(), w.opts)
	if err != nil || len(view.Findings) != 1 {
		t.Fatal(view, err)
	}
	if v := view.Findings[0].Diagnosis; v.Class != diagnose.Unobserved || !strings.Contains(v.Details, "not in the agent's directory") {
		t.Errorf("%+v", v)
	}
}

// The agent's own process is found by its pidfile: in its directory, and, if its kind is a CLI, running that.
func TestAPIDFileNamesTheAgent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind string
		is   func(w *world)
	}{
		"in its directory": {"command", func(w *world) { w.process(1001, w.dir("shop"), time.Hour) }},
		"its CLI below its directory": {"claude", func(w *world) {
			w.process(1001, filepath.Join(w.dir("shop"), "web"), time.Minute) // it has no session yet
			w.args[1001] = []string{"claude"}
		}},
		"a script that runs its CLI": {"claude", func(w *world) {
			w.process(1001, w.dir("shop"), time.Minute)
			w.process(1002, w.dir("shop"), time.Minute)
			w.args[1001], w.args[1002], w.parents[1002] = []string{"bash", "loop.sh"}, []string{"claude", "-p", "go on"}, 1001
		}},
		"its CLI, by the CLI's own files": {"claude", func(w *world) { // where no directory of a process is known
			w.claude("shop", 1001)
			w.process(1001, "", time.Hour)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: "+tt.kind+"\nmatch: {pidfile: pid}\n"+starts))
			tt.is(w)
			w.pidfile("shop", "1001")
			w.cycle()
			w.userRequest("shop", "restart")
			w.cycle()
			if !slices.Equal(w.stopped, []int{1001}) || len(w.started) != 1 {
				t.Errorf("stopped %v, started %v", w.stopped, w.started)
			}
		})
	}
}

// A CLI of another user in the agent's directory is that user's, not the agent's, unless the declaration says so.
func TestACLIOfAnotherUser(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		lines   string
		stopped []int
	}{"not declared": {"", nil}, "declared": {"match: {user: '4711'}\n", []int{1001}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+want.lines+starts))
			w.claude("shop", 1001).prompt()
			p := w.living[1001]
			p.User = "4711"
			w.living[1001] = p
			w.cycle()
			w.userRequest("shop", "restart")
			w.cycle()
			if !slices.Equal(w.stopped, want.stopped) || len(w.started) != 1 {
				t.Errorf("stopped %v, started %v", w.stopped, w.started)
			}
		})
	}
}

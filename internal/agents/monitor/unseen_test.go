package monitor

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// An agent that outlive agent run has started, and that ended while no monitor was there, has ended: its report names the process.
// What is done about it is what is done about any other.
func TestAnEndThatNobodySaw(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		exit  *agentrun.Exit
		after func(*world) // the run
		rungs []string
		log   string
	}{
		"killed with its wrapper": {after: func(*world) {}, rungs: []string{"new"}, log: "R2 crashed] PID 1001 is dead"},
		"and the machine was started anew": {
			after: func(w *world) { w.reboot("b2", 10*time.Minute) }, rungs: []string{"new"}, log: "R2 crashed] PID 1001 is dead",
		},
		"another process has its number": {
			after: func(w *world) {
				w.process(1001, "/elsewhere", time.Minute)
				p := w.living[1001]
				p.Identity = process.Identity{PID: 1001, Start: 77, Boot: w.boot}
				w.living[1001] = p
			},
			rungs: []string{"new"}, log: "R2 crashed] PID 1001 is dead",
		},
		"it ended before its wrapper could look at it": {
			after: func(w *world) {
				path := agentrun.Path(w.home, "shop")
				text, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, []byte(strings.Replace(string(text), `"start":1001001`, `"start":0`, 1)), 0o600)
				}
				if err != nil {
					w.t.Fatal(err)
				}
				w.process(1001, "/elsewhere", time.Hour) // somebody else's
			},
			rungs: []string{"new"}, log: "R2 crashed] PID 1001 is dead",
		},
		"with an exit status": {exit: &agentrun.Exit{Code: 3}, after: func(*world) {}, rungs: []string{"new"}, log: "exit code 3"},
		"it lives":            {after: func(w *world) { w.process(1001, w.dir("shop"), time.Hour); w.process(1000, w.dir("shop"), time.Hour) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: command\n"+starts))
			if tt.exit != nil {
				tt.exit.At = w.wall
			}
			w.reports("shop", 1001, tt.exit)
			w.pass(time.Minute)
			tt.after(w)
			w.spends(2*time.Minute, 10*time.Second)
			if got := w.rungs(); !slices.Equal(got, tt.rungs) || len(w.stopped) > 0 {
				t.Errorf("started %v, stopped %v, want %v; said %q", got, w.stopped, tt.rungs, w.said)
			}
			if log := w.read("improvement-log.md"); !strings.Contains(log, tt.log) {
				t.Errorf("%q is not in the record:\n%s", tt.log, log)
			}
		})
	}
}

// A later run than the one that was seen is the one that is dead.
func TestTheEndOfALaterRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\n"+starts))
	w.process(1001, w.dir("shop"), time.Minute)
	w.process(1000, w.dir("shop"), time.Minute)
	w.reports("shop", 1001, nil)
	w.cycle()
	clear(w.living) // with nobody there
	w.pass(time.Hour)
	w.reports("shop", 1301, nil)
	w.pass(time.Hour)
	w.spends(time.Minute, 10*time.Second)
	if log := w.read("improvement-log.md"); !strings.Contains(log, "PID 1301 is dead") || strings.Contains(log, "PID 1001") {
		t.Errorf("the record names another process than the last:\n%s", log)
	}
}

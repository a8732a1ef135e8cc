package monitor

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
)

// Stop is offered for what runs: of an agent that is dead nothing is left to stop.
func TestOnlyWhatRunsCanBeStopped(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{"it waits": false, "it is dead": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"))
			c := w.claude("shop", 1001)
			c.prompt()
			if w.cycle(); dies {
				delete(w.living, 1001)
			} else {
				c.is("waiting", "dialog open")
			}
			w.spends(30*time.Minute, 30*time.Second)
			view, err := Inspect(t.Context(), w.opts)
			if err != nil || len(view.Incidents) != 1 {
				t.Fatalf("incidents %+v, error %v", view.Incidents, err)
			}
			if i := view.Incidents[0]; i.Facts.Stop == dies {
				t.Errorf("%s: Stop is offered: %v; %+v", i.Key.Class, i.Facts.Stop, i.Facts)
			}
		})
	}
}

// An incident that somebody has acknowledged and that a restart by hand has ended is over: nobody is reminded of a process
// that has long been replaced, whatever became of the new one.
func TestAcknowledgedAndRestarted(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(w *world){
		"the new one ends its work": func(w *world) {
			w.reportsOf("shop", 5001, true, nil)
			w.pass(time.Second)
			delete(w.living, 5001)
			w.reportsOf("shop", 5001, true, &agentrun.Exit{At: w.wall})
		},
		"the new one has another trouble": func(w *world) {
			c := w.claude("shop", 5001)
			c.prompt()
			c.is("waiting", "permission prompt")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts))
			c := w.claude("shop", 1001)
			c.prompt()
			c.is("waiting", "dialog open")
			w.spends(time.Minute, 5*time.Second)
			if len(w.said) != 1 {
				t.Fatalf("said %q", w.said)
			}
			w.press(0, "Ack")
			w.press(0, "Restart")
			w.cycle()
			if len(w.started) != 1 {
				t.Fatalf("started %v", w.started)
			}
			then(w)
			w.spends(10*time.Minute, 30*time.Second)
			view, err := Inspect(t.Context(), w.opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range view.Incidents {
				if i.Key.Class == "waiting_other" {
					t.Errorf("still %s: %+v", i.State, i.Facts)
				}
			}
			w.spends(5*time.Hour, 15*time.Minute)
			for _, s := range w.said[1:] {
				if strings.Contains(s, "Still open") && strings.Contains(s, "PID 1001") {
					t.Errorf("said %q", s)
				}
			}
		})
	}
}

package monitor

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// diagnosis is what a look would say of the only agent.
func (w *world) diagnosis() diagnose.Diagnosis {
	w.t.Helper()
	view, err := Inspect(w.t.Context(), w.opts)
	if err != nil || len(view.Findings) != 1 {
		w.t.Fatal(view, err)
	}
	return view.Findings[0].Diagnosis
}

// A turn that was begun by a slash command is a turn: it works, and when its model is silent, that is seen.
func TestATurnOfASlashCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	c.ends("All done.")
	w.spends(10*time.Minute, time.Minute)
	c.writes(`"type":"user","message":{"content":"<command-message>review</command-message>\\n<command-name>/review</command-name>"}`)
	w.pass(time.Second)
	c.is("busy", "")
	w.spends(time.Minute, 10*time.Second)
	if v := w.diagnosis(); v.Class != diagnose.AtWork {
		t.Errorf("at work, and called %s: %s", v.Class, v.Details)
	}
	w.spends(9*time.Minute, time.Minute)
	if v := w.diagnosis(); v.Class != diagnose.ModelSilent && len(w.started) == 0 {
		t.Errorf("hanging, and called %s: %s", v.Class, v.Details)
	}
	w.spends(25*time.Minute, time.Minute) // whoever typed the command is taken to be there for half an hour
	if rungs := strings.Join(w.rungs(), " "); !strings.HasPrefix(rungs, "resume") {
		t.Errorf("started %q", rungs)
	}
}

// The CLI's own file calls the session busy, and its transcript shows nothing of what has begun: it is not at rest.
func TestABusyStatusAfterTheEndOfATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	c.ends("All done.")
	w.spends(10*time.Minute, time.Minute)
	c.is("busy", "")
	w.spends(time.Minute, 10*time.Second)
	if v := w.diagnosis(); v.Class != diagnose.AtWork {
		t.Errorf("busy, and called %s: %s", v.Class, v.Details)
	}
	w.spends(15*time.Minute, time.Minute)
	if v := w.diagnosis(); v.Class != diagnose.ModelSilent {
		t.Errorf("hanging, and called %s: %s", v.Class, v.Details)
	}
	if len(w.stopped)+len(w.started) != 0 {
		t.Errorf("it is not known what it does: stopped %v, started %v", w.stopped, w.started)
	}
	if len(w.said) == 0 {
		t.Error("nobody was told")
	}
}

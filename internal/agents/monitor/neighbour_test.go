package monitor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// Two agents of one kind work in one folder, or one of them in a worktree below the other. When one crashes, the other's process is not taken
// for its own: it is gone on with, and the other one is left alone.
func TestACrashBesideAnotherAgent(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"in one folder": "shop", "in a worktree": "shop/.claude/worktrees/cart"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			other := strings.Replace(w.agent(dir, "kind: claude\n"+starts), "  "+dir+":", "  cart:", 1)
			w.declare("", w.agent("shop", "kind: claude\n"+starts), other)
			w.process(1000, w.dir("shop"), time.Minute)
			c := w.claude("shop", 1001)
			w.reports("shop", 1001, nil)
			w.process(1010, w.dir(dir), time.Minute)
			beside := w.claude(dir, 1011)
			beside.session = "s-cart"
			beside.is("idle", "")
			if dir == "shop" { // there it is its wrapper that tells them apart
				w.reports("cart", 1011, nil)
			}
			c.prompt()
			beside.prompt()
			w.spends(time.Minute, 20*time.Second)
			delete(w.living, 1000)
			delete(w.living, 1001)
			w.pass(20 * time.Second)
			beside.writes(`"type":"user","message":{"role":"user","content":"and on"}`)
			w.cycle()
			if rungs := fmt.Sprint(w.rungs()); rungs != "[resume]" || !slices.Contains(w.started[0].Command, "s-shop") {
				t.Errorf("started %q", w.started)
			}
			if len(w.stopped) != 0 || w.living[1011].PID == 0 {
				t.Errorf("the other one was ended: %v", w.stopped)
			}
			view, err := Inspect(t.Context(), w.opts)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(view.Findings, func(f Finding) bool { return f.Key == "cart" })
			if v := view.Findings[at].Diagnosis; v.Class != diagnose.AtWork {
				t.Errorf("the other one works, and is called %s: %s", v.Class, v.Details)
			}
		})
	}
}

// A person works in the agent's folder with a session of their own. When the agent crashes, that is not taken for it.
func TestACrashBesideAPersonsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nexpect: {attended: 1s}\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.spends(time.Minute, 20*time.Second)
	persons := w.claude("shop", 1021)
	persons.session = "s-persons"
	persons.is("idle", "")
	w.spends(time.Minute, 20*time.Second)
	c.tool("Bash", `"command":"make"`)
	persons.prompt()
	w.spends(time.Minute, 20*time.Second)
	delete(w.living, 1001)
	w.spends(time.Minute, 20*time.Second)
	if len(w.started) != 1 || !slices.Contains(w.started[0].Command, "s-shop") || len(w.stopped) != 0 {
		t.Errorf("started %q, ended %v", w.started, w.stopped)
	}
}

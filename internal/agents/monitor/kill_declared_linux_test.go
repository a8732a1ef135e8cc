package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
)

// declaredHouse is a house whose agent is declared, and lives, and was seen to.
func declaredHouse(t *testing.T, policy string) *house {
	h := newHouse(t)
	dir := filepath.Join(h.home, "shop")
	h.file("shop/pid", itoa(h.old)+"\n")
	h.file("registry.yaml", fmt.Sprintf(`version: 2
agents:
  shop:
    path: %s
    kind: command
    match: {pidfile: pid}
    policy: {%s}
    start:
      cmd: [%s]
      nudge: [sh, -c, 'echo "$0" >> heard', "{text}"]
`, dir, policy, os.Args[0]))
	_ = h.monitor("-")
	return h
}

func (h *house) file(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.home, name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// asksSomething lets the agent say that it waits.
func (h *house) asksSomething() {
	h.t.Helper()
	err := heartbeat.Write(BeatDir(h.home), heartbeat.Observation{Agent: "shop", Wall: time.Now(), State: heartbeat.Waiting})
	if err != nil {
		h.t.Fatal(err)
	}
}

// acts is what counts of what was done, by what it was.
func (h *house) acts() (list []string) {
	h.t.Helper()
	view, err := Inspect(h.t.Context(), Options{Home: h.home})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, a := range view.Findings[0].Acts {
		if !a.Refunded {
			list = append(list, string(a.Rung))
		}
	}
	return list
}

// living are the agents that live in the agent's directory.
func (h *house) living() []int { return everybodyOf(filepath.Join(h.home, "shop")) }

// startedOnce checks that exactly one agent was started, and lives alone.
func (h *house) startedOnce() {
	h.t.Helper()
	starts := h.waitStarts()
	if len(starts) != 1 {
		h.t.Fatalf("started %v", starts)
	}
	if living := h.living(); len(living) != 1 || itoa(living[0]) != strings.Fields(starts[0])[0] {
		h.t.Errorf("started %v, there live %v", starts, living)
	}
	if n := h.entries(); n != 1 {
		h.t.Errorf("%d entries in the improvement log", n)
	}
}

// A declared agent's recovery, killed at each of its steps: the agent runs once, the log tells of it once, and the start is
// counted once.
func TestKillAtEachStepForADeclaredAgent(t *testing.T) {
	for _, step := range []string{
		"begun", "stopping", "killed", "stopped", "starting", "spawned", "started", "published", "completed", "journal-before", "journal-after",
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			h := declaredHouse(t, "crashed: [restart]")
			h.dead()
			h.killedAt(step)
			h.startedOnce()
			if d := cmp.Diff([]string{"restart"}, h.acts()); d != "" {
				t.Errorf("what counts: %s", d)
			}
			if said := h.lines("said"); len(said) != 0 {
				t.Errorf("said %v", said)
			}
		})
	}
}

// A word to the agent, killed at each of its steps: it is never given twice, and what was not begun is.
func TestKillDuringAWord(t *testing.T) {
	for step, want := range map[string]int{"begun": 1, "doing": 0, "done": 1, "completed": 1} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			h := declaredHouse(t, "waiting_question: [nudge, escalate]")
			h.asksSomething()
			h.killedAt(step)
			if heard := h.lines("shop/heard"); len(heard) != want {
				t.Errorf("heard %v", heard)
			}
			if d := cmp.Diff([]string{"nudge"}, h.acts()); d != "" {
				t.Errorf("what counts: %s", d)
			}
			if living := h.living(); len(living) != 1 || len(h.lines("said")) != 0 || h.entries() != 1 {
				t.Errorf("there live %v, said %v, %d entries", living, h.lines("said"), h.entries())
			}
		})
	}
}

// A human is asked, or told, killed at each step of it: exactly once, unless the message may have been on its way.
func TestKillWhileAHumanIsTold(t *testing.T) {
	for _, ladder := range []string{"ask_phone", "escalate"} {
		for _, step := range []string{"begun", "escalate-before", "escalated", "completed", "send-before", "send-not-out", "send-out", "send-after"} {
			if ladder == "escalate" && (step == "begun" || step == "completed") {
				continue // nothing is done then
			}
			t.Run(ladder+"/"+step, func(t *testing.T) {
				t.Parallel()
				h := declaredHouse(t, "waiting_question: ["+ladder+"]")
				h.asksSomething()
				h.killedAt(step)
				said := h.lines("said")
				switch {
				case step == "send-out" && len(said) == 2 && strings.Contains(said[1], "sent again"):
				case len(said) != 1 || !strings.Contains(said[0], "waits for an answer") && !strings.Contains(said[0], "waiting_question"):
					t.Errorf("said %q", said)
				}
				if n := h.entries(); n != 1 {
					t.Errorf("%d entries in the improvement log", n)
				}
			})
		}
	}
}

// What a person wishes is done once, wherever the monitor is killed.
func TestKillWhileAWishIsGranted(t *testing.T) {
	for _, step := range []string{"begun", "stopping", "killed", "stopped", "starting", "spawned", "started", "completed", "granted"} {
		t.Run("restart/"+step, func(t *testing.T) {
			t.Parallel()
			h := declaredHouse(t, "")
			h.userRequests("restart", "")
			h.killedAt(step)
			h.startedOnce()
			if identityOf(h.old).PID != 0 {
				t.Error("the old one lives")
			}
		})
	}
	for step, want := range map[string]int{"begun": 1, "doing": 0, "done": 1, "granted": 1} {
		t.Run("say/"+step, func(t *testing.T) {
			t.Parallel()
			h := declaredHouse(t, "")
			h.userRequests("say", "blue")
			h.killedAt(step)
			if heard := h.lines("shop/heard"); len(heard) != want {
				t.Errorf("heard %v", heard)
			}
		})
	}
	for _, step := range []string{"ended", "granted"} {
		t.Run("stop/"+step, func(t *testing.T) {
			t.Parallel()
			h := declaredHouse(t, "")
			h.userRequests("stop", "")
			h.killedAt(step)
			if living, starts := h.living(), h.lines("starts"); len(living)+len(starts)+len(h.lines("said")) != 0 {
				t.Errorf("there live %v, started %v, said %v", living, starts, h.lines("said"))
			}
		})
	}
}

func (h *house) userRequests(verb, text string) {
	h.t.Helper()
	_, err := Ask(h.t.Context(), Options{Home: h.home}, UserRequest{Agent: "shop", Verb: verb, Text: text, By: "ann"})
	if !errors.Is(err, ErrNobody) {
		h.t.Fatal(err)
	}
}

// A press and the place in the bot's updates are one transaction: killed before its end, Telegram tells of it again;
// killed after it, it does not. Either way it is done once.
func TestKillDuringAPress(t *testing.T) {
	for step, again := range map[string]bool{"pressing": true, "pressed": false} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			h := declaredHouse(t, "waiting_question: [escalate]")
			h.asksSomething()
			_ = h.monitor("-")
			if err := h.actor("press " + step); err == nil {
				t.Fatal("it was not killed")
			}
			if again {
				if err := h.actor("press -"); err != nil {
					t.Fatal(err)
				}
			}
			if starts := h.lines("starts"); len(starts) != 0 {
				t.Fatalf("started %v", starts)
			}
			for range 2 {
				_ = h.monitor("-")
			}
			if starts := h.waitStarts(); len(starts) != 1 || identityOf(h.old).PID != 0 {
				t.Errorf("started %v", starts)
			}
		})
	}
}

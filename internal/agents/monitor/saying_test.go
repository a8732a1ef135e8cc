package monitor

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// writes is a text to the bot that replies to nothing.
func (w *world) writes(from notify.From, command, text string) {
	w.t.Helper()
	from.Channel = "telegram"
	w.hears(func(to notify.Applier, tx *sql.Tx) error {
		return to.Say(w.t.Context(), tx, notify.Said{From: from, Command: command, Text: text})
	})
}

// lastSaid is what was told after so many messages, and how many those are then.
func (w *world) lastSaid(before int) string {
	w.t.Helper()
	w.cycle()
	return strings.Join(w.said[before:], "\n---\n")
}

var ann = notify.From{Chat: 7, User: 7, Name: "@ann", Update: 1}

// /status tells how every agent is, and what waits for a person; a text that names one tells of that one.
func TestStatusIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", patient), w.agent("blog", patient))
	w.claude("blog", 1002).prompt()
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	w.spends(10*time.Minute, time.Minute)
	c.tool("AskUserQuestion", question)
	c.is("waiting", "input needed")
	w.spends(5*time.Minute, time.Minute)
	told := len(w.said)
	w.writes(ann, "status", "")
	got := w.lastSaid(told)
	for _, want := range []string{"2 agents, 1 waits for you", "shop: waits for an answer", "Which colour?", "blog: works"} {
		if !strings.Contains(got, want) {
			t.Errorf("/status is answered without %q:\n%s", want, got)
		}
	}
	if strings.Index(got, "shop:") > strings.Index(got, "blog:") {
		t.Errorf("who waits does not come first:\n%s", got)
	}
	for command, text := range map[string]string{"": "what about blog?", "status": "BLOG"} {
		w.pass(10 * time.Second)
		told = len(w.said)
		w.writes(ann, command, text)
		if got := w.lastSaid(told); !strings.Contains(got, "blog: works") || strings.Contains(got, "shop") {
			t.Errorf("/%s %s is answered with\n%s", command, text, got)
		}
	}
	told = len(w.said)
	w.writes(ann, "status", "")
	if got := w.lastSaid(told); got != "" {
		t.Errorf("asked again at once: %s", got)
	}
}

// Whatever else is written is answered with what the bot can do, once a minute at most.
func TestOtherTextsAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", patient))
	w.cycle()
	told := len(w.said)
	for i, text := range []string{"hello?", "are you there", "start"} {
		from := ann
		from.Update = int64(i + 1)
		w.writes(from, map[bool]string{true: "start"}[text == "start"], text)
	}
	if got := w.lastSaid(told); strings.Count(got, "/status") != 2 || len(w.said) != told+1 {
		t.Errorf("answered with %q", w.said[told:])
	}
	w.pass(2 * time.Minute)
	told = len(w.said)
	from := ann
	from.Update = 9
	w.writes(from, "status", "nobody") // no such agent
	if got := w.lastSaid(told); !strings.Contains(got, "/status NAME") {
		t.Errorf("answered with %q", got)
	}
}

// A text that begins with an agent's name and a colon is given to the agent, by who may, and what became of it is told.
func TestATextForAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nstart: {nudge: "+noting("said", "{text}")+"}\n"), w.agent("blog", patient))
	w.claude("shop", 1001).prompt()
	w.claude("blog", 1002).prompt()
	w.cycle()
	told := len(w.said)
	w.writes(ann, "", "Shop: use SQLite: it is enough")
	if got := w.lastSaid(told); !strings.Contains(got, "shop was given your text") {
		t.Errorf("told %q", got)
	}
	heard := func() string {
		b, err := os.ReadFile(filepath.Join(w.dir("shop"), "said"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := heard(); got != "use SQLite: it is enough|" {
		t.Errorf("it was told %q", got)
	}
	told = len(w.said)
	w.writes(ann, "", "blog: go on")
	if got := w.lastSaid(told); !strings.Contains(got, "blog did not get your text: nudge cannot be done: no nudge command is declared") {
		t.Errorf("told %q", got)
	}
	told = len(w.said)
	w.writes(notify.From{Chat: -7, User: 8, Name: "@eve"}, "", "shop: delete it")
	if got := w.lastSaid(told); got != "" || heard() != "use SQLite: it is enough|" {
		t.Errorf("somebody in a group without a list: told %q, the agent %q", got, heard())
	}
	delete(w.living, 1001)
	w.pass(time.Minute)
	told = len(w.said)
	w.writes(ann, "", "shop: go on")
	if got := w.lastSaid(told); !strings.Contains(got, "shop did not get your text: nudge cannot be done: its process has ended") {
		t.Errorf("told %q", got)
	}
}

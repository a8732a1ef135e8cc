package incident

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

var update = flag.Bool("update", false, "write testdata/messages.txt anew")

// sample is what a monitor says of one class.
type sample struct{ class, details, action string }

// samples are all classes that a declared agent's message can have, the more common first.
var samples = []sample{
	{"crashed", "exit status 1; PID 4711 is dead", "resumed, restarted; 5 of 5 starts are used (5/1h, for this problem)"},
	{"crashed", "exit status 1; PID 4711 is dead", "resumed, restarted; a crash loop: 5 starts of this agent within 15m, for whatever problem"},
	{"exited_unfinished", "it has ended with exit status 0, and nothing marks its work as done; PID 4711 is dead", "resumed"},
	{"startup_blocked", "3m after its start there is no sign of a session; PID 4711 is alive", "restarted; nothing else is left to try"},
	{"waiting_permission", "Bash wants to run", ""},
	{"waiting_question", "\"Which of the two databases may I use?\"; PID 4711 is alive", ""},
	{"waiting_other", "Claude Code shows a dialog: trust this folder; PID 4711 is alive", ""},
	{"human_required", "integration_auth: STRIPE_KEY is missing; PID 4711 is alive", ""},
	{"auth_expired", "API Error: 401 OAuth token has expired; PID 4711 is alive", ""},
	{"rate_limited", "usage limit reached, until 18:00; PID 4711 is alive", "waited; it lasts until 2026-11-20 18:00 UTC"},
	{"api_failed", "API Error: getaddrinfo ENOTFOUND api.example, asked 3 times; PID 4711 is alive", "waited, resumed"},
	{"credit_exhausted", "API Error: 400 Your credit balance is too low; PID 4711 is alive", ""},
	{"stopped", "PID 4711 is alive, and is stopped (SIGSTOP, or Ctrl-Z at its terminal); fg in that terminal, or kill -CONT, lets it go on", "looked again"},
	{"api_backoff", "529 overloaded, attempt 6 of 10; PID 4711 is alive", "waited, told to go on"},
	{"context_exhausted", "prompt is too long; PID 4711 is alive", "a new session was begun; nothing else is left to try"},
	{"execution_error", "API Error: 400 invalid request; PID 4711 is alive", ""},
	{"model_silent", "a call to the model is open for 9m; PID 4711 is alive", "looked again, resumed, restarted; 2 of 2 starts are used (2/phase, for this problem)"},
	{"tool_hung", "Bash is open for 31m, and nothing below it works; PID 4711 is alive", "its tool was ended, restarted; nothing else is left to try"},
	{"server_hung", "it has waited 31m for pay of the MCP server till, which has reported no progress and done no work for 31m (limit 30m)",
		"its MCP server was restarted, its MCP server was restarted, restarted; 2 of 2 starts are used (2/phase, for this problem)"},
	{"waiting_server", "it has waited 1m for pay of the MCP server till, which cannot be used: the server wants a login", ""},
	{"background_task_dead", "its claude session waits for a background task (Bash: npm test) that is dead: no process of it is left, it has written nothing for " +
		"6m (limit 5m0s), and the model was not told of its end; PID 4711 is alive", "told to go on, resumed, restarted; 2 of 2 starts are used (2/phase, for this problem)"},
	{"loop", "4 times the same call of Read with the same result; PID 4711 is alive", "told to go on, a new session was begun; nothing else is left to try"},
	{"no_progress", "12000 tokens, and nothing has changed for 45m; PID 4711 is alive", ""},
	{"heartbeat_lost", "heartbeat 7m ago; PID 4711 is alive", "looked again, restarted; nothing else is left to try"},
	{"budget_exceeded", "$20.41 are spent, of 20; PID 4711 is alive", "interrupted"},
	{"orphaned", "its terminal has gone, and it goes on; PID 4711 is alive", ""},
	{"unreadable", "path \"shop\" is not absolute", ""},
	{"vanished", "it is no longer in the registry", ""},
	{"unsure", "PID 4711 is younger than the heartbeat and cannot be told from a stranger", ""},
	{"manifest", "manifest.yaml: line 3: mapping values are not allowed here (look 3 in a row)", ""},
	{"contradiction", "it says that it waits, and works; PID 4711 is alive", ""},
	{"no_evidence", "nothing shows what it does, and its process is not known (look 3 in a row)", ""},
}

// night is one incident from its beginning to its end, as messages that were sent or changed.
func night(b *strings.Builder, key Key, f Facts, over Event) {
	say := func(what string, at time.Time, m notify.Message) {
		fmt.Fprintf(b, "--- %s, at %s\n%s\n", what, at.Format("15:04"), m.Text.Body)
		for _, button := range slices.Concat(m.Buttons...) {
			fmt.Fprintf(b, "[%s]", button.Label)
		}
		if len(m.Buttons) > 0 {
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	sent := func(what string, at time.Time, effects []Effect) {
		for _, e := range effects {
			switch e := e.(type) {
			case Send:
				say(what, at, e.Message)
			case Edit:
				say(what+": the first message", at, e.Message)
			}
		}
	}
	p := Policy{Tiers: [][]string{{"me"}}}
	i, effects := Step(New("ab12cd34", key), Opened{f, "n1"}, p, t0)
	sent("opened", t0, effects)
	i, _ = Step(i, Sent{"me"}, p, t0)
	again := i.Next(p, t0)
	i, effects = Step(i, Timer{}, p, again)
	sent("reminder", again, effects)
	at := again.Add(time.Minute)
	i, effects = Step(i, Pressed{Verb: Ack, By: "@ann"}, p, at)
	sent("acknowledged", at, effects)
	at = at.Add(time.Minute)
	_, effects = Step(i, over, p, at)
	sent("resolved", at, effects)
}

// All messages to people, in one readable file. -update writes it again.
func TestEveryMessage(t *testing.T) {
	var b strings.Builder
	seen := map[string]bool{Mass: true}
	for _, s := range samples {
		seen[s.class] = true
		f := Facts{
			Name: "shop", Stall: "session_hung", Severity: SeverityOf(s.class), Since: t0.Add(-10 * time.Second), Details: s.details, Action: s.action,
			Restart: true, Resume: true, Stop: true,
		}
		switch {
		case s.class == "crashed":
			f.Used, f.Max, f.Window = 5, 5, time.Hour
			if strings.Contains(s.action, "crash loop") {
				f.Used = 4
			}
		case strings.Contains(s.action, "start"):
			f.Used, f.Max, f.Window, f.PerPhase = 2, 2, 24*time.Hour, true
		}
		if s.class == "waiting_permission" {
			f.Request, f.Input, f.Severity = "r1", "rm -rf build && make", Critical
		}
		fmt.Fprintf(&b, "=== %s\n", s.class)
		night(&b, Key{Agent: "shop", Class: s.class}, f, Recovered{"after 1 restart"})
	}
	for _, s := range []struct{ class, details, todo string }{
		{"server_paused", "exit status 3", "see why (outlive logs till@4712), then restart it (outlive restart till@4712)"},
		{"server_failed", "could not be started: no such file", ""},
		{"server_login", "the server wants a login: run outlive login https://shop.example/mcp", "log in, on the machine where it runs (outlive login https://shop.example/mcp)"},
	} {
		seen[s.class] = true
		f := Facts{Name: "The MCP server till of shop", Stall: "agent_waiting_for_input", Severity: SeverityOf(s.class), Since: t0.Add(-10 * time.Second), Details: s.details, ToDo: s.todo}
		fmt.Fprintf(&b, "=== %s\n", s.class)
		agent := "server:till:shop"
		if s.todo == "" { // a gateway's, which no agent is known to use
			agent, f.Name = "server:gateway/till:", "The MCP server gateway/till"
		}
		night(&b, Key{Agent: agent, Class: s.class}, f, Recovered{"it is ready"})
	}
	for _, s := range []struct{ class, details string }{
		{"machine_gone", "its connection was closed without a word: its outlive fleet join was killed, or the machine went down"},
		{"machine_cut_off", "its connection fell silent: the machine is off, asleep or cut off; which of these cannot be known from here"},
		{"machine_silent", "nobody answers for it; how its connection has ended is not known"},
	} {
		class, details := s.class, s.details
		seen[class] = true
		f := Facts{Name: "The machine build1", Stall: class, Severity: SeverityOf(class), Since: t0.Add(-40 * time.Second), Details: details}
		fmt.Fprintf(&b, "=== %s\n", class)
		night(&b, Key{Agent: "machine:build1", Class: class}, f, Recovered{"it is heard again"})
	}
	seen["shared_cause"] = true
	b.WriteString("=== shared_cause\n")
	night(&b, Key{Agent: "shared:account:claude:credit", Class: "shared_cause"}, Facts{
		Name: "The account of claude (credit)", Stall: "shared_cause", Severity: SeverityOf("shared_cause"), Since: t0.Add(-40 * time.Second),
		Details: "agents of 2 machines have this trouble", Members: []string{"build1/shop", "laptop/blog"},
	}, Recovered{"no agent has this trouble any more"})
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		if !seen[class] && !slices.Contains(pivTypes, class) {
			t.Errorf("%s has words, and no sample", class)
		}
		if class != Mass && !slices.Contains(pivTypes, class) && classes[class].todo == "" {
			t.Errorf("%s does not say what is asked of the reader", class)
		}
	}
	for _, class := range []string{"waiting_other", "waiting_question", "startup_blocked", "model_silent"} {
		fmt.Fprintf(&b, "=== %s, at a terminal that can be joined\n", class)
		at := slices.IndexFunc(samples, func(s sample) bool { return s.class == class })
		f := Facts{Name: "shop", Severity: Warning, Since: t0.Add(-10 * time.Second), Details: samples[at].details, Ways: Ways{Joinable: true}}
		night(&b, Key{Agent: "shop", Class: class}, f, Recovered{})
	}
	many := Facts{Name: "host this machine", Severity: Critical, Since: t0, Details: "exit status 1; PID 4711 is dead", Members: []string{"blog", "shop", "wiki"}, Action: "one of them is tried first, the others wait"}
	b.WriteString("=== many on one host\n")
	night(&b, Key{Agent: "host:this machine:crashed", Class: Mass}, many, Recovered{"one of them works again, the others follow"})
	b.WriteString("=== many of one account\n")
	many.Details = "API Error: 401 OAuth token has expired"
	night(&b, Key{Agent: "account:claude:auth_expired", Class: Mass}, many, Recovered{"one of them works again, the others follow"})
	b.WriteString("=== many, whose members have left it\n")
	night(&b, Key{Agent: "account:claude:auth_expired", Class: Mass}, many, Gone{"fewer than two of them are still in this trouble; each of those is reported separately"})
	b.WriteString("=== over, though it does not work\n")
	night(&b, Key{Agent: "shop", Class: "waiting_question", Phase: "3"}, Facts{Name: "shop", Phase: "3", Severity: Warning, Since: t0.Add(-4 * time.Hour), Details: "\"Which one?\""}, Gone{"it waits no longer, it has crashed"})
	b.WriteString("=== another request while the first is open\n")
	f := Facts{Name: "shop", Severity: Critical, Since: t0, Details: "Bash wants to run", Request: "r1", Input: "make"}
	i, _ := Step(New("ab12cd34", Key{Agent: "shop", Class: "waiting_permission"}), Opened{f, "n1"}, policy, t0)
	i, _ = Step(i, Sent{"telegram:me"}, policy, t0)
	f.Request, f.Input = "r2", "make install"
	_, effects := Step(i, Changed{f, "n2"}, policy, t0.Add(45*time.Second))
	for _, e := range effects {
		if e, ok := e.(Send); ok {
			b.WriteString(e.Message.Text.Body + "\n")
		}
	}
	b.WriteString("=== /status\n")
	standing := []Standing{
		{Name: "blog", State: "works", Since: t0.Add(-20 * time.Second)},
		{Name: "docs", State: Words("rate_limited"), Since: t0.Add(-50 * time.Minute), Details: "usage limit reached, until 18:00"},
		{Name: "shop", State: Words("waiting_question"), Since: t0.Add(-12 * time.Minute), Details: "\"Which of the two databases may I use?\"; PID 4711 is alive", Waits: true},
		{Name: "wiki", State: "has nothing to do", Since: t0.Add(-3 * time.Hour), Terminal: "ann"},
	}
	for _, list := range [][]Standing{standing, standing[:1], nil} {
		b.WriteString(Status(list, "", policy, t0).Text.Body + "\n\n")
	}
	b.WriteString(Status(nil, "registry.yaml:3:1: this list is not closed", policy, t0).Text.Body + "\n\n")
	b.WriteString("=== what a text to the bot is answered with\n")
	b.WriteString(Help().Text.Body + "\n\n" + Handed("shop", "", true).Text.Body + "\n\n" + Handed("shop", "nudge cannot be done: its process has ended", false).Text.Body + "\n\n")
	b.WriteString("=== rest\n")
	for _, w := range []Work{WorkDone, WorkLeft, WorkUnknown} {
		b.WriteString(Rested("shop", w, "its turn has ended", "Phase 2 is merged. I have stopped before the migration.").Text.Body + "\n\n")
	}
	b.WriteString("=== the PIV supervisor's own template\n")
	piv := Facts{Name: "shop", Phase: "3", Stall: "session_hung", Details: "heartbeat 16m ago; PID 4711 is alive", Action: "restarted; nothing else is left to try", Used: 2, Max: 2}
	b.WriteString(PIVMessage(piv).Text.Body + "\n\n" + PIVRecovered(piv, time.Hour).Text.Body + "\n")
	const path = "testdata/messages.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("go test ./internal/agents/incident -run EveryMessage -update writes it anew, if it is what people should read:\n%s", d)
	}
}

// pivTypes are PIV's classes, which only its own template shows.
var pivTypes = []string{"orchestrator_crashed", "session_hung", "agent_waiting_for_input", "monitor_blind"}

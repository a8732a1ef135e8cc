package incident

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// The template of PIV-11, to the letter.
func TestPIVMessages(t *testing.T) {
	f := Facts{Name: "shop", Phase: "3", Stall: "execution_error", Details: "STRIPE_KEY is missing <b>; PID 1001 is alive", Action: "none: a human is needed"}
	want := "🔴 Supervisor Escalation\n\nProject: shop\nPhase: 3\nStall Type: execution_error\n" +
		"Details: STRIPE_KEY is missing <b>; PID 1001 is alive\nAction Taken: none: a human is needed\nRestarts: 0/0"
	if d := cmp.Diff(want, PIVMessage(f).Text.Body); d != "" {
		t.Error(d)
	}
	f.Stall = "session_hung"
	if d := cmp.Diff("🟢 Recovered\n\nProject: shop\nStall Type: session_hung, after 1h0m0s", PIVRecovered(f, time.Hour).Text.Body); d != "" {
		t.Error(d)
	}
	p := Policy{Tiers: [][]string{{"telegram"}}, PIV: true}
	i := New("1", Key{Agent: "shop", Class: "execution_error"})
	i, effects := Step(i, Opened{Facts: f}, p, t0)
	if got := effects[0].(Send).Message.Text.Body; got != PIVMessage(f).Text.Body {
		t.Errorf("opened: %s", got)
	}
	i, effects = Step(i, Recovered{}, p, t0.Add(time.Hour))
	if got := effects[1].(Send).Message.Text.Body; got != PIVRecovered(f, time.Hour).Text.Body {
		t.Errorf("recovered: %s", got)
	}
	if got := Compose(i, p, t0.Add(time.Hour)).Text.Body; !strings.HasSuffix(got, "Restarts: 0/0\nStatus: resolved 13:00") {
		t.Errorf("the message afterwards: %s", got)
	}
}

// What a human reads at each turn.
func TestMessages(t *testing.T) {
	tail := "Phase: 3\nSince: 11:55 (6m)\nDetails: wants to run make\nStarts: 1 of 2 in this phase, for this problem\n\nrm -rf build && make"
	now := t0.Add(time.Minute)
	for state, want := range map[State]string{
		Open:         "🔴 shop waits for a permission\n\n" + tail,
		Acknowledged: "🔴 shop waits for a permission\n\nStatus: acknowledged by ada at 12:00, no reminders until 16:00\n" + tail,
		Resolved:     "🟢 shop works again\n\nBefore: shop waits for a permission\nStatus: resolved 12:00, 1 restart\n" + strings.Replace(tail, "6m", "5m", 1),
	} {
		if d := cmp.Diff(want, Compose(in(state), policy, now).Text.Body); d != "" {
			t.Errorf("%s: %s", state, d)
		}
	}
	status := func(i Incident) string {
		_, rest, _ := strings.Cut(Compose(i, policy, now).Text.Body, "\n\nStatus: ")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	i, _ := Step(in(Notified), Pressed{Verb: Snooze, By: "ada"}, policy, now)
	if got := status(i); got != "snoozed by ada, no reminders until 13:01" {
		t.Error(got)
	}
	i, _ = Step(in(Notified), Pressed{Verb: Restart, Nonce: "n1", By: "ada"}, policy, now)
	if got := status(i); got != "acknowledged by ada at 12:01, no reminders until 12:16; restart by ada 12:01" {
		t.Error(got)
	}
	i, _ = Step(in(Resolved), Opened{facts(), ""}, policy, now)
	if got := status(i); got != "open; came back 1×" {
		t.Error(got)
	}
	if got := Compose(in(Expired), policy, t0.Add(26*time.Hour)).Text.Body; !strings.Contains(got, "Status: open; nobody has answered, and there are no more reminders") || !strings.Contains(got, "Since: 2026-11-20 11:55 (26h5m)") {
		t.Error(got)
	}
	for class, want := range map[string]string{"unsure": "🔴 shop cannot be told from another process", "no_such_thing": "🔴 shop no such thing"} {
		if got, _, _ := strings.Cut(Compose(Incident{Key: Key{Class: class}, Facts: Facts{Name: "shop"}}, policy, t0).Text.Body, "\n"); got != want {
			t.Error(got)
		}
	}
	mass := New("2", Key{Agent: "host:alpha", Class: Mass})
	mass, _ = Step(mass, Opened{Facts: Facts{Name: "host:alpha", Members: []string{"blog", "shop", "wiki"}, Details: "all crashed"}}, policy, t0)
	want := "🔴 3 agents on alpha fail together\n\nAgents: blog, shop, wiki\nDetails: all crashed"
	if d := cmp.Diff(want, Compose(mass, policy, t0).Text.Body); d != "" {
		t.Error(d)
	}
}

// Whatever other text there is, a message with an Allow button shows everything that would run.
func TestAllowOnlyBelowTheWholeInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := facts()
		f.Request = rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(t, "request")
		f.Input = rapid.StringN(0, 3000, -1).Draw(t, "input")
		f.Details, f.Body = rapid.StringN(0, 3000, -1).Draw(t, "details"), rapid.StringN(0, 3000, -1).Draw(t, "body")
		i, _ := Step(in(Notified), Changed{Facts: f, Nonce: "n2"}, policy, t0)
		if rapid.Bool().Draw(t, "expanded") {
			i, _ = Step(i, Pressed{Verb: Details}, policy, t0)
		}
		for _, m := range []notify.Message{Compose(i, policy, t0), i.reminder(policy, t0)} {
			buttons := slices.Concat(m.Buttons...)
			allow := slices.IndexFunc(buttons, func(b notify.Button) bool { return b.Callback.Verb == string(Allow) })
			if allow < 0 {
				if f.asks() {
					t.Fatalf("nobody can allow it: %s", m.Text.Body)
				}
				continue
			}
			if m.Exact != f.Input || f.Input == "" || !strings.Contains(m.Text.Body, f.Input) || !buttons[allow].NeedsExact {
				t.Fatalf("Allow below %q, which would run %q", m.Text.Body, f.Input)
			}
		}
	})
}

// No text grows beyond what a phone shows, and none is cut within a character.
func TestLongTexts(t *testing.T) {
	f := facts()
	f.Details, f.Body, f.Input, f.Request = strings.Repeat("ä", 5000), strings.Repeat("ö", 5000), "", ""
	i := in(Notified)
	i, _ = Step(i, Changed{Facts: f}, policy, t0)
	plain := Compose(i, policy, t0).Text.Body
	i, _ = Step(i, Pressed{Verb: Details}, policy, t0)
	wide := Compose(i, policy, t0).Text.Body
	for name, text := range map[string]string{"plain": plain, "after Details": wide} {
		if n := utf8.RuneCountInString(text); n > 4000 || !utf8.ValidString(text) {
			t.Errorf("%s: %d characters", name, n)
		}
	}
	if len(wide) <= len(plain) {
		t.Error("Details shows nothing more")
	}
	_, effects := Step(in(Notified), Pressed{Verb: Restart, Nonce: "n1", By: strings.Repeat("x", 500)}, policy, t0)
	_, late := Step(in(Acknowledged), Pressed{Verb: Ack, By: strings.Repeat("x", 500)}, policy, t0)
	for _, e := range append(effects, late...) {
		if a, ok := e.(Answer); ok && utf8.RuneCountInString(a.Text) > 200 {
			t.Errorf("an answer of %d characters", utf8.RuneCountInString(a.Text))
		}
	}
}

// The morning's digest: what was held back is listed, what was sent is only counted.
func TestDigest(t *testing.T) {
	one := func(name, class string, severity Severity, opened int, over int) Incident {
		p := Policy{Tiers: [][]string{{"a"}}}
		i := New(name, Key{Agent: name, Class: class})
		i, _ = Step(i, Opened{Facts: Facts{Name: name, Severity: severity}}, p, t0.Add(time.Duration(opened)*time.Hour))
		if over > 0 {
			i, _ = Step(i, Recovered{"after 1 restart"}, p, t0.Add(time.Duration(over)*time.Hour))
		}
		return i
	}
	d := Digest{From: t0.Add(2 * time.Hour), To: t0.Add(20 * time.Hour), Incidents: []Incident{
		one("wiki", "rate_limited", Info, 1, 3), one("shop", "waiting_question", Warning, 5, 0), one("api", "crashed", Critical, 6, 7),
		one("blog", "loop", Warning, 13, 14),
	}, Tallies: []Tally{{Name: "api", Acts: 3, Starts: 2, Recoveries: 1, Told: 1}, {Name: "quiet"}}}
	want := "☀️ Digest since 2026-11-20 14:00\n\nIncidents: 4, 1 of them critical, 1 still open\napi: 3 steps taken, 2 of them starts; worked again 1×; you were told 1×\n\n" +
		"2026-11-20 13:00 wiki is rate limited: resolved 2026-11-20 15:00, after 1 restart\n" +
		"2026-11-20 17:00 shop waits for an answer: open\n" +
		"01:00 blog repeats itself: resolved 02:00, after 1 restart"
	if diff := cmp.Diff(want, d.Message(Policy{}).Text.Body); diff != "" || d.Empty() {
		t.Errorf("empty %v: %s", d.Empty(), diff)
	}
	if !(Digest{From: t0, To: t0.Add(time.Hour), Tallies: []Tally{{Name: "quiet"}}}).Empty() {
		t.Error("a night in which nothing happened is not empty")
	}
	for range 50 {
		d.Incidents = append(d.Incidents, one("more", "loop", Warning, 8, 0))
	}
	long := d.Message(Policy{}).Text.Body
	if got := long[strings.LastIndex(long, "\n\n")+2:]; strings.Count(got, "\n") != digestLimit || !strings.HasSuffix(got, "and 23 more") {
		t.Errorf("a long digest: %s", got)
	}
}

// What is asked of a person is possible: no reply where nobody hears it or nothing hands it on, no terminal where there is none.
func TestAdviceIsPossible(t *testing.T) {
	for _, tc := range []struct {
		class string
		ways  Ways
		want  string
	}{
		{"waiting_question", Ways{}, "answer by a reply to this message, or at its terminal"},
		{"waiting_question", Ways{Joinable: true, NoNudge: true}, "answer at its terminal (outlive agent attach shop)"},
		{"waiting_question", Ways{NoReplies: true}, "answer at its terminal, or by a text (outlive agent say shop TEXT)"},
		{"waiting_question", Ways{NoTerminal: true}, "answer by a reply to this message"},
		{"waiting_question", Ways{NoTerminal: true, NoReplies: true}, "answer by a text (outlive agent say shop TEXT)"},
		{"waiting_question", Ways{NoTerminal: true, NoNudge: true, NoReplies: true}, "it can be given no answer, since it has no terminal and no nudge command: end it " +
			"(outlive agent stop shop), declare one of them below its start:, and start it again (outlive agent start shop)"},
		{"waiting_other", Ways{}, "answer the dialog at its terminal"},
		{"waiting_other", Ways{NoTerminal: true}, "give it what it lacks, then start it again; it has no terminal to answer at"},
		{"startup_blocked", Ways{NoTerminal: true}, "see what it has written; it has no terminal, so that a dialog would wait in vain"},
		{"crashed", Ways{NoTerminal: true, NoNudge: true}, "find out why it has ended (outlive agent logs shop), then start it again"},
	} {
		i := Incident{Key: Key{Agent: "shop", Class: tc.class}, State: Notified, Facts: Facts{Ways: tc.ways}}
		if got := i.todo(Policy{}); got != tc.want {
			t.Errorf("%s, %+v: %q, want %q", tc.class, tc.ways, got, tc.want)
		}
		if got := ToDo(tc.class, "shop", tc.ways); strings.Contains(got, "this message") || strings.Contains(got, "attach") || got == "" {
			t.Errorf("%s, %+v, elsewhere: %q", tc.class, tc.ways, got)
		}
	}
}

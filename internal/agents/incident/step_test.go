package incident

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var policy = Policy{Tiers: [][]string{{"telegram:me", "ntfy:night"}, {"pagerduty:me"}}}

func facts() Facts {
	return Facts{
		Name: "shop", Phase: "3", Stall: "agent_waiting_for_input", Severity: Critical, Since: t0.Add(-5 * time.Minute), Details: "wants to run make",
		Input: "rm -rf build && make", Request: "r1", Restart: true, Resume: true, Stop: true, Used: 1, Max: 2, Window: 24 * time.Hour, PerPhase: true,
	}
}

// in is an incident that has come to a state by the ordinary way, at t0.
func in(state State) Incident {
	i := New("ab12cd34", Key{Agent: "shop", Class: "waiting_permission", Phase: "3"})
	i, _ = Step(i, Opened{facts(), "n1"}, policy, t0)
	switch state {
	case Open:
		return i
	case Expired:
		for k := 0; i.State != Expired && k < 20; k++ {
			i, _ = Step(i, Sent{"telegram:me"}, policy, t0)
			i, _ = Step(i, Timer{}, policy, i.Next(policy, t0))
		}
		return i
	}
	i, _ = Step(i, Sent{"telegram:me"}, policy, t0)
	switch state {
	case Acknowledged:
		i, _ = Step(i, Pressed{Verb: Ack, By: "ada"}, policy, t0)
	case Resolved:
		i, _ = Step(i, Recovered{"1 restart"}, policy, t0)
	}
	return i
}

// kinds are the effects in short.
// setTimer says when a [Timer] is due from then on. Zero: none is.
type setTimer struct{ At time.Time }

func (setTimer) effect() {}

// timed is [Step], and when the next [Timer] is due, if that is news.
func timed(i Incident, e Event, p Policy, now time.Time) (Incident, []Effect) {
	due := i.Next(p, now)
	after, effects := Step(i, e, p, now)
	_, timer := e.(Timer)
	if next := after.Next(p, now); !next.Equal(due) || timer && !next.IsZero() {
		effects = append(effects, setTimer{next})
	}
	return after, effects
}

func kinds(effects []Effect) string {
	var list []string
	for _, e := range effects {
		switch e := e.(type) {
		case Send:
			list = append(list, "send "+strings.Join(e.Channels, "+"))
		case Edit:
			list = append(list, "edit")
		case Answer:
			list = append(list, fmt.Sprintf("answer %q", e.Text))
		case Do:
			list = append(list, fmt.Sprintf("do %s %s", e.Verb, e.Request))
		case setTimer:
			if e.At.IsZero() {
				list = append(list, "no timer")
			} else {
				list = append(list, "timer "+e.At.Format("15:04"))
			}
		}
	}
	return strings.Join(list, ", ")
}

// Every event in every state, a minute after the state was reached.
func TestEveryEventInEveryState(t *testing.T) {
	more := facts()
	more.Details, more.Action = "wants to run make test", "asked"
	other := facts()
	other.Request = "r2"
	events := []struct {
		name string
		e    Event
	}{
		{"opened again", Opened{facts(), ""}},
		{"changed", Changed{more, ""}},
		{"another request", Changed{other, "n2"}},
		{"sent", Sent{"telegram:me"}},
		{"failed", Failed{"telegram:me"}},
		{"ack", Pressed{Verb: Ack, By: "bob"}},
		{"snooze", Pressed{Verb: Snooze, By: "bob"}},
		{"details", Pressed{Verb: Details, By: "bob"}},
		{"allow", Pressed{Verb: Allow, Nonce: "n1", By: "bob", Next: "n9"}},
		{"allow, stale", Pressed{Verb: Allow, Nonce: "n0", By: "bob"}},
		{"restart", Pressed{Verb: Restart, Nonce: "n1", By: "bob", Next: "n9"}},
		{"nonsense", Pressed{Verb: "format", Nonce: "n1", By: "bob"}},
		{"early timer", Timer{}},
		{"recovered", Recovered{"1 restart"}},
		{"gone", Gone{"paused"}},
	}
	const (
		both    = "telegram:me+ntfy:night"
		allOf   = both + "+pagerduty:me"
		isOld   = `answer "This button is out of date: use those of the newest message"`
		cannot  = `answer "That is not possible here, or not any more"`
		details = `answer "The message shows more now", edit`
	)
	want := map[State]map[string]string{
		Open: {
			"opened again": "open: ", "changed": "open: edit", "another request": "open: edit, send " + both + ", timer 12:16",
			"sent": "notified: ", "failed": "open: ",
			"ack":     `acknowledged: answer "acknowledged until 16:01", edit, timer 16:01`,
			"snooze":  `acknowledged: answer "snoozed until 13:01", edit, timer 13:01`,
			"details": "open: " + details, "allow": `acknowledged: do allow r1, answer "Allowed", edit, timer 12:16`, "allow, stale": "open: " + isOld,
			"restart":  `acknowledged: do restart , answer "It is restarted", edit, timer 12:16`,
			"nonsense": "open: " + cannot, "early timer": "open: timer 12:15",
			"recovered": "resolved: edit, send " + both + ", no timer", "gone": "resolved: edit, no timer",
		},
		Acknowledged: {
			"opened again": "acknowledged: ", "changed": "acknowledged: edit", "another request": "notified: edit, send " + both + ", timer 12:16",
			"sent": "acknowledged: ", "failed": "acknowledged: ",
			"ack":     `acknowledged: answer "already acknowledged by ada 12:00"`,
			"snooze":  `acknowledged: answer "snoozed until 13:01", edit, timer 13:01`,
			"details": "acknowledged: " + details, "allow": `acknowledged: do allow r1, answer "Allowed", edit, timer 12:16`, "allow, stale": "acknowledged: " + isOld,
			"restart":  `acknowledged: do restart , answer "It is restarted", edit, timer 12:16`,
			"nonsense": "acknowledged: " + cannot, "early timer": "acknowledged: timer 16:00",
			"recovered": "resolved: edit, send " + both + ", no timer", "gone": "resolved: edit, no timer",
		},
		Resolved: {
			"opened again": "notified: edit, timer 12:16", "another request": "resolved: ", "changed": "resolved: ",
			"sent": "resolved: ", "failed": "resolved: ", "early timer": "resolved: ", "recovered": "resolved: ", "gone": "resolved: ",
		},
		Expired: {
			"opened again": "expired: ", "changed": "expired: edit", "another request": "notified: edit, send " + allOf + ", timer 14:46",
			"sent": "expired: ", "failed": "expired: ",
			"ack":     `acknowledged: answer "acknowledged until 18:16", edit, timer 18:16`,
			"snooze":  `acknowledged: answer "snoozed until 15:16", edit, timer 15:16`,
			"details": "expired: " + details, "allow": `acknowledged: do allow r1, answer "Allowed", edit, timer 14:31`, "allow, stale": "expired: " + isOld,
			"restart":  `acknowledged: do restart , answer "It is restarted", edit, timer 14:31`,
			"nonsense": "expired: " + cannot, "early timer": "expired: ",
			"recovered": "resolved: edit, send " + allOf, "gone": "resolved: edit",
		},
	}
	want[Notified] = map[string]string{}
	for name, w := range want[Open] {
		want[Notified][name] = strings.Replace(w, "open: ", "notified: ", 1)
	}
	for _, press := range []string{"ack", "snooze", "details", "allow", "allow, stale", "restart", "nonsense"} {
		want[Resolved][press] = `resolved: answer "already resolved 12:00"`
	}
	for _, state := range []State{Open, Notified, Acknowledged, Resolved, Expired} {
		for _, ev := range events {
			t.Run(string(state)+"/"+ev.name, func(t *testing.T) {
				i := in(state)
				if i.State != state {
					t.Fatalf("state %s, want %s", i.State, state)
				}
				now := t0.Add(time.Minute)
				if state == Expired {
					now = i.Rang.Add(31 * time.Minute)
				}
				before := i
				after, effects := timed(i, ev.e, policy, now)
				if d := cmp.Diff(want[state][ev.name], string(after.State)+": "+kinds(effects)); d != "" {
					t.Error(d)
				}
				if d := cmp.Diff(before, i); d != "" {
					t.Errorf("the incident it was given has changed: %s", d)
				}
				data, err := json.Marshal(after)
				var again Incident
				if err := json.Unmarshal(data, &again); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(after, again); d != "" || err != nil {
					t.Errorf("it does not outlast a kill: %v %s", err, d)
				}
			})
		}
	}
}

// story plays timers on their own until end, and the events at their minutes, and writes down what happens.
func story(p Policy, f Facts, events map[int]Event, end int) (Incident, []string) {
	i := New("ab12cd34", Key{Agent: "shop", Class: "waiting_permission"})
	var lines []string
	var timer time.Time
	for minute := 0; minute <= end; minute++ {
		now := t0.Add(time.Duration(minute) * time.Minute)
		var list []Event
		if minute == 0 {
			list = append(list, Opened{f, "n1"})
		}
		if e := events[minute]; e != nil {
			list = append(list, e)
		}
		if !timer.IsZero() && !now.Before(timer) {
			timer = time.Time{}
			list = append(list, Timer{})
		}
		for _, e := range list {
			var effects []Effect
			i, effects = timed(i, e, p, now)
			for _, effect := range effects {
				if s, ok := effect.(setTimer); ok {
					timer = s.At
					continue
				}
				lines = append(lines, fmt.Sprintf("%s %s", now.Format("15:04"), kinds([]Effect{effect})))
			}
		}
	}
	return i, lines
}

func TestStories(t *testing.T) {
	warning := facts()
	warning.Severity = Warning
	info := facts()
	info.Severity = Info
	second := facts()
	second.Request = "r2"
	noisy := policy
	noisy.Repeat, noisy.Max = 5*time.Minute, 2
	single := Policy{Tiers: [][]string{{"telegram:me"}}, Repeat: -1}
	night := policy
	night.Quiet = []Quiet{{11 * 60, 13 * 60}}
	const all = "telegram:me+ntfy:night+pagerduty:me"
	for _, c := range []struct {
		name   string
		p      Policy
		f      Facts
		events map[int]Event
		end    int
		want   []string
		state  State
	}{
		{"nobody answers", policy, facts(), map[int]Event{1: Sent{"telegram:me"}}, 300, []string{
			"12:00 send telegram:me+ntfy:night", "12:15 edit", "12:15 send pagerduty:me",
			"12:45 send " + all, "13:15 send " + all, "13:45 send " + all, "14:15 edit",
		}, Expired},
		{"repeats come before the next tier", noisy, facts(), nil, 60, []string{
			"12:00 send telegram:me+ntfy:night", "12:05 send telegram:me+ntfy:night", "12:10 send telegram:me+ntfy:night",
			"12:15 edit", "12:15 send pagerduty:me", "12:30 edit",
		}, Expired},
		{"no channel of the first tier works", policy, facts(), map[int]Event{2: Failed{"ntfy:night"}, 3: Failed{"telegram:me"}}, 20, []string{
			"12:00 send telegram:me+ntfy:night", "12:03 edit", "12:03 send pagerduty:me",
		}, Open},
		{"an acknowledgement lapses", single, facts(), map[int]Event{5: Pressed{Verb: Ack, By: "ada"}}, 280, []string{
			"12:00 send telegram:me", `12:05 answer "acknowledged until 16:05"`, "12:05 edit", "16:05 edit", "16:05 send telegram:me", "16:20 edit",
		}, Expired},
		{"snoozed for an hour", single, facts(), map[int]Event{5: Pressed{Verb: Snooze, By: "ada"}}, 70, []string{
			"12:00 send telegram:me", `12:05 answer "snoozed until 13:05"`, "12:05 edit", "13:05 edit", "13:05 send telegram:me",
		}, Open},
		{"night, not critical", night, warning, nil, 60, []string{"13:00 send telegram:me+ntfy:night"}, Open},
		{"night, over before the morning", night, warning, map[int]Event{30: Recovered{}}, 90, nil, Resolved},
		{"night, critical", night, facts(), map[int]Event{5: Recovered{}}, 90, []string{
			"12:00 send telegram:me+ntfy:night", "12:05 edit", "12:05 send telegram:me+ntfy:night",
		}, Resolved},
		{"night, it becomes critical", night, warning, map[int]Event{10: Changed{facts(), ""}}, 10, []string{"12:10 send telegram:me+ntfy:night"}, Open},
		{"for the digest only", policy, info, nil, 300, nil, Open},
		{"nobody to tell", Policy{}, facts(), nil, 300, nil, Open},
		{"it flaps", single, facts(), map[int]Event{1: Recovered{}, 3: Opened{facts(), "n2"}, 5: Recovered{}, 8: Opened{facts(), "n3"}, 9: Recovered{}}, 60, []string{
			"12:00 send telegram:me", "12:01 edit", "12:01 send telegram:me", "12:03 edit", "12:05 edit", "12:08 edit", "12:09 edit",
		}, Resolved},
		{"acknowledged, and it fails anew after it worked again", single, facts(), map[int]Event{
			1: Pressed{Verb: Ack, By: "ada"}, 3: Recovered{}, 6: Opened{facts(), "n2"},
		}, 8, []string{
			"12:00 send telegram:me", `12:01 answer "acknowledged until 16:01"`, "12:01 edit", "12:03 edit", "12:03 send telegram:me",
			"12:06 edit", "12:06 send telegram:me",
		}, Open},
		{"acknowledged, and out of sight for a while", single, facts(), map[int]Event{
			1: Pressed{Verb: Ack, By: "ada"}, 3: Gone{}, 6: Opened{facts(), "n2"},
		}, 8, []string{
			"12:00 send telegram:me", `12:01 answer "acknowledged until 16:01"`, "12:01 edit", "12:03 edit", "12:06 edit",
		}, Acknowledged},
		{"the next permission is asked for although the last was given", single, facts(), map[int]Event{
			1: Pressed{Verb: Allow, Nonce: "n1", By: "ada", Next: "n2"}, 2: Changed{facts(), ""}, 3: Recovered{}, 4: Opened{second, "n3"},
		}, 5, []string{
			"12:00 send telegram:me", "12:01 do allow r1", `12:01 answer "Allowed"`, "12:01 edit",
			"12:03 edit", "12:04 edit", "12:04 send telegram:me",
		}, Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, lines := story(c.p, c.f, c.events, c.end)
			if d := cmp.Diff(c.want, lines); d != "" {
				t.Error(d)
			}
			if i.State != c.state {
				t.Errorf("state %s, want %s", i.State, c.state)
			}
		})
	}
}

// A button that does something works once, and only for what its message shows.
func TestOneTimeButtons(t *testing.T) {
	i := in(Notified)
	press := func(v Verb, nonce, next string) string {
		var effects []Effect
		i, effects = timed(i, Pressed{Verb: v, Nonce: nonce, By: "ada", Next: next}, policy, t0.Add(time.Minute))
		return kinds(effects[:min(2, len(effects))])
	}
	for _, c := range []struct {
		verb        Verb
		nonce, next string
		want        string
	}{
		{Stop, "", "x", `answer "This button is out of date: use those of the newest message"`},
		{Deny, "n1", "n2", `do deny r1, answer "Denied"`},
		{Deny, "n1", "n3", `answer "already done: deny by ada 12:01"`},
		{Allow, "n1", "n3", `answer "already done: deny by ada 12:01"`},
		{Allow, "n2", "n3", `answer "That is not possible here, or not any more"`},
		{Restart, "n2", "n2", `do restart , answer "It is restarted"`},
		{Restart, "n2", "n4", `answer "already done: restart by ada 12:01"`},
		{Stop, "n2", "n4", `answer "already done: restart by ada 12:01"`},
		{Stop, "", "n4", `answer "This button is out of date: use those of the newest message"`},
	} {
		if got := press(c.verb, c.nonce, c.next); got != c.want {
			t.Errorf("%s with %q: %s, want %s", c.verb, c.nonce, got, c.want)
		}
	}
	other := facts()
	other.Request = "r2"
	i = in(Notified)
	i, _ = Step(i, Changed{other, ""}, policy, t0)
	if got := press(Allow, "n1", "n2"); strings.HasPrefix(got, "do") {
		t.Errorf("a press on the message of another request was taken for this one: %s", got)
	}
	for _, b := range i.buttons(policy) {
		if verb := Verb(b.Callback.Verb); verb.Acts() {
			t.Errorf("a button %s without a word of its own", verb)
		}
	}
}

func TestContinues(t *testing.T) {
	k := Key{Agent: "shop", Class: "crashed", Phase: "3"}
	open := New("1", k)
	open.Opened = t0.Add(-time.Hour)
	over := open
	over.State, over.Resolved = Resolved, t0
	for _, c := range []struct {
		name string
		i    Incident
		k    Key
		at   time.Duration
		want bool
	}{
		{"open", open, k, time.Hour, true},
		{"another phase", open, Key{"shop", "crashed", "4"}, 0, false},
		{"another class", open, Key{"shop", "loop", "3"}, 0, false},
		{"another agent", open, Key{"blog", "crashed", "3"}, 0, false},
		{"only just over", over, k, 9 * time.Minute, true},
		{"over", over, k, 10 * time.Minute, false},
	} {
		if got := c.i.Continues(c.k, t0.Add(c.at)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	after, effects := timed(over, Opened{facts(), "n"}, policy, t0.Add(time.Hour))
	if after.State != Resolved || len(effects) != 0 {
		t.Errorf("an incident that is long over was opened again: %v", kinds(effects))
	}
}

func TestBegan(t *testing.T) {
	for name, tc := range map[string]struct{ since, want time.Time }{
		"watched for a while first":     {t0.Add(-time.Minute), t0.Add(-time.Minute)},
		"not known":                     {time.Time{}, t0},
		"again, while it is still open": {t0.Add(time.Hour), t0},
	} {
		if got := (Incident{Opened: t0, Facts: Facts{Since: tc.since}}).Began(); !got.Equal(tc.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestButtons(t *testing.T) {
	verbs := func(i Incident) (list []Verb) {
		for _, b := range slices.Concat(Compose(i, policy, t0).Buttons...) {
			list = append(list, Verb(b.Callback.Verb))
		}
		return list
	}
	full := []Verb{Allow, Deny, Ack, Restart, Resume, Snooze, Stop, Details}
	if d := cmp.Diff(full, verbs(in(Notified))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(slices.DeleteFunc(slices.Clone(full), func(v Verb) bool { return v == Ack }), verbs(in(Acknowledged))); d != "" {
		t.Error(d)
	}
	if got := verbs(in(Resolved)); got != nil {
		t.Errorf("after the end: %v", got)
	}
	bare := in(Notified)
	bare.Facts = Facts{Name: "shop"}
	if d := cmp.Diff([]Verb{Ack, Snooze, Details}, verbs(bare)); d != "" {
		t.Error(d)
	}
}

// What an agent waits for may be told a moment before its request is known: the buttons come into that message, and nobody is called a second
// time. A later question calls again, also where the first had no request.
func TestRequestThatIsSeenLate(t *testing.T) {
	for since, want := range map[time.Duration]string{-time.Second: "edit", 30 * time.Second: "edit, send telegram:me+ntfy:night"} {
		f := facts()
		f.Since, f.Request, f.Input = t0.Add(-time.Second), "", ""
		i, _ := Step(New("ab12cd34", Key{Agent: "shop", Class: "waiting_permission"}), Opened{f, ""}, policy, t0)
		i, _ = Step(i, Sent{"telegram:me"}, policy, t0)
		f = facts()
		f.Since = t0.Add(since)
		i, effects := timed(i, Changed{f, "n1"}, policy, t0.Add(31*time.Second))
		if got := kinds(effects); !strings.HasPrefix(got, want+", timer") {
			t.Errorf("it waits since %s: %s, want %s", since, got, want)
		}
		if i.Facts.Request != "r1" || i.Nonce != "n1" {
			t.Errorf("the request is not the one that is shown: %+v", i)
		}
	}
}

// An incident that is opened again waits for what comes of its new message: that an earlier one was refused says nothing of this one.
func TestReopenedIsNotFailing(t *testing.T) {
	i, effects := in(Open), []Effect(nil)
	for _, e := range []Event{Failed{"telegram:me"}, Failed{"ntfy:night"}, Gone{"another machine tells of it"}, Opened{facts(), "n2"}} {
		i, effects = Step(i, e, policy, t0)
	}
	if i.State != Open || len(i.Failing) != 0 || !strings.Contains(kinds(effects), "edit") {
		t.Errorf("it is %s, failing are %q, and what is done: %s", i.State, i.Failing, kinds(effects))
	}
}

// Who was told is not told again where another version of outlive says the same in other words. News are told by any version.
func TestOtherWordsOfAnotherVersion(t *testing.T) {
	learn := func(i Incident, version string, change func(*Facts)) (after Incident, inPlace bool) {
		t.Helper()
		f, p := i.Facts, policy
		change(&f)
		p.Version = version
		after, effects := Step(i, Opened{Facts: f}, p, t0.Add(time.Minute))
		if len(effects) != 1 {
			t.Fatalf("version %q: %s", version, kinds(effects))
		}
		edit, ok := effects[0].(Edit)
		if !ok {
			t.Fatalf("version %q: %s", version, kinds(effects))
		}
		return after, edit.InPlace
	}
	words := func(text string) func(*Facts) {
		return func(f *Facts) { f.Details, f.Action, f.ToDo, f.NoReplies = text, text, text, !f.NoReplies }
	}
	i, inPlace := learn(in(Notified), "2", words("the same in other words"))
	if !inPlace {
		t.Error("another version's words are a message of their own")
	}
	if i, inPlace = learn(i, "2", words("a code for the login")); inPlace {
		t.Error("what the same version says later is no message")
	}
	if _, inPlace = learn(i, "3", func(f *Facts) { f.Used++ }); inPlace {
		t.Error("what is news is no message, since another version tells it")
	}
}

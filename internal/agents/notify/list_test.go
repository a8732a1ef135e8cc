package notify

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// asks is the request of an agent with a number for a permission, as a message and as a line.
func asks(agent, input string) Message {
	n, _ := strconv.Atoi(strings.TrimPrefix(agent, "agent"))
	id := fmt.Sprintf("inc%05d", n)
	buttons := func(suffix string) []Button {
		return []Button{
			{Label: "Allow" + suffix, NeedsExact: true, Callback: Callback{id, "allow", "aaaaaa"}}, {Label: "Deny" + suffix, Callback: Callback{id, "deny", "aaaaaa"}},
		}
	}
	return Message{
		Key: "incident/" + id, Thread: id, Text: Text{Body: agent + " waits for a permission\n\n" + input}, Exact: input, Buttons: [][]Button{buttons("")},
		Line: Line{Kind: "permission", Mark: "🔴", Title: "agents wait for a permission", Text: agent + ": " + input, Buttons: buttons(" " + agent)},
	}
}

// answered is the request once it was answered.
func answered(agent string) Message {
	m := asks(agent, "")
	m.Key, m.Text, m.Exact, m.Buttons = m.Key+"/2", Text{Body: agent + " works again"}, "", nil
	m.Line.Text, m.Line.Over, m.Line.Buttons = agent+": resolved", true, nil
	return m
}

// What asks within a second is one message with a line and buttons for each, also as the answers come in; and it rings once.
func TestSimultaneousRequestsAreOneMessage(t *testing.T) {
	f := newFakeTelegram(t)
	o := outbox(t, database(t), map[string]Channel{"me": f.channel(t)})
	for n := range 40 {
		put(t, o, "me", asks(fmt.Sprint("agent", n), fmt.Sprint("npm run build-", n)))
		next, err := o.Deliver(t.Context(), "me", begin.Add(time.Duration(n)*20*time.Millisecond))
		if want := begin.Add(gatherTime); err != nil || !next.Equal(want) {
			t.Fatalf("request %d: next %v, %v, want %v", n, next, err, want)
		}
	}
	now := begin.Add(gatherTime)
	if next, err := o.Deliver(t.Context(), "me", now); err != nil || !next.IsZero() {
		t.Fatalf("next %v, %v", next, err)
	}
	list := f.messages()
	if len(list) != 1 || !strings.HasPrefix(list[0].Text, "🔴 40 agents wait for a permission\n\n• agent0: npm run build-0\n• agent1: npm run build-1\n") || len(list[0].Data) != 80 {
		t.Fatalf("%d messages: %+v", len(list), list)
	}
	for n := range 3 {
		put(t, o, "me", answered(fmt.Sprint("agent", n)))
	}
	run(t, o, "me", 10)
	list = f.messages()
	if len(list) != 1 || f.edits != 1 || !strings.HasPrefix(list[0].Text, "🔴 37 of 40 agents wait for a permission\n\n• agent0: resolved\n") || len(list[0].Data) != 74 {
		t.Errorf("%d messages, %d edits: %+v", len(list), f.edits, list)
	}
	for n := range 40 {
		m := answered(fmt.Sprint("agent", n))
		m.Key += "/3"
		put(t, o, "me", m)
	}
	run(t, o, "me", 10)
	if list = f.messages(); len(list) != 1 || f.edits != 2 || !strings.HasPrefix(list[0].Text, "⚪ Over: 40 agents wait for a permission\n") || len(list[0].Data) != 0 {
		t.Errorf("%d messages, %d edits: %+v", len(list), f.edits, list)
	}
}

// One request alone is the message that it always was, a second later; what another channel gets one by one stays so.
func TestOneRequestIsNoList(t *testing.T) {
	f, r := newFakeTelegram(t), &recorder{}
	o := outbox(t, database(t), map[string]Channel{"me": f.channel(t), "night": r})
	put(t, o, "me", asks("agent1", "make"))
	run(t, o, "me", 5)
	if got := bodies(f); got != "42 agent1 waits for a permission\n\nmake" {
		t.Error(got)
	}
	for n := range 2 {
		put(t, o, "night", asks(fmt.Sprint("agent", n), "make"))
	}
	run(t, o, "night", 5)
	if got := strings.Join(r.said, "; "); got != "agent0 waits for a permission\n\nmake; agent1 waits for a permission\n\nmake" {
		t.Error(got)
	}
}

// A list that is rejected, or sent by one who was killed, loses none of its requests.
func TestAListThatFails(t *testing.T) {
	f, db := newFakeTelegram(t), database(t)
	o := outbox(t, db, map[string]Channel{"me": f.channel(t)})
	for n := range 3 {
		put(t, o, "me", asks(fmt.Sprint("agent", n), "make"))
	}
	f.then(apiError(400, "Bad Request: reply markup is wrong", ""))
	run(t, o, "me", 10)
	want := "42 agent0 waits for a permission\n\nmake; 42 🔴 2 agents wait for a permission\n\n• agent1: make\n• agent2: make"
	if got := bodies(f); got != want {
		t.Errorf("after a rejection: %s\nwant %s", got, want)
	}
	for n := range 2 {
		put(t, o, "me", asks(fmt.Sprint("agent", 7+n), "make"))
	}
	f.then(unanswered)
	_, _ = o.Deliver(t.Context(), "me", begin.Add(time.Hour))
	_, _ = o.Deliver(t.Context(), "me", begin.Add(time.Hour+gatherTime))
	o = outbox(t, db, map[string]Channel{"me": f.channel(t)})
	run(t, o, "me", 10)
	if got := bodies(f); !strings.HasSuffix(got, "• agent7: make\n• agent8: make; 42 🔴 2 agents wait for a permission\n\n• agent7: make\n• agent8: make (again)") {
		t.Errorf("after a kill: %s", got)
	}
}

// A reply to a list is about no agent in particular, and is known as one to a message of ours.
func TestAReplyToAList(t *testing.T) {
	f, db := newFakeTelegram(t), listenable(t)
	o := outbox(t, db, map[string]Channel{"me": f.channel(t)})
	for n := range 2 {
		put(t, o, "me", asks(fmt.Sprint("agent", n), "make"))
	}
	run(t, o, "me", 10)
	u, _ := listener(t, db, f.Client(), f.URL, &notebook{})
	u.opts.Own = "me"
	f.reply(7, 5, 42, 1, "agent1: yes")
	f.press(8, 5, 42, 1, "v1:inc00001:allow:aaaaaa")
	if err := u.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := done(t, db); got != "7 / agent1: yes by Ada in 42: 42/1 of me/; 8 allow aaaaaa by @ada in 42: 42/1 of me/" {
		t.Error(got)
	}
}

// However long and odd the requests are: each is in one list that fits, and what is not shown in full is not allowed from there.
func TestAListShowsWhatItsButtonsAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(200, 4000).Draw(t, "limit")
		parts := []string{"make", "\n", "é", "💥", "PASSWORD=" + "hunter2", "• agent1: make", strings.Repeat("long ", 30)}
		var list []part
		for n := range rapid.IntRange(2, listMost).Draw(t, "agents") {
			input := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 12).Draw(t, "input"), " ")
			m := asks(fmt.Sprint("agent", n), input)
			m.Line.Note = "Each in full"
			list = append(list, part{id: int64(n), message: m.redacted()})
		}
		fits := fitting(list, limit)
		if fits == nil {
			fits = list[:2] // an edit of a list that has become too long
		}
		m := combined(fits[0].message, fits, limit)
		if units(m.Text.Body) > limit {
			t.Fatalf("%d units, %d are allowed", units(m.Text.Body), limit)
		}
		allowed := map[string]bool{}
		for _, row := range m.Buttons {
			for _, b := range row {
				allowed[b.Label] = true
			}
		}
		for _, p := range fits {
			agent, _, _ := strings.Cut(p.message.Line.Text, ":")
			line := "• " + p.message.Line.Text
			whole := strings.Contains(m.Text.Body, line) && len(p.message.row()) == 2
			if allowed["Allow "+agent] && !whole {
				t.Fatalf("%s may be allowed below %q, without %q", agent, m.Text.Body, line)
			}
			if len(fits) > 2 && whole && !allowed["Allow "+agent] {
				t.Fatalf("%s may not be allowed below %q", agent, m.Text.Body)
			}
		}
	})
}

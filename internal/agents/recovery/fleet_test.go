package recovery

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

func agentNames(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("a%02d", i))
	}
	return list
}

// Agents start at once as far as their host has room, and each gets its turn in the order in which it asked, whatever the order
// of the looks.
func TestTurnsAreFair(t *testing.T) {
	names := agentNames(20)
	w := newFleet(names...)
	for i, n := range names { // far enough apart to be no mass
		w.agents[n].problem.Since = t0.Add(time.Duration(-i) * time.Hour)
		w.agents[n].problem.Class, w.agents[n].problem.Stall = "crashed", stallCrashed
	}
	w.tick(names) // they ask in this order
	slices.Reverse(names)
	for range 10 {
		w.now = w.now.Add(5 * time.Second)
		w.tick(names)
	}
	got := map[string][]string{}
	for _, a := range w.log {
		at := a.At.Sub(t0).String()
		got[at] = append(got[at], a.Agent)
		slices.Sort(got[at])
	}
	all := agentNames(20)
	if d := cmp.Diff(map[string][]string{"0s": all[:6], "10s": all[6:12], "20s": all[12:18], "30s": all[18:]}, got); d != "" {
		t.Error(d)
	}
	w.least(t)
}

// An account whose starts show nothing holds up only its own agents, also those that asked later than they.
func TestAFullAccountHoldsUpNobody(t *testing.T) {
	names := agentNames(10)
	w := newFleet(names...)
	for i, n := range names {
		w.fail(n, "crashed", stallCrashed)
		w.agents[n].problem.Since = t0.Add(time.Duration(-i) * time.Hour)
		if w.agents[n].problem.Account = "me"; i >= 7 {
			w.agents[n].problem.Account = "you"
		}
	}
	w.tick(names)
	var first []string
	for _, a := range w.log {
		first = append(first, a.Agent)
	}
	if d := cmp.Diff([]string{"a00", "a01", "a02", "a07", "a08", "a09"}, first); d != "" {
		t.Error(d)
	}
	w.least(t)
}

// Whoever is up makes room for the next at once, in the look that sees it.
func TestNewEvidenceMakesRoom(t *testing.T) {
	w := newFleet(agentNames(4)...)
	for i, n := range w.names() {
		w.fail(n, "crashed", stallCrashed)
		w.agents[n].problem.Account = "me"
		w.agents[n].problem.Since = t0.Add(time.Duration(-i) * time.Hour)
	}
	w.tick(w.names())
	w.now = w.now.Add(time.Second)
	w.recover("a00")
	w.tick(w.names())
	if len(w.log) != 4 || w.log[3].Agent != "a03" {
		t.Errorf("%v, waiting %v", w.log, w.f.Waiting)
	}
	w.least(t)
}

// Who says how often anything may be done at all is obeyed.
func TestALimitOfAllAgents(t *testing.T) {
	w := newFleet("a", "b")
	w.shares(FleetPolicy{Global: Budget{Max: 1, Window: time.Minute}})
	for i, n := range w.names() {
		w.fail(n, "crashed", stallCrashed)
		w.agents[n].problem.Since = t0.Add(time.Duration(-i) * time.Hour)
	}
	w.run(60 * time.Second)
	if len(w.log) != 1 {
		t.Errorf("within a minute: %v", w.log)
	}
	w.run(5 * time.Second)
	if len(w.log) != 2 || w.log[1].Agent != "b" {
		t.Errorf("%v", w.log)
	}
}

// Who came back by itself, or whose act was not done, holds up nobody.
func TestTurnsAreGivenBack(t *testing.T) {
	w := newFleet("a", "b", "c")
	w.shares(FleetPolicy{HostStarts: 1, StartFor: time.Minute})
	for i, n := range w.names() {
		w.fail(n, "crashed", stallCrashed)
		w.agents[n].problem.Since = t0.Add(time.Duration(-i) * time.Hour)
	}
	w.tick(w.names())
	if w.log[0].Agent != "a" || len(w.f.Waiting) != 2 {
		t.Fatalf("%v, queue %v", w.log, w.f.Waiting)
	}
	w.f = w.f.Refund(w.log[0]) // the last look before the act saw that it had come back
	w.log[0].Refunded = true
	w.agents["a"].h.Acts[0].Refunded = true
	w.recover("a")
	w.recover("b")
	w.now = w.now.Add(5 * time.Second)
	w.tick(w.names())
	if len(w.log) != 2 || w.log[1].Agent != "c" || len(w.f.Waiting) != 0 {
		t.Errorf("%v, queue %v", w.log, w.f.Waiting)
	}
	if got := w.agents["a"].h.counted(); len(got) != 0 {
		t.Errorf("what was not done counts: %v", got)
	}
}

// A clock that was set back makes nobody wait for it.
func TestClockSetBack(t *testing.T) {
	w := newFleet("a", "b")
	w.fail("a", "crashed", stallCrashed)
	w.tick(w.names())
	w.now = w.now.Add(-48 * time.Hour)
	w.fail("a", "crashed", stallCrashed)
	w.fail("b", "crashed", stallCrashed)
	w.tick(w.names())
	if len(w.log) != 3 {
		t.Errorf("after the clock was set back: %v", w.log)
	}
}

// Five agents of one host die together: a human is told once, one is tried, and when it works the others follow.
func TestMassOfOneHost(t *testing.T) {
	names := agentNames(5)
	w := newFleet(names...)
	for i, n := range names {
		w.agents[n].problem.Host = "alpha"
		w.agents[n].deaf = false
		w.fail(n, "crashed", stallCrashed)
		w.agents[n].problem.Since = t0.Add(time.Duration(-i) * time.Second)
	}
	w.agents["a01"].deaf = true // the one that is tried first
	w.run(4 * time.Minute)
	if d := cmp.Diff([]string{"host:alpha:crashed"}, w.masses); d != "" || len(w.told) != 5 {
		t.Errorf("told %v of %v", w.told, w.masses)
	}
	if len(w.log) != 1 || w.log[0].Agent != "a01" {
		t.Errorf("in the first minutes, all must wait for one: %v", w.log)
	}
	w.run(20 * time.Minute) // its turn passes on, and the next one works
	for _, n := range names {
		if n != "a01" && w.agents[n].problem.Class != "" {
			t.Errorf("%s was not let go: %v", n, w.log)
		}
	}
	if len(w.masses) != 1 {
		t.Errorf("told %v", w.masses)
	}
	w.recover("a01")
	w.run(10 * time.Minute)
	if len(w.f.Masses) != 0 {
		t.Errorf("it is not over: %+v", w.f.Masses)
	}
	w.least(t)
}

func TestWhatIsAMass(t *testing.T) {
	type one struct {
		agent, class, host, account string
		since                       int // seconds
	}
	for _, c := range []struct {
		name string
		list []one
		want []string
	}{
		{"three in 30 s", []one{{"a", "crashed", "h", "", 0}, {"b", "crashed", "h", "", 10}, {"c", "crashed", "h", "", 30}}, []string{"host:h:crashed [a b c]"}},
		{"two causes on one host", []one{{"a", "crashed", "h", "", 0}, {"b", "model_silent", "h", "", 10}, {"c", "crashed", "h", "", 30}}, nil},
		{"a login and a limit", []one{{"a", "rate_limited", "h", "me", 0}, {"b", "auth_expired", "h", "me", 0}}, nil},
		{"one model, whether its CLI has given up or not", []one{{"a", "api_backoff", "h", "me", 0}, {"b", "api_failed", "h", "me", 0}}, []string{"account:me:model [a b]"}},
		{"three in 31 s", []one{{"a", "crashed", "h", "", 0}, {"b", "crashed", "h", "", 10}, {"c", "crashed", "h", "", 31}}, nil},
		{"two", []one{{"a", "crashed", "h", "", 0}, {"b", "crashed", "h", "", 0}}, nil},
		{"two hosts", []one{{"a", "crashed", "h", "", 0}, {"b", "crashed", "h", "", 0}, {"c", "crashed", "i", "", 0}}, nil},
		{"no host", []one{{"a", "crashed", "", "", 0}, {"b", "crashed", "", "", 0}, {"c", "crashed", "", "", 0}}, nil},
		{"waiting is not a failure", []one{{"a", "waiting_permission", "h", "", 0}, {"b", "waiting_question", "h", "", 0}, {"c", "loop", "h", "", 0}}, nil},
		{"an older one stays out", []one{{"z", "crashed", "h", "", -900}, {"a", "crashed", "h", "", 0}, {"b", "crashed", "h", "", 0}, {"c", "crashed", "h", "", 0}}, []string{"host:h:crashed [a b c]"}},
		{"one account, hours apart", []one{{"a", "rate_limited", "h", "me", 0}, {"b", "rate_limited", "i", "me", 7200}}, []string{"account:me:limit [a b]"}},
		{"two accounts", []one{{"a", "rate_limited", "h", "me", 0}, {"b", "rate_limited", "h", "you", 0}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var problems []Problem
			for _, o := range c.list {
				problems = append(problems, Problem{Agent: o.agent, Class: o.class, Host: o.host, Account: o.account, Since: t0.Add(time.Duration(o.since) * time.Second)})
			}
			var got []string
			for _, m := range (Fleet{}).See(problems, Default().Fleet, t0.Add(time.Minute)).Masses {
				got = append(got, fmt.Sprintf("%s %v", m.Key, m.Members))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// One message tells of a logged out account, and nothing is started for it.
func TestMassOfOneAccount(t *testing.T) {
	w := newFleet("a", "b", "c")
	for _, n := range w.names() {
		w.agents[n].problem.Account = "me"
		w.fail(n, "auth_expired", stallErrored)
	}
	w.run(time.Hour)
	if len(w.masses) != 1 || len(w.log) != 0 {
		t.Errorf("told %v, did %v", w.masses, w.log)
	}
}

// After a restart of the monitor the fleet is the same.
func TestFleetOutlastsAKill(t *testing.T) {
	w := newFleet(agentNames(5)...)
	for _, n := range w.names() {
		w.agents[n].problem.Host = "alpha"
		w.fail(n, "crashed", stallCrashed)
	}
	w.run(2 * time.Minute)
	data, err := json.Marshal(w.f)
	if err != nil {
		t.Fatal(err)
	}
	var again Fleet
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w.f, again); d != "" {
		t.Error(d)
	}
}

// Whatever happens in whatever order, no budget and no limit is ever exceeded, nothing unsure touches a process, and of
// agents that fail together one acts at a time.
func TestNothingIsEverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := agentNames(rapid.IntRange(1, 5).Draw(t, "agents"))
		w := newFleet(names...)
		for _, n := range names {
			w.agents[n].deaf = rapid.Bool().Draw(t, "deaf")
			w.agents[n].problem.Host = rapid.SampledFrom([]string{"", "alpha"}).Draw(t, "host")
			w.agents[n].problem.Account = rapid.SampledFrom([]string{"", "me"}).Draw(t, "account")
		}
		for range rapid.IntRange(20, 150).Draw(t, "looks") {
			n := rapid.SampledFrom(names).Draw(t, "agent")
			a := w.agents[n]
			switch rapid.IntRange(0, 8).Draw(t, "event") {
			case 0, 1, 2:
				c := rapid.SampledFrom([]string{"crashed", "model_silent", "tool_hung", "loop", "waiting_question", "rate_limited", "exited_unfinished"}).Draw(t, "class")
				w.fail(n, c, rapid.SampledFrom([]string{stallHung, stallCrashed}).Draw(t, "stall"))
			case 3:
				w.recover(n)
			case 4:
				a.problem.Phase++
			case 5:
				a.problem.Confidence = rapid.SampledFrom([]string{"high", "medium", "low"}).Draw(t, "confidence")
			case 6: // the last thing was not done in the end
				if len(a.h.Acts) > 0 && len(w.log) > 0 {
					last := &a.h.Acts[len(a.h.Acts)-1]
					last.Refunded = true
					w.f = w.f.Refund(*last)
					for i := range w.log {
						if w.log[i].Agent == n && w.log[i].At.Equal(last.At) {
							w.log[i].Refunded = true
						}
					}
				}
			case 7:
				a.h.Open = false // a human has closed the incident
			}
			before := len(w.log)
			w.tick(rapid.Permutation(names).Draw(t, "order"))
			for _, act := range w.log[before:] {
				if low := w.agents[act.Agent].problem.Confidence == "low"; low && act.Rung.Touches() {
					t.Fatalf("%s with low confidence", act.Rung)
				}
				for _, m := range w.f.Masses {
					shared := remediesOf(act.Class, act.Stall).scope != ownCause && slices.Contains(m.Members, act.Agent)
					if m.Released.IsZero() && shared && act.Rung.Acts() && m.Canary != act.Agent {
						t.Fatalf("%s acts, of %s only %s may", act.Agent, m.Key, m.Canary)
					}
				}
			}
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 900).Draw(t, "pause")) * time.Second)
		}
		w.least(t)
	})
}

// Trouble that does not go away always comes to a human, and nobody waits for ever for a turn: within one hour for each
// agent after the four that what passes by itself is waited for, whatever is wrong with whom, and wherever they run.
func TestWhatStaysIsTold(t *testing.T) {
	all := []string{"crashed", "exited_unfinished", "startup_blocked", "waiting_permission", "waiting_question", "waiting_other", "api_backoff",
		"rate_limited", "api_failed", "auth_expired", "credit_exhausted", "execution_error", "model_silent", "tool_hung", "loop", "no_progress", "context_exhausted",
		"heartbeat_lost", "budget_exceeded", "orphaned", "unheard_of"}
	rapid.Check(t, func(t *rapid.T) {
		names := agentNames(rapid.IntRange(1, 12).Draw(t, "agents"))
		w := newFleet(names...)
		for _, n := range names {
			a := w.agents[n]
			a.problem.Host = rapid.SampledFrom([]string{"", "alpha", "beta"}).Draw(t, "host")
			a.problem.Account = rapid.SampledFrom([]string{"", "me"}).Draw(t, "account")
			a.problem.Confidence = rapid.SampledFrom([]string{"high", "medium", "low"}).Draw(t, "confidence")
			a.can = Capabilities{
				Nudge: rapid.Bool().Draw(t, "nudge"), Ask: rapid.Bool().Draw(t, "ask"), KillTool: rapid.Bool().Draw(t, "tool"),
				Interrupt: rapid.Bool().Draw(t, "interrupt"), Resume: rapid.Bool().Draw(t, "resume"), Restart: rapid.Bool().Draw(t, "restart"),
				Fresh: rapid.Bool().Draw(t, "fresh"), Ended: rapid.Bool().Draw(t, "ended"), UnderWay: rapid.Bool().Draw(t, "under way"),
			}
			w.fail(n, rapid.SampledFrom(all).Draw(t, "class"), rapid.SampledFrom([]string{stallCrashed, stallWaiting, stallErrored, stallHung}).Draw(t, "stall"))
			a.problem.Since = w.now.Add(-time.Duration(rapid.IntRange(0, 600).Draw(t, "since")) * time.Second)
			if rapid.Bool().Draw(t, "until") {
				a.problem.Until = w.now.Add(time.Duration(rapid.IntRange(-60, 1800).Draw(t, "reset")) * time.Second)
			}
		}
		for range 4 * 60 * (4 + len(names)) {
			w.tick(rapid.Permutation(names).Draw(t, "order"))
			w.now = w.now.Add(15 * time.Second)
			if len(w.told) == len(names) {
				break
			}
		}
		for _, n := range names {
			if w.told[n].IsZero() {
				t.Fatalf("nobody was told of %s: %+v, fleet %+v, %v", n, w.agents[n].problem, w.f, w.taken(n))
			}
		}
		w.least(t)
	})
}

package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/fleetcases"
	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// atHome is a herald whose monitor shows what home is.
func atHome(t *testing.T, dir string, home *overview.Home) *herald {
	t.Helper()
	m := &member{settings: &settings{state: dir}, membership: membership{Host: "a"}, log: slog.New(slog.DiscardHandler)}
	m.publisher = newPublisher(m)
	m.publisher.snapshot.Home = home
	h := newHerald(m)
	if err := h.load(); err != nil {
		t.Fatal(err)
	}
	return h
}

func casesIn(t *testing.T, h *herald) []fleetcases.Case {
	t.Helper()
	list, err := fleetcases.Read(h.path)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Whom a machine reaches is known by its monitor, and by that monitor's channels.
func TestReach(t *testing.T) {
	for _, tt := range []struct {
		home *overview.Home
		want judge.Reach
	}{{nil, judge.Nobody}, {&overview.Home{Channels: 1}, judge.Nobody}, {&overview.Home{Monitor: 7}, judge.Views}, {&overview.Home{Monitor: 7, Channels: 1}, judge.People}} {
		if got := atHome(t, t.TempDir(), tt.home).reach(); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.home, got, tt.want)
		}
	}
}

var silent = judge.Case{Kind: judge.Silent, Subject: "b", Standing: judge.Gone}

// A case counts as told when the monitor's message has arrived. What has not arrived in time, or is refused, is withdrawn.
func TestTell(t *testing.T) {
	for name, tt := range map[string]struct {
		state   string // of the incident; "": the monitor shows none
		refused bool
		channel int
		ok      bool
	}{
		"it has arrived": {state: "notified", channel: 1, ok: true}, "somebody has acknowledged it": {state: "acknowledged", channel: 1, ok: true},
		"no channel": {state: "open", ok: true}, "it is on its way": {state: "open", channel: 1}, "the channel refuses it": {state: "open", refused: true, channel: 1},
		"the monitor is stopped": {channel: 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				h := atHome(t, dir, &overview.Home{Monitor: 7, Channels: tt.channel})
				go func() {
					time.Sleep(5 * time.Second) // the monitor looks
					list := casesIn(t, h)
					if len(list) != 1 || list[0].Agent != "machine:b" || list[0].Class != "machine_gone" || list[0].Over != "" {
						t.Errorf("the monitor is to tell of %+v", list)
						return
					}
					if tt.state != "" {
						h.m.publisher.mu.Lock()
						defer h.m.publisher.mu.Unlock()
						h.m.publisher.snapshot.Home = &overview.Home{
							Monitor: 7, Channels: tt.channel, Incidents: []overview.Incident{{ID: "x", Case: list[0].ID, State: tt.state, Untold: tt.refused, Refused: tt.refused}},
						}
					}
				}()
				if err := h.Tell(t.Context(), silent, false); (err == nil) != tt.ok {
					t.Errorf("told: %t, %v", err == nil, err)
				}
				if got := casesIn(t, h)[0]; got.Withdrawn == tt.ok || (got.Over == "") != tt.ok {
					t.Errorf("it stands as %+v", got)
				}
			})
		})
	}
}

// A case that one channel refuses is waited for as long as another one may have it.
func TestTellByOneOfTwo(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := atHome(t, dir, &overview.Home{Monitor: 7, Channels: 2})
		stands := func(after time.Duration, state string) {
			time.Sleep(after) // the monitor looks
			h.m.publisher.mu.Lock()
			defer h.m.publisher.mu.Unlock()
			h.m.publisher.snapshot.Home = &overview.Home{
				Monitor: 7, Channels: 2, Incidents: []overview.Incident{{ID: "x", Case: casesIn(t, h)[0].ID, State: state, Untold: true}},
			}
		}
		go func() {
			stands(5*time.Second, "open")
			stands(5*time.Second, "notified")
		}()
		if err := h.Tell(t.Context(), silent, false); err != nil {
			t.Errorf("it is not told: %v", err)
		}
		if got := casesIn(t, h)[0]; got.Over != "" {
			t.Errorf("it stands as %+v", got)
		}
	})
}

// A case that the monitor could not be given is another machine's: it is not written with the next one, and is a new one if it comes again.
func TestHeraldCannotWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	h := atHome(t, dir, nil)
	if id, err := h.open(silent, false); err == nil {
		t.Fatalf("it is written as %s where there is no directory", id)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := h.open(judge.Case{Kind: judge.Silent, Subject: "c"}, false); err != nil {
		t.Fatal(err)
	}
	if list := casesIn(t, h); len(list) != 1 || list[0].Agent != "machine:c" {
		t.Errorf("the monitor is to tell of %+v", list)
	}
	if _, err := h.open(silent, false); err != nil || len(casesIn(t, h)) != 2 {
		t.Errorf("when it comes again: %v, %+v", err, casesIn(t, h))
	}
}

// A judge that is lost while its monitor tells withdraws it: another one tells.
func TestTellLost(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := atHome(t, dir, &overview.Home{Monitor: 7, Channels: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Tell(ctx, silent, true); err == nil {
			t.Error("it was told")
		}
		if got := casesIn(t, h)[0]; !got.Withdrawn || !strings.Contains(got.Details, "may have done so") {
			t.Errorf("it stands as %+v", got)
		}
	})
}

// Who shares a cause, or is silent, is brought up to date, and what has not changed is not written.
func TestHeraldUpdate(t *testing.T) {
	h := atHome(t, t.TempDir(), nil)
	for _, tt := range []struct {
		kind           judge.Kind
		before, after  []string
		name, was, now string
	}{
		{judge.Machines, []string{"b", "c", "d", "e", "f", "g", "h"}, []string{"b", "g"}, "A group of 7 machines (b, c, d, e, f and 2 more)", "b, c, d, e, f, g, h: ", "A group of 7 machines (b, g)"},
		{judge.Shared, []string{"b/x"}, []string{"b/x", "b/y"}, "The account of claude (limit)", "agents of one machine", "The account of claude (limit)"},
	} {
		id, err := h.open(judge.Case{Kind: tt.kind, Subject: "account:claude:limit", Agents: tt.before}, false)
		if err != nil {
			t.Fatal(err)
		}
		is := func() fleetcases.Case { list := casesIn(t, h); return list[len(list)-1] }
		if c := is(); c.Name != tt.name || !strings.Contains(c.Details, tt.was) {
			t.Errorf("%+v", c)
		}
		h.update(id, judge.Case{Kind: tt.kind, Subject: "account:claude:limit", Agents: tt.after})
		if c := is(); c.Name != tt.now || tt.kind == judge.Shared && len(c.Members) != 2 {
			t.Errorf("%+v", c)
		}
		if err := os.Remove(h.path); err != nil {
			t.Fatal(err)
		}
		h.update(id, judge.Case{Kind: tt.kind, Subject: "account:claude:limit", Agents: tt.after})
		if _, err := os.Stat(h.path); err == nil {
			t.Error("it is written without need")
		}
	}
}

// What was over for long goes when something else is brought up to date.
func TestHeraldUpdateForgets(t *testing.T) {
	h := atHome(t, t.TempDir(), nil)
	id, err := h.open(judge.Case{Kind: judge.Machines, Subject: "b", Agents: []string{"b", "c", "d"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	h.cases = append(h.cases, fleetcases.Case{ID: "old", Over: "it is heard again", Ended: time.Now().Add(-2 * overKept)})
	h.update(id, judge.Case{Kind: judge.Machines, Subject: "b", Agents: []string{"b", "c"}})
	if list := casesIn(t, h); len(list) != 1 || list[0].ID != id || list[0].Name != "A group of 3 machines (b, c)" {
		t.Errorf("%+v", list)
	}
}

// A case that is open is the same one for a later run of the member, which does not tell of it a second time.
func TestHeraldAgain(t *testing.T) {
	dir := t.TempDir()
	h := atHome(t, dir, nil)
	var ids []string
	for _, c := range []judge.Case{silent, {Kind: judge.Machines, Subject: "c", Agents: []string{"c", "d", "e"}}, {Kind: judge.Shared, Subject: "account:claude:limit", Agents: []string{"b/shop"}}} {
		id, err := h.open(c, false)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		if again, _ := atHome(t, dir, nil).open(c, false); again != id {
			t.Errorf("%s %s is %s, and then %s", c.Kind, c.Subject, id, again)
		}
	}
	h.end(ids[0], fleetcases.Case{Over: "it is heard again", Recovered: true})
	if next, _ := atHome(t, dir, nil).open(silent, false); next == ids[0] {
		t.Error("the next time is the same case")
	}
}

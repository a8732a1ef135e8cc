package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// electedWithin is how late at most what happens on a machine is seen from another one while the hubs elect a leader: the election, and a sign
// of life that was not taken before it.
const electedWithin = 30 * time.Second

// everyTable is how many tables the hubs of a fleet have, with that of the tokens.
const everyTable = 8

// hubsOf are the three hubs of a fleet.
type hubsOf struct {
	hubs     [3]*joined
	running  [3]*exec.Cmd
	listens  [3]string // where machines reach them
	names    [3]string // where they reach each other
	networks []*network
	t        *testing.T
}

// explain shows what the hubs have said, if the test has failed.
func (h *hubsOf) explain() {
	if !h.t.Failed() {
		return
	}
	for _, j := range h.hubs {
		text, _ := os.ReadFile(j.path("hub.log")) // it may not be there
		h.t.Logf("%s has said, at the end:\n%s", j.name, text[max(0, len(text)-4000):])
	}
}

// newHubs starts three hubs, on machines with networks of their own if there are some. The fleet's tokens are made on the first one.
func newHubs(t *testing.T, networks ...*network) (*hubsOf, *fleetOf) {
	t.Helper()
	h, f := makeHubs(t, networks...)
	for n := range h.hubs {
		h.open(t, n)
	}
	for n := range h.hubs {
		h.awaitOpen(t, n, 0)
	}
	return h, f
}

// makeHubs makes three hubs that have not been started.
func makeHubs(t *testing.T, networks ...*network) (*hubsOf, *fleetOf) {
	t.Helper()
	needOutlive(t)
	needFull(t, "three hubs elect a leader for up to 9 s, which the times of the fleet must outlast: they cannot be shorter")
	h := &hubsOf{t: t, networks: networks}
	ports := freeAddresses(t, 6)
	copy(h.listens[:], ports[:3])
	copy(h.names[:], ports[3:])
	for n := range h.hubs {
		h.hubs[n] = &joined{workspace: newWorkspace(t), name: fmt.Sprintf("hub%d", n)}
		if len(networks) > 0 {
			one := networks[n]
			h.hubs[n].inside, h.hubs[n].clock = []string{"ip", "netns", "exec", one.name}, one.clock
			h.listens[n], h.names[n] = one.address+":4242", one.address+":4243"
		}
	}
	t.Cleanup(h.explain)
	f := &fleetOf{hub: h.hubs[0], address: strings.Join(h.listens[:], ",")}
	f.token(t, "nobody") // it makes hub.json
	for n := range h.hubs {
		h.copyIdentity(t, n)
	}
	return h, f
}

const hubIdentity = "state/outlive/fleet/hub/hub.json"

// copyIdentity brings a hub what it is known by from another one.
func (h *hubsOf) copyIdentity(t *testing.T, to int) {
	t.Helper()
	at := slices.IndexFunc(h.hubs[:], func(j *joined) bool { _, err := os.Stat(j.path(hubIdentity)); return err == nil })
	text, err := os.ReadFile(h.hubs[at].path(hubIdentity))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(h.hubs[to].path(hubIdentity)), 0o700)
	}
	if err == nil {
		err = os.WriteFile(h.hubs[to].path(hubIdentity), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (h *hubsOf) arguments(n int) []string {
	return []string{"fleet", "hub", "--listen", h.listens[n], "--cluster", strings.Join(h.names[:], ","), "--self", h.names[n]}
}

func (h *hubsOf) open(t *testing.T, n int) {
	t.Helper()
	h.running[n] = h.hubs[n].start(t, "hub.log", h.arguments(n)...)
}

// reopen starts a hub that was killed, and returns when it lets machines in.
func (h *hubsOf) reopen(t *testing.T, n int) {
	t.Helper()
	before := h.opened(n)
	h.open(t, n)
	h.awaitOpen(t, n, before)
}

// opened is how often a hub has said that it lets machines in.
func (h *hubsOf) opened(n int) int {
	text, _ := os.ReadFile(h.hubs[n].path("hub.log")) // it is empty, then
	return strings.Count(string(text), "machines are let in")
}

// awaitOpen returns when a hub has said so more often than before: an election takes up to 9 s, two where nobody has a majority at the
// first, and then the tables are made.
func (h *hubsOf) awaitOpen(t *testing.T, n, before int) {
	t.Helper()
	if !within(time.Minute, func() bool { return h.opened(n) > before }) {
		text, err := os.ReadFile(h.hubs[n].path("hub.log"))
		t.Fatalf("%s lets nobody in: %v\n%s", h.hubs[n].name, err, text)
	}
}

func (h *hubsOf) kill(n int) {
	_ = h.running[n].Process.Kill()
	_ = h.running[n].Wait()
}

// hubState is a hub in fleet status --json.
type hubState struct {
	Name              string
	Connected, Leader bool
	Tables            []string
}

// sees is how a machine sees the fleet.
func (j *joined) sees() (s struct {
	Connected bool
	Why       string
	Hubs      []hubState
	Hosts     []struct {
		Name, State string
		Heard       time.Time
	}
	Cases []json.RawMessage
}) {
	out, _ := j.command("fleet", "status", "--json").Output()
	_ = json.Unmarshal(out, &s) // then it is empty
	return s
}

// complete waits until a machine sees so many hubs, one of which leads, and leaders for all tables.
func (h *hubsOf) complete(t *testing.T, from *joined, many int) (leader int) {
	t.Helper()
	if !within(time.Minute, func() bool {
		leader = -1
		there, tables := 0, 0
		for _, one := range from.sees().Hubs {
			if one.Connected {
				there, tables = there+1, tables+len(one.Tables)
			}
			if one.Leader {
				leader = slices.Index(h.names[:], one.Name)
			}
		}
		return there == many && leader >= 0 && tables == everyTable
	}) {
		t.Fatalf("seen from %s there are not %d hubs with a leader: %+v", from.name, many, from.sees())
	}
	return leader
}

// heardSince waits until a machine sees all of the others by what they have said after a moment, and returns how long that has taken.
func (j *joined) heardSince(t *testing.T, moment time.Time, names ...string) time.Duration {
	t.Helper()
	if !within(electedWithin, func() bool {
		heard := 0
		for _, one := range j.sees().Hosts {
			if slices.Contains(names, one.Name) && one.State == "connected" && one.Heard.After(moment) {
				heard++
			}
		}
		return heard == len(names)
	}) {
		t.Fatalf("%s has not heard all of %q since %s: %+v", j.name, names, moment, j.sees())
	}
	return time.Since(moment)
}

// restarts is how often outlive there was asked to restart a server, by what it says of it.
func (j *joined) restarts(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(j.path("stderr.log"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "Restart requested, ")
}

// Three hubs are one: any of them can be lost, with its disk; of two that are lost nothing is made up.
func TestFleetHubOfThree(t *testing.T) {
	needFull(t, "a hub of three, whose parts are killed and cut off, for minutes")
	t.Parallel()
	h, f := newHubs(t)
	a, b, c := f.join(t, "a"), f.join(t, "b"), f.join(t, "c")
	all := []*joined{a, b, c}
	names := []string{"a", "b", "c"}
	p := newPeople(t)
	p.watch(a)
	one := b.serve(t, "one")
	h.complete(t, a, 3)
	for _, j := range all {
		for _, name := range names {
			j.stands(t, name, "connected")
		}
	}
	a.shows(t, `^HUB +STATE +SINCE +LEADS\n(127\S+ +connected .*\n)*127\S+ +connected +\S+ \S+ +the hubs`, "fleet", "status")

	t.Run("how it is started", func(t *testing.T) {
		cluster := strings.Join(h.names[:], ",")
		other := &joined{workspace: newWorkspace(t), name: "other"}
		want(t, other.run(t, 1, "fleet", "hub", "--cluster", cluster, "--self", h.names[0]), `hub\.json is missing: copy that of another hub`)
		want(t, other.run(t, 2, "fleet", "hub", "--cluster", cluster), `--self is missing: which of `)
		want(t, other.run(t, 2, "fleet", "hub", "--cluster", cluster, "--self", "elsewhere"), `it is none of --cluster`)
		want(t, other.run(t, 2, "fleet", "hub", "--cluster", "a,b", "--self", "a"), `want three hubs`)
		want(t, other.run(t, 2, "fleet", "hub", "--self", "a"), `--self goes with --cluster`)
	})
	t.Run("tokens", func(t *testing.T) {
		token := strings.TrimSpace(h.hubs[2].run(t, 0, "fleet", "token", "make", "d"))
		d := &joined{workspace: newWorkspace(t), name: "d"}
		d.member = d.start(t, "member.log", "fleet", "join", f.address, "--token", token)
		d.says(t, "member.log", `connected to the hub`)
		thief := &joined{workspace: newWorkspace(t), name: "thief"}
		want(t, thief.run(t, 1, "fleet", "join", h.listens[0], "--token", token), `another machine has used it`)
		h.hubs[0].shows(t, `^d +.*127\.0\.0\.1`, "fleet", "token", "list")
		a.stands(t, "d", "connected")
		want(t, h.hubs[0].run(t, 0, "fleet", "token", "revoke", "d"), `d is let in no more`)
		if !eventually(func() bool { return dead(d.member.Process.Pid) }) {
			t.Error("a member goes on with a token that was revoked at another hub")
		}
		_ = d.member.Wait()
		d.says(t, "member.log", `the hub refuses the token: it was revoked`)
		for range 3 {
			want(t, d.run(t, 1, "fleet", "join"), `the hub refuses the token: it (is wrong|was revoked)`)
		}
		a.stands(t, "d", "")
		for n, listens := range h.listens {
			late := &joined{workspace: newWorkspace(t), name: "late"}
			if !eventually(func() bool {
				out, _ := late.command("fleet", "join", listens, "--token", token).CombinedOutput()
				return strings.Contains(string(out), "the hub refuses the token")
			}) {
				t.Errorf("hub %d takes a token that was revoked at another one", n)
			}
		}
	})
	t.Run("a hub stays away", func(t *testing.T) {
		away := (h.complete(t, a, 3) + 1) % 3
		h.kill(away)
		p.hear("The hub " + h.names[away] + " is away")
		b.shows(t, `^The hub `+h.names[away]+` is away since .*; people were told by a`, "fleet", "status")
		h.reopen(t, away)
		p.hear("The hub " + h.names[away] + " works again")
		h.complete(t, a, 3)
	})
	incident := incidentOn(t, c, a)
	t.Run("the leader is killed", func(t *testing.T) {
		events := a.follow(t, "watch", "--fleet")
		events.await(t, `^\S+ c: connected`)
		events.forget()
		before, leader := b.restarts(t), h.complete(t, a, 3)
		h.kill(leader)
		killed := time.Now()
		want(t, a.run(t, 0, "restart", "b/one", "--fleet", "--reason", "the leader was lost"), `^b/one: ready after`)
		t.Logf("a server was restarted %s after the leader's death", time.Since(killed).Round(100*time.Millisecond))
		want(t, a.run(t, 0, "ack", "shop", "--fleet"), `^c/`)
		t.Logf("an incident was acknowledged %s after the leader's death", time.Since(killed).Round(100*time.Millisecond))
		events.await(t, `b/one@\d+: Restart completed`)
		t.Logf("an event was seen %s after the leader's death", time.Since(killed).Round(100*time.Millisecond))
		for _, j := range all {
			t.Logf("%s has heard all others again %s after the leader's death", j.name, j.heardSince(t, killed, names...).Round(100*time.Millisecond))
		}
		next := h.complete(t, a, 2)
		if next == leader {
			t.Error("who is dead leads")
		}
		one.ask(t, "tools/list", nil)
		if n := b.restarts(t) - before; n != 1 {
			t.Errorf("the server was restarted %d times for one command", n)
		}
		want(t, c.run(t, 0, "ack"), incident+` +shop .*acknowledged`)
		h.reopen(t, leader)
		h.complete(t, a, 3)
	})
	t.Run("the leader is upgraded", func(t *testing.T) {
		leader := h.complete(t, a, 3)
		stopped := time.Now()
		ended(h.running[leader])
		h.reopen(t, leader)
		for _, j := range all {
			t.Logf("%s has heard all others again %s after the leader was stopped", j.name, j.heardSince(t, stopped, names...).Round(100*time.Millisecond))
		}
		h.complete(t, a, 3)
	})
	t.Run("a disk is lost", func(t *testing.T) {
		lost := h.complete(t, a, 3)
		h.kill(lost)
		if err := os.RemoveAll(h.hubs[lost].path("state/outlive/fleet/hub")); err != nil {
			t.Fatal(err)
		}
		want(t, h.hubs[lost].run(t, 1, h.arguments(lost)...), `hub\.json is missing`)
		h.copyIdentity(t, lost)
		opened := time.Now()
		h.reopen(t, lost)
		h.complete(t, a, 3)
		for _, j := range all {
			t.Logf("%s has heard all others again %s after the hub was back without its disk", j.name, j.heardSince(t, opened, names...).Round(100*time.Millisecond))
		}
		for _, name := range names {
			h.hubs[lost].shows(t, `^`+name+` +.*127\.0\.0\.1`, "fleet", "token", "list")
		}
		second := (lost + 1) % 3
		h.kill(second) // what is needed now is the one that had lost everything
		killed := time.Now()
		for _, j := range all {
			t.Logf("%s has heard all others again %s after another hub's death", j.name, j.heardSince(t, killed, names...).Round(100*time.Millisecond))
		}
		h.reopen(t, second)
		h.complete(t, a, 3)
	})
	t.Run("two are lost", func(t *testing.T) {
		h.kill(0)
		h.kill(1)
		for _, j := range all {
			j.shows(t, `no connection to the hub since .*none of them answers, or those that do reach no other hub`, "fleet", "status")
			j.run(t, 1, "fleet", "status")
			if s := j.sees(); s.Connected || slices.ContainsFunc(s.Hosts, func(one struct {
				Name, State string
				Heard       time.Time
			}) bool {
				return one.State != "not known"
			}) || len(s.Hubs) > 0 {
				t.Errorf("%s claims to know: %+v", j.name, s)
			}
		}
		want(t, h.hubs[0].run(t, 1, h.withoutCluster(0)...), `this hub is one of several: start it with --cluster`)
		h.hubs[2].says(t, "hub.log", `this hub reaches no other one`)
		p.hearNothing(40 * time.Second) // longer than a silence and a lease
		h.open(t, 0)
		back := time.Now()
		for _, j := range all {
			t.Logf("%s has heard all others again %s after the second hub was back", j.name, j.heardSince(t, back, names...).Round(100*time.Millisecond))
		}
		h.reopen(t, 1)
		h.complete(t, a, 3)
		want(t, a.run(t, 0, "restart", "b/one", "--fleet"), `^b/one: ready after`)
		b.killMember()
		p.hear("The machine b is") // people are still told, and of nothing else before
	})
}

// A machine that joins while its hubs are being started waits for them, and says so.
func TestFleetJoinsBeforeTheHubsAreThere(t *testing.T) {
	needFull(t, "a hub of three")
	t.Parallel()
	h, f := makeHubs(t)
	early := &joined{workspace: newWorkspace(t), name: "early"}
	early.start(t, "member.log", "fleet", "join", f.address, "--token", f.token(t, "early"))
	early.says(t, "member.log", `not let in yet; it is tried again.*none of them answers`)
	for n := range h.hubs {
		h.open(t, n)
	}
	early.says(t, "member.log", `connected to the hub`)
	early.says(t, "member.log", `This machine is early in the fleet of`)
}

func (h *hubsOf) withoutCluster(n int) []string {
	return []string{"fleet", "hub", "--listen", h.listens[n]}
}

// incidentOn has an agent of a machine end, and returns its incident as another machine sees it.
func incidentOn(t *testing.T, on, from *joined) string {
	t.Helper()
	agent := newAgent(t, on, "shop")
	monitor := on.command("monitor", "--answers", "off")
	monitor.Env = append(monitor.Env, "PIV_MONITOR_INTERVAL_MS=1000")
	on.begin(t, "monitor.log", monitor)
	on.says(t, "monitor.log", `Monitor cycle complete: 1 projects`)
	kill(t, agent.Process.Pid)
	_ = agent.Wait()
	var out []byte
	line := regexp.MustCompile(`(?m)^` + on.name + `/(\S+) +shop `)
	if !eventually(func() bool { out, _ = from.command("ack", "--fleet").Output(); return line.Match(out) }) {
		t.Fatalf("%s", out)
	}
	return line.FindStringSubmatch(string(out))[1]
}

// newAgent starts an agent that does nothing, and has the machine know it.
func newAgent(t *testing.T, on *joined, name string) *exec.Cmd {
	t.Helper()
	dir, home := on.path(name), on.path("state/outlive/agents")
	for _, d := range []string{dir, home} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	agent := exec.Command("sleep", "600")
	agent.Dir = dir // or it counts as somebody else's
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	for file, text := range map[string]string{
		filepath.Join(dir, "pid"):            fmt.Sprintln(agent.Process.Pid),
		filepath.Join(home, "registry.yaml"): "version: 2\nagents:\n  " + name + ": {kind: command, path: " + dir + ", match: {pidfile: pid}}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return agent
}

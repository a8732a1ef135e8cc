package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/fleetcases"
	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/internal/view/overview"
	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

// fleetInMemory are members with their monitors, and a hub that says how connections have ended.
type fleetInMemory struct {
	*enginemem.Engine
	t     *testing.T
	dir   string
	how   judge.Standing
	all   map[string]*judgingMember
	parts sync.WaitGroup
}

// judgingMember is one of them: all of a member that has to do with judging, and its monitor.
type judgingMember struct {
	*member
	fleet  *fleetInMemory
	engine *inMemory
	stop   func() // answering
	end    context.CancelFunc
}

// together runs members in memory for as long as the test does. The first of them judges.
func together(t *testing.T, names []string, test func(t *testing.T, f *fleetInMemory)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &fleetInMemory{Engine: enginemem.New(), t: t, dir: dir, how: judge.Gone, all: map[string]*judgingMember{}}
		stop, err := f.Serve(natsengine.EndedAddress, func(context.Context, string, []byte) []byte { return []byte(f.how) })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		for _, name := range names {
			f.join(name)
			time.Sleep(time.Second) // the first one has the lease
		}
		time.Sleep(time.Minute) // it knows who lives
		if got := f.judge(); got != names[0] {
			t.Fatalf("%q judges, want %s", got, names[0])
		}
		test(t, f)
		for _, m := range f.all {
			m.leave()
		}
		f.parts.Wait()
	})
}

func (f *fleetInMemory) join(name string) *judgingMember {
	f.t.Helper()
	one, e := memberIn(f.Engine, name, f.dir+"/"+name)
	m := &judgingMember{member: one, fleet: f, engine: e}
	if err := writeFile(one.memberFile(), membership{Host: name}); err != nil { // its directory
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	m.end = cancel
	m.publisher.snapshot.Home, m.publisher.sign, m.publisher.have = &overview.Home{Monitor: 7, Channels: 1}, "1", true
	var err error
	if m.stop, err = e.Serve(judge.Address(name), m.jobs.answer); err != nil {
		f.t.Fatal(err)
	}
	if err := m.judging.begin(ctx); err != nil {
		f.t.Fatal(err)
	}
	f.parts.Go(func() { m.publisher.run(ctx) })
	f.parts.Go(func() { m.monitor(ctx) })
	f.all[name] = m
	return m
}

// monitor tells people of each case that is open: the incident of one that is over is closed.
func (m *judgingMember) monitor(ctx context.Context) {
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		home := &overview.Home{Monitor: 7, Channels: 1}
		for _, c := range m.cases() {
			i := overview.Incident{ID: c.ID, Case: c.ID, State: "notified"}
			if c.Over != "" {
				i.Resolved = time.Now()
			}
			home.Incidents = append(home.Incidents, i)
		}
		m.publisher.mu.Lock()
		m.publisher.snapshot.Home = home
		m.publisher.mu.Unlock()
	}
}

func (m *judgingMember) cases() []fleetcases.Case {
	list, err := fleetcases.Read(m.judging.herald.path)
	if err != nil {
		m.fleet.t.Errorf("the cases of %s: %v", m.Host, err)
	}
	return list
}

// leave ends a member as it should be ended.
func (m *judgingMember) leave() {
	m.judging.end()
	m.stop()
	m.end()
	delete(m.fleet.all, m.Host)
}

// die ends one as a loss of power: nothing more is written.
func (m *judgingMember) die() {
	m.engine.set(true)
	m.leave()
}

// judge is who has the lease.
func (f *fleetInMemory) judge() string {
	e, err := f.Get(f.t.Context(), lease.Key("judge"))
	var r struct{ Holder string }
	if err != nil || json.Unmarshal(e.Value, &r) != nil {
		f.t.Fatal(err)
	}
	name, _, _ := strings.Cut(r.Holder, "/")
	return name
}

// told are the cases of all machines, in order, each as "who: agent class", with "over" where it is.
func (f *fleetInMemory) told() (list []string) {
	for _, m := range f.all {
		for _, c := range m.cases() {
			text := m.Host + ": " + c.Agent + " " + c.Class
			if c.Over != "" {
				text += " over"
			}
			list = append(list, text)
		}
	}
	slices.Sort(list)
	return list
}

func (f *fleetInMemory) wants(what string, want ...string) {
	f.t.Helper()
	if got := f.told(); !slices.Equal(got, want) {
		f.t.Errorf("%s: told %q, want %q", what, got, want)
	}
}

// untilTold is longer than it takes until people are told of a machine: its silence, the question how it is, and a look; untilOver the same for
// its return.
const (
	untilTold = 45 * time.Second
	untilOver = 90 * time.Second
)

// A machine that dies is one case, of the judge's monitor, by how its connection has ended; it is over when the machine is heard again for a
// while. One that leaves as it should is none.
func TestSilenceIsACase(t *testing.T) {
	for how, class := range map[judge.Standing]string{
		judge.Gone: "machine_gone", judge.CutOff: "machine_cut_off", judge.Lost: "machine_silent",
	} {
		t.Run(class, func(t *testing.T) {
			together(t, []string{"a", "b", "c"}, func(t *testing.T, f *fleetInMemory) {
				f.how = how
				f.all["c"].leave()
				f.all["b"].die()
				time.Sleep(29 * time.Second)
				f.wants("less than a silence after its death")
				time.Sleep(untilTold - 29*time.Second)
				f.wants("after its death", "a: machine:b "+class)
				f.join("b")
				time.Sleep(untilOver)
				f.wants("after its return", "a: machine:b "+class+" over")
			})
		})
	}
}

// A machine whose program is stopped answers nothing, and its connection stands: it is cut off.
func TestStoppedMachineIsCutOff(t *testing.T) {
	together(t, []string{"a", "b"}, func(t *testing.T, f *fleetInMemory) {
		f.how = judge.Works
		f.all["b"].die()
		stop, err := f.Serve(judge.Address("b"), func(ctx context.Context, _ string, _ []byte) []byte { <-ctx.Done(); return nil })
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(untilTold)
		f.wants("after it was stopped", "a: machine:b machine_cut_off")
		stop()
	})
}

// A machine of which nothing is written any more, and which the hub has a connection of, lives: nobody is told.
func TestMachineThatLives(t *testing.T) {
	together(t, []string{"a", "b"}, func(t *testing.T, f *fleetInMemory) {
		f.how = judge.Works
		f.all["b"].die()
		time.Sleep(2 * untilTold)
		f.wants("of a machine with a connection")
	})
}

// The machine that judges dies: another one judges, and tells of it, and the first one, when it is back, does not tell of it, too.
func TestJudgeDies(t *testing.T) {
	together(t, []string{"a", "b", "c"}, func(t *testing.T, f *fleetInMemory) {
		f.all["a"].die()
		time.Sleep(30*time.Second + 30*time.Second + untilTold) // the lease, and the new judge's own silence
		holder := f.judge()
		if holder != "b" && holder != "c" {
			t.Fatalf("%q judges", holder)
		}
		f.wants("after the judge's death", holder+": machine:a machine_gone")
		f.join("a")
		time.Sleep(untilOver)
		f.wants("after its return", holder+": machine:a machine_gone over")
	})
}

// A cause that agents of several machines share is left to the fleet, which names them all, also those that join them, until none has it.
func TestSharedCauseIsOneCase(t *testing.T) {
	together(t, []string{"a", "b", "c"}, func(t *testing.T, f *fleetInMemory) {
		const cause = "account:claude:credit"
		share := func(name string, agents ...string) fleetsocket.ShareAnswer {
			var list []fleetsocket.Trouble
			for _, agent := range agents {
				list = append(list, fleetsocket.Trouble{Cause: cause, Agent: agent})
			}
			return f.all[name].judging.share(list)
		}
		share("b", "shop")
		time.Sleep(2 * beatEvery)
		if left := share("b", "shop"); !slices.Equal(left.Causes, []string{cause}) {
			t.Errorf("b leaves %q to the fleet, want %s", left.Causes, cause)
		}
		share("c", "blog")
		time.Sleep(untilTold)
		f.wants("a shared cause", "a: shared:"+cause+" shared_cause")
		members := func() string { return strings.Join(f.all["a"].cases()[0].Members, ", ") }
		if got := members(); got != "b/shop, c/blog" {
			t.Errorf("it names %q", got)
		}
		share("b", "shop", "wiki")
		time.Sleep(untilTold)
		if got := members(); got != "b/shop, b/wiki, c/blog" {
			t.Errorf("one agent more: it names %q", got)
		}
		share("b")
		share("c")
		time.Sleep(untilOver)
		f.wants("when none has it", "a: shared:"+cause+" shared_cause over")
	})
}

// What a monitor has said holds for a while after its end, and no longer.
func TestSharesOfAnEndedMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := memberIn(enginemem.New(), "a", "")
		m.judging.shares, m.judging.told = nil, time.Now()
		m.judging.shares = append(m.judging.shares, judge.Trouble{Cause: "account:claude:credit", Agent: "shop"})
		time.Sleep(sharesKept)
		if n := len(m.judging.troubles()); n != 1 {
			t.Errorf("%d troubles after %s, want 1", n, sharesKept)
		}
		time.Sleep(time.Second)
		if n := len(m.judging.troubles()); n != 0 {
			t.Errorf("%d troubles after more than %s, want none", n, sharesKept)
		}
	})
}

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// How many rounds TestFleetRounds goes, and from which seed: OUTLIVE_E2E_ROUNDS, OUTLIVE_E2E_SEED.
const fewRounds = 3

// Each longEach-th round a fault of the network lasts for longFault: less than the silence after which people are told.
const (
	longEach  = 3
	longFault = 25 * time.Second
)

// clocks are how far those of the three hubs are off, and those of three of the members, by chance which.
var clocks = []time.Duration{3 * time.Minute, -4 * time.Minute, 90 * time.Second}

// members are the machines of the rounds that are no hubs.
var members = []string{"a", "b", "c", "d", "e"}

// backWithin is how late at most everything is as it was after a round.
const backWithin = time.Minute

func numberFrom(name string, without int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return without
}

// place is a machine of the rounds: a member of the fleet, and a monitor that tells people.
type place struct {
	*joined         // outside of the network that is cut: commands, the monitor and servers
	inner   *joined // in it: the member
	network *network
	monitor *exec.Cmd
	agents  []*roundAgent // of this round
	deaths  []time.Time
}

// calm is longer than three agents of one machine must not fail in: those would be one cause, and not be recovered one by one.
const calm = 35 * time.Second

// calmPlaces are two machines on which an agent may die, by chance.
func (r *fleetRounds) calmPlaces() (all []*place) {
	order := r.chance.Perm(len(r.places)) // once, or the time it takes would change what the seed says of the rest
	for {
		all = nil
		for _, n := range order {
			p := r.places[n]
			if len(p.deaths) < 2 || time.Since(p.deaths[len(p.deaths)-2]) > calm {
				all = append(all, p)
			}
		}
		if len(all) >= 2 {
			return all[:2]
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// roundAgent is an agent that lives for a round, and dies in it.
type roundAgent struct {
	at     *place
	name   string
	policy string // "": it is restarted; else people are told
}

// script is what the agents do: they write down that they were started, and then nothing.
const script = "echo $$ >> starts; echo $$ > pid.new; mv pid.new pid; exec sleep 100000"

// starts are the process numbers of an agent, each of which it has written itself.
func (a *roundAgent) starts() []int {
	text, _ := os.ReadFile(filepath.Join(a.at.path(a.name), "starts")) // it comes with the first start
	var pids []int
	for line := range strings.Lines(string(text)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// start starts it as its owner would.
func (a *roundAgent) start(t *testing.T) {
	t.Helper()
	dir, before := a.at.path(a.name), len(a.starts())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	if !eventually(func() bool { return len(a.starts()) > before }) {
		t.Fatalf("%s does not start", a.name)
	}
}

// kill kills the last one that was started; false: it was dead.
func (a *roundAgent) kill() bool {
	pids := a.starts()
	return len(pids) > 0 && syscall.Kill(pids[len(pids)-1], syscall.SIGKILL) == nil
}

// declare has a machine's monitor watch agents, and no others.
func (p *place) declare(t *testing.T, agents ...*roundAgent) {
	t.Helper()
	home := p.path("state/outlive/agents")
	text := "version: 2\nagents: {"
	for _, a := range agents {
		text += fmt.Sprintf("\n  %s: {kind: command, path: %q, match: {pidfile: pid}, start: {cmd: [sh, -c, %q]}%s},", a.name, p.path(a.name), script, a.policy)
	}
	err := os.MkdirAll(home, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(home, "registry.new"), []byte(text+"}\n"), 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(home, "registry.new"), filepath.Join(home, "registry.yaml"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range p.agents {
		_ = a.kill()
	}
	p.agents = agents
}

// watches waits until the monitor has seen all agents of this round: one that it has never seen is not missed.
func (p *place) watches(t *testing.T) {
	t.Helper()
	cycles := func() int {
		text, _ := os.ReadFile(p.path("monitor.log"))
		return strings.Count(string(text), fmt.Sprintf("Monitor cycle complete: %d projects", len(p.agents)))
	}
	before := cycles()
	if !eventually(func() bool { return cycles() >= before+2 }) {
		t.Fatalf("the monitor of %s does not look at its %d agents", p.name, len(p.agents))
	}
}

// fleetRounds are the hubs and machines that are killed.
type fleetRounds struct {
	t      *testing.T
	chance *rand.Rand
	lan    *lan
	hubs   *hubsOf
	places []*place
	people *people
	order  []int          // in which the kinds of faults come next
	away   map[string]int // how often a machine was cut off for so long that people may be told of it
	mended []*roundAgent  // of all rounds
	told   []*roundAgent
	asked  int // restarts that were acknowledged
	maybe  int // those whose answer was lost
	times  struct{ recovered, restarted, acked, seen []time.Duration }
}

func (r *fleetRounds) startMonitor(p *place) {
	p.monitor = p.command("monitor", "--answers", "off", "--log-level", "debug")
	phone := r.people.phone
	p.monitor.Env = append(p.monitor.Env, "PIV_MONITOR_INTERVAL_MS=1000", "TELEGRAM_BOT_TOKEN="+phone.Token, "TELEGRAM_CHAT_ID="+chatName, "TELEGRAM_API_URL="+phone.URL())
	log, err := os.OpenFile(p.path("monitor.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	p.monitor.Stdout, p.monitor.Stderr = log, log
	if err := p.monitor.Start(); err != nil {
		r.t.Fatal(err)
	}
}

// does runs outlive on a machine.
func (p *place) does(args ...string) (string, error) {
	out, err := p.command(args...).CombinedOutput()
	return string(out), err
}

// roundFault is what befalls one of them in a round.
type roundFault struct {
	what       string
	begin, end func()
	leader     bool   // the hub that leads has it
	network    bool   // it is one of the network
	at         *place // that it befalls; nil: it is a hub
}

// faultsOf are all kinds of faults. Which of the hubs leads is found out when a fault begins its round.
func (r *fleetRounds) faultsOf() (all []func(dies *place) roundFault) {
	for kind := range processFaults {
		all = append(all,
			func(*place) roundFault { return r.hubFault(true, kind) },
			func(*place) roundFault { return r.hubFault(false, kind) },
			func(dies *place) roundFault { return r.memberFault(r.either(dies), kind) },
			func(dies *place) roundFault { return r.monitorFault(r.either(dies), kind) })
	}
	for kind := range badWays {
		all = append(all,
			func(*place) roundFault {
				leader := r.leader()
				return r.onWays(kind, "the hub leader", r.hubs.networks[leader]).of(nil, true)
			},
			func(*place) roundFault {
				return r.onWays(kind, "a hub follower", r.hubs.networks[r.follower(r.leader())]).of(nil, false)
			},
			func(dies *place) roundFault {
				at := r.either(dies)
				return r.onWays(kind, "the machine "+at.name, at.network).of(at, false)
			})
	}
	return append(all,
		func(*place) roundFault {
			leader := r.leader()
			return r.pairCut("the hub leader and a follower", r.hubs.networks[leader], r.hubs.networks[r.follower(leader)]).of(nil, true)
		},
		func(*place) roundFault {
			leader := r.leader()
			return r.pairCut("both hub followers", r.hubs.networks[(leader+1)%3], r.hubs.networks[(leader+2)%3]).of(nil, false)
		},
		func(dies *place) roundFault {
			at, leader := r.either(dies), r.leader()
			return r.pairCut("the machine "+at.name+" and two hubs", at.network, r.hubs.networks[leader], r.hubs.networks[r.follower(leader)]).of(at, false)
		})
}

func (f roundFault) of(at *place, leader bool) roundFault {
	f.at, f.leader = at, leader
	return f
}

// either is the machine on which an agent dies, or any.
func (r *fleetRounds) either(dies *place) *place {
	at := r.places[r.chance.IntN(len(r.places))]
	if r.chance.IntN(2) == 0 {
		return dies
	}
	return at
}

func (r *fleetRounds) leader() int { return r.hubs.complete(r.t, r.places[0].joined, 3) }

func (r *fleetRounds) follower(leader int) int { return (leader + 1 + r.chance.IntN(2)) % 3 }

// processFaults are what befalls a process: it is killed and started again, or stopped and goes on.
var processFaults = []string{"kill", "pause"}

// process is one of processFaults.
func process(kind int, what string, running *exec.Cmd, kill, start func()) roundFault {
	f := roundFault{what: processFaults[kind] + " " + what, begin: kill, end: start}
	if kind == 1 {
		f.begin, f.end = func() { _ = running.Process.Signal(syscall.SIGSTOP) }, func() { _ = running.Process.Signal(syscall.SIGCONT) }
	}
	return f
}

func (r *fleetRounds) hubFault(leads bool, kind int) roundFault {
	hub, what := r.leader(), "the hub leader"
	if !leads {
		hub, what = r.follower(hub), "a hub follower"
	}
	return process(kind, what, r.hubs.running[hub], func() { r.hubs.kill(hub) }, func() { r.hubs.open(r.t, hub) }).of(nil, leads)
}

func (r *fleetRounds) memberFault(at *place, kind int) roundFault {
	return process(kind, "the member of "+at.name, at.inner.member, at.inner.killMember, func() { at.inner.joinAgain(r.t) })
}

// monitorFault is one of a monitor; half of those that are killed are so with their machine's member.
func (r *fleetRounds) monitorFault(at *place, kind int) roundFault {
	both := kind == 0 && r.chance.IntN(2) == 0
	what := "the monitor of " + at.name
	if both {
		what = "the monitor and the member of " + at.name
	}
	return process(kind, what, at.monitor, func() {
		_ = at.monitor.Process.Kill()
		_ = at.monitor.Wait()
		if both {
			at.inner.killMember()
		}
	}, func() {
		r.startMonitor(at)
		if both {
			at.inner.joinAgain(r.t)
		}
	})
}

// badWays are what befalls the ways of a machine.
var badWays = []struct {
	what      string
	out, into wire
}{
	{"nothing reaches or leaves", wire{cut: true}, wire{cut: true}},
	{"nothing leaves", wire{cut: true}, wire{}},
	{"nothing reaches", wire{}, wire{cut: true}},
	{"a third is lost from and to", wire{loss: 0.3}, wire{loss: 0.3}},
	{"300 ms later from and to", wire{delay: 300 * time.Millisecond}, wire{delay: 300 * time.Millisecond}},
}

func (r *fleetRounds) onWays(kind int, what string, n *network) roundFault {
	bad := badWays[kind]
	return roundFault{what: bad.what + " " + what, network: true, begin: func() {
		r.lan.set(bad.out, r.lan.outOf(n)...)
		r.lan.set(bad.into, r.lan.into(n)...)
	}, end: func() { r.lan.set(wire{}, append(r.lan.outOf(n), r.lan.into(n)...)...) }}
}

// pairCut cuts the ways between a machine and others.
func (r *fleetRounds) pairCut(what string, n *network, others ...*network) roundFault {
	var ways []way
	for _, one := range others {
		ways = append(ways, r.lan.between(n, one)...)
	}
	return roundFault{what: "cut the ways between " + what, network: true, begin: func() { r.lan.set(wire{cut: true}, ways...) }, end: func() { r.lan.set(wire{}, ways...) }}
}

// choose chooses a fault: each kind comes once, in an order by chance, before any comes again.
func (r *fleetRounds) choose(dies *place) roundFault {
	all := r.faultsOf()
	if len(r.order) == 0 {
		r.order = r.chance.Perm(len(all))
	}
	next := r.order[0]
	r.order = r.order[1:]
	return all[next](dies)
}

// round is one round: a fault, and while it lasts an agent that has to be recovered, one that people have to be told of, and commands.
func (r *fleetRounds) round(number int) {
	t := r.t
	at := r.calmPlaces()
	dies := &roundAgent{at: at[0], name: fmt.Sprintf("worker%d", number)}
	tells := &roundAgent{at: at[1], name: fmt.Sprintf("alarm%d", number), policy: ", policy: {crashed: [escalate]}"}
	asks := r.chance.Perm(len(r.places))
	f := r.choose(dies.at)
	after, lasts := time.Duration(max(0, r.chance.IntN(4000)-2000))*time.Millisecond, time.Duration(r.chance.IntN(6000))*time.Millisecond
	if f.network && number%longEach == 0 {
		lasts = longFault
		if f.at != nil {
			r.away[f.at.name]++
		}
	}
	r.mended, r.told = append(r.mended, dies), append(r.told, tells)
	for _, a := range []*roundAgent{dies, tells} {
		a.start(t)
	}
	for _, p := range r.places {
		p.declare(t, slices.DeleteFunc([]*roundAgent{dies, tells}, func(a *roundAgent) bool { return a.at != p })...)
		p.watches(t)
	}
	t.Logf("round %d: %s after %s for %s; %s on %s dies, people are to be told of %s on %s, %s asks", number, f.what, after, lasts, dies.name, dies.at.name, tells.name, tells.at.name, r.places[asks[0]].name)
	var all sync.WaitGroup
	struck := make(chan struct{})
	all.Go(func() { // half of the time before they die, else while they are recovered, and people told
		time.Sleep(after)
		f.begin()
		close(struck)
		time.Sleep(lasts)
		f.end()
	})
	if after == 0 {
		<-struck
	}
	if !dies.kill() || !tells.kill() {
		t.Errorf("round %d: an agent is dead already", number)
	}
	begun := time.Now()
	for _, p := range at {
		p.deaths = append(p.deaths, begun)
	}
	var recovered, restarted, acked time.Duration
	var refused []string // what was said instead of a restart
	all.Go(func() {
		if within(backWithin, func() bool { return len(dies.starts()) > 1 }) {
			recovered = time.Since(begun)
		}
	})
	all.Go(func() {
		for restarted == 0 && time.Since(begun) < backWithin {
			out, err := r.places[asks[0]].does("restart", r.places[1].name+"/one", "--fleet")
			if err == nil {
				r.asked++
				restarted = time.Since(begun)
				return
			}
			r.maybe++ // it may have happened
			refused = append(refused, rounded(time.Since(begun)).String()+": "+lastLine(out))
			time.Sleep(200 * time.Millisecond)
		}
	})
	all.Go(func() {
		for acked == 0 && time.Since(begun) < backWithin {
			if _, err := r.places[asks[1]].does("ack", tells.name, "--fleet"); err == nil {
				acked = time.Since(begun)
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
	all.Wait()
	if restarted > slowCommand {
		t.Logf("round %d: instead of a restart %s was told %q", number, r.places[asks[0]].name, refused)
	}
	if recovered == 0 || restarted == 0 || acked == 0 {
		t.Fatalf("round %d: recovered after %s, restarted after %s, acknowledged after %s; 0 is never", number, recovered, restarted, acked)
	}
	if out, err := tells.at.does("ack"); err != nil || !strings.Contains(out, "acknowledged") || !strings.Contains(out, tells.name) {
		t.Fatalf("round %d: an acknowledgement that was answered is lost on %s: %v\n%s", number, tells.at.name, err, out)
	}
	seen := r.allSeen(number, begun)
	t.Logf("round %d: recovered after %s, restarted after %s, acknowledged after %s, all seen after %s", number, rounded(recovered), rounded(restarted), rounded(acked), rounded(seen))
	if f.leader {
		r.times.recovered = append(r.times.recovered, recovered)
		r.times.restarted = append(r.times.restarted, restarted)
		r.times.acked = append(r.times.acked, acked)
		r.times.seen = append(r.times.seen, seen)
	}
	r.check(number)
}

// slowCommand is from when on a round tells what stood in the way of a command.
const slowCommand = 10 * time.Second

// lastLine is the last line of a text.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// allSeen waits until each machine has heard of each after a moment, and all hubs are there.
func (r *fleetRounds) allSeen(number int, since time.Time) time.Duration {
	r.t.Helper()
	late := ""
	ok := func() bool {
		for _, p := range r.places {
			s := p.sees()
			if at := slices.IndexFunc(s.Hubs, func(h hubState) bool { return !h.Connected }); at >= 0 || len(s.Hubs) != 3 || len(s.Hosts) != len(r.places) {
				late = fmt.Sprintf("the hubs and machines that %s sees: %+v", p.name, s)
				return false
			}
			for _, h := range s.Hosts {
				if h.State != "connected" || !h.Heard.After(since.Add(r.clockOf(h.Name))) {
					late = fmt.Sprintf("%s as %s sees it: %s", h.Name, p.name, h.State)
					return false
				}
			}
		}
		return true
	}
	if !within(backWithin, ok) {
		r.t.Fatalf("round %d: not everything is seen again: %+v", number, r.places[0].sees())
	}
	r.t.Logf("round %d: the last to be seen was %s", number, late)
	return time.Since(since)
}

// clockOf is how far the clock of a machine is off.
func (r *fleetRounds) clockOf(name string) time.Duration {
	return r.places[slices.IndexFunc(r.places, func(p *place) bool { return p.name == name })].clock
}

// check looks that nothing was done twice, and nothing forgotten.
func (r *fleetRounds) check(number int) {
	t := r.t
	t.Helper()
	journals := map[*place]string{}
	for _, p := range r.places {
		text, _ := os.ReadFile(p.path("state/outlive/agents/improvement-log.md")) // it comes with the first entry
		journals[p] = string(text)
	}
	messages := r.people.phone.Messages()
	told := func(name string) (n int) {
		for _, m := range messages {
			if strings.Contains(m.Text, name+" ") && !strings.Contains(m.Text, "works again") {
				n++
			}
		}
		return n
	}
	for _, a := range r.mended {
		if n := len(a.starts()) - 1; n != 1 {
			t.Errorf("round %d: %s has died once and was started %d times after it", number, a.name, n)
		}
		done := 0
		for entry := range strings.SplitSeq(journals[a.at], "\n### ") {
			if strings.Contains(entry, " — "+a.name+" ") && strings.Contains(entry, "- **Action:** restart") {
				done++
			}
		}
		if done != 1 {
			t.Errorf("round %d: %s has died once, and the journal has %d recoveries:\n%s", number, a.name, done, journals[a.at])
		}
		if n := told(a.name); n != 0 {
			t.Errorf("round %d: people are told of %s, which was recovered", number, a.name)
		}
	}
	for _, a := range r.told {
		if n := told(a.name); n != 1 {
			t.Errorf("round %d: %s has died once, and people were told %d times: %+v", number, a.name, n, messages)
		}
	}
	ofMachines := map[string]int{}
	for _, m := range messages {
		if !strings.Contains(m.Text, "from the fleet") && !strings.Contains(m.Text, "in the fleet") || strings.Contains(m.Text, "works again") {
			continue
		}
		name := "" // or it is of several
		for _, p := range r.places {
			if strings.Contains(m.Text, "The machine "+p.name+" ") {
				name = p.name
			}
		}
		if ofMachines[name]++; ofMachines[name] > r.away[name] {
			t.Errorf("round %d: people are told of a machine that was away for a moment: %q", number, m.Text)
		} else {
			t.Logf("round %d: people were told of a machine that was cut off for %s: %q", number, longFault, m.Text)
		}
	}
	if n := r.places[1].restarts(t); n < r.asked || n > r.asked+r.maybe {
		t.Errorf("round %d: %d restarts were answered, %d answers were lost, and there were %d", number, r.asked, r.maybe, n)
	}
	if t.Failed() {
		t.FailNow()
	}
}

// explain shows what monitors, members and hubs have said, if the test has failed.
func (r *fleetRounds) explain() {
	if !r.t.Failed() {
		return
	}
	show := func(j *joined, file string) {
		text, _ := os.ReadFile(j.path(file)) // it may not be there
		var lines []string
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "Monitor cycle complete") {
				lines = append(lines, line)
			}
		}
		r.t.Logf("%s of %s:\n%s", file, j.name, strings.Join(lines[max(0, len(lines)-30):], ""))
	}
	for _, p := range r.places {
		show(p.joined, "monitor.log")
		show(p.joined, "member.log")
		show(p.joined, "state/outlive/agents/improvement-log.md")
	}
	for _, h := range r.hubs.hubs {
		show(h, "hub.log")
	}
	r.t.Logf("messages: %+v", r.people.phone.Messages())
}

// report says how long things took after the leader was lost.
func (r *fleetRounds) report() {
	for what, list := range map[string][]time.Duration{
		"an agent was recovered": r.times.recovered, "a server was restarted by another machine": r.times.restarted,
		"an incident was acknowledged by another machine": r.times.acked, "all machines had heard all others": r.times.seen,
	} {
		if len(list) > 0 {
			slices.Sort(list)
			r.t.Logf("after the leader's fault %s: p50 %s, p99 %s, of %d", what, rounded(list[len(list)/2]), rounded(list[min(len(list)-1, len(list)*99/100)]), len(list))
		}
	}
}

// Whatever is killed, stopped or cut off for a while: each agent is recovered once for one death, people are told of each incident once, and
// a command that was answered was carried out.
func TestFleetRounds(t *testing.T) {
	t.Parallel()
	many, seed := numberFrom("OUTLIVE_E2E_ROUNDS", fewRounds), numberFrom("OUTLIVE_E2E_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("OUTLIVE_E2E_SEED=%d OUTLIVE_E2E_ROUNDS=%d", seed, many)
	l := newLAN(t, 3+len(members))
	chance := rand.New(rand.NewPCG(uint64(seed), 1))
	if wrongClocks() == "" {
		t.Log("all clocks are the same: OUTLIVE_CLOCK_BIN names no outlive whose clock can be set")
	} else {
		hubs, others := chance.Perm(3), chance.Perm(len(members))
		for n, off := range clocks {
			l.machines[hubs[n]].clock, l.machines[3+others[n]].clock = off, off
		}
	}
	h, f := newHubs(t, l.machines[:3]...)
	r := &fleetRounds{t: t, lan: l, away: map[string]int{}, chance: chance, hubs: h, people: newPeople(t)}
	for n, name := range members {
		p := &place{network: l.machines[3+n]}
		p.inner = f.joinAs(t, &joined{workspace: newWorkspace(t), name: name, inside: []string{"ip", "netns", "exec", p.network.name}, clock: p.network.clock})
		p.joined = &joined{workspace: p.inner.workspace, name: name, clock: p.network.clock}
		r.places = append(r.places, p)
		p.declare(t)
		r.startMonitor(p)
		t.Cleanup(func() { _ = p.monitor.Process.Kill(); _ = p.monitor.Wait(); p.declare(t) }) // the monitor first, which would start agents anew
		p.says(t, "monitor.log", `Monitor cycle complete`)
	}
	r.places[1].serve(t, "one")
	r.allSeen(0, time.Now())
	t.Cleanup(r.report)
	t.Cleanup(r.explain)
	for n := range many {
		r.round(n + 1)
	}
}

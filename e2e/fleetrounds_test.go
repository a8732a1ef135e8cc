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

// How many rounds TestFleetRounds goes: OUTLIVE_E2E_ROUNDS. OUTLIVE_TEST_SEED says which.
const fewRounds = 3

// Each longEach-th round a fault of the network, or a gateway that is stopped, lasts for longFault: less than the silence after which people
// are told, and more than a gateway's lease.
const (
	longEach  = 3
	longFault = 25 * time.Second
)

// clocks are how far those of three of the members are off, by chance which.
var clocks = []time.Duration{3 * time.Minute, -4 * time.Minute, 90 * time.Second}

// members are the machines of the rounds that are no servers of the fleet.
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

// fleetRounds are the servers and machines that are killed.
type fleetRounds struct {
	t           *testing.T
	chance      *rand.Rand
	lan         *lan
	cluster     *natsCluster
	places      []*place
	gateways    *fleetGateways
	people      *people
	order       []int          // in which the kinds of faults come next
	away        map[string]int // how often a machine was cut off for so long that people may be told of it
	mended      []*roundAgent  // of all rounds
	told        []*roundAgent
	asked       int         // restarts that were acknowledged
	maybe       int         // those whose answer was lost
	afterLeader []*oneRound // those in which the server that leads had a fault
}

func (r *fleetRounds) startMonitor(p *place) {
	p.monitor = p.command("monitor", "--answers", "off", "--log-level", "debug")
	phone := r.people.phone
	p.monitor.Env = append(p.monitor.Env, "PIV_MONITOR_INTERVAL_MS=1000", "TELEGRAM_BOT_TOKEN="+phone.Token, "TELEGRAM_CHAT_ID="+chatName, "TELEGRAM_API_URL="+phone.URL())
	if err := p.launch("monitor.log", p.monitor); err != nil {
		r.t.Fatal(err)
	}
}

// does runs outlive on a machine.
func (p *place) does(args ...string) (string, error) {
	out, err := p.command(args...).CombinedOutput()
	return string(out), err
}

// oneRound is a fault, and while it lasts an agent that has to be recovered, one that people have to be told of, commands, and calls.
type oneRound struct {
	*fleetRounds
	number       int
	fault        roundFault
	after, lasts time.Duration // from the beginning on
	dies, tells  *roundAgent
	asks         []int // who restarts a server, and who acknowledges

	begun                                     time.Time
	recovered, restarted, acked, called, seen time.Duration // since then; 0: never
	refused                                   []string      // what was said instead of a restart
	calls, failed                             int
}

// plan chooses what happens in a round, and starts its agents.
func (r *fleetRounds) plan(number int) *oneRound {
	at := r.calmPlaces()
	o := &oneRound{fleetRounds: r, number: number, asks: r.chance.Perm(len(r.places)),
		dies:  &roundAgent{at: at[0], name: fmt.Sprintf("worker%d", number)},
		tells: &roundAgent{at: at[1], name: fmt.Sprintf("alarm%d", number), policy: ", policy: {crashed: [escalate]}"},
	}
	o.fault = r.choose(o.dies.at)
	o.after, o.lasts = time.Duration(max(0, r.chance.IntN(4000)-2000))*time.Millisecond, time.Duration(r.chance.IntN(6000))*time.Millisecond
	if o.fault.long && number%longEach == 0 {
		o.lasts = longFault
		if o.fault.at != nil {
			r.away[o.fault.at.name]++
		}
	}
	r.mended, r.told = append(r.mended, o.dies), append(r.told, o.tells)
	both := []*roundAgent{o.dies, o.tells}
	for _, a := range both {
		a.start(r.t)
	}
	for _, p := range r.places {
		p.declare(r.t, slices.DeleteFunc(slices.Clone(both), func(a *roundAgent) bool { return a.at != p })...)
		p.watches(r.t)
	}
	return o
}

// round is one round.
func (r *fleetRounds) round(number int) {
	t, o := r.t, r.plan(number)
	t.Logf("round %d: %s after %s for %s; %s on %s dies, people are to be told of %s on %s, %s asks", number, o.fault.what, o.after, o.lasts, o.dies.name, o.dies.at.name, o.tells.name, o.tells.at.name, r.places[o.asks[0]].name)
	before := r.gateways.clients.moved()
	o.happens()
	if o.restarted > slowCommand {
		t.Logf("round %d: instead of a restart %s was told %q", number, r.places[o.asks[0]].name, o.refused)
	}
	if o.recovered == 0 || o.restarted == 0 || o.acked == 0 {
		t.Fatalf("round %d: recovered after %s, restarted after %s, acknowledged after %s; 0 is never", number, o.recovered, o.restarted, o.acked)
	}
	if out, err := o.tells.at.does("ack"); err != nil || !strings.Contains(out, "acknowledged") || !strings.Contains(out, o.tells.name) {
		t.Fatalf("round %d: an acknowledgement that was answered is lost on %s: %v\n%s", number, o.tells.at.name, err, out)
	}
	o.seen = r.allSeen(number, o.begun)
	now := make(chan struct{})
	close(now)
	r.gateways.clients.until(t, now, fmt.Sprintf("after round %d", number), 0, 1)
	t.Logf("round %d: recovered after %s, restarted after %s, acknowledged after %s, all seen after %s; of %d calls the slowest took %s, %d failed, and sessions went on in another process %d times", number,
		rounded(o.recovered), rounded(o.restarted), rounded(o.acked), rounded(o.seen), o.calls, rounded(o.called), o.failed, r.gateways.clients.moved()-before)
	if o.fault.leader {
		r.afterLeader = append(r.afterLeader, o)
	}
	r.check(number)
}

// happens has the fault and all else of the round happen, and returns when each has its end.
func (o *oneRound) happens() {
	var all sync.WaitGroup
	struck, over := make(chan struct{}), make(chan struct{})
	all.Go(func() { // half of the time before they die, else while they are recovered, and people told
		defer close(over)
		time.Sleep(o.after)
		o.fault.begin()
		close(struck)
		time.Sleep(o.lasts)
		o.fault.end()
	})
	if o.after == 0 {
		select {
		case <-struck:
		case <-over: // it has failed
		}
	}
	if !o.dies.kill() || !o.tells.kill() {
		o.t.Errorf("round %d: an agent is dead already", o.number)
	}
	o.begun = time.Now()
	for _, a := range []*roundAgent{o.dies, o.tells} {
		a.at.deaths = append(a.at.deaths, o.begun)
	}
	all.Go(func() { o.called, o.calls, o.failed = o.callUntil(over, fmt.Sprintf("round %d", o.number)) })
	all.Go(func() {
		if within(backWithin, func() bool { return len(o.dies.starts()) > 1 }) {
			o.recovered = time.Since(o.begun)
		}
	})
	all.Go(o.restart)
	all.Go(func() {
		o.acked = o.untilDone(func() bool {
			_, err := o.places[o.asks[1]].does("ack", o.tells.name, "--fleet")
			return err == nil
		})
	})
	all.Wait()
}

// restart has a machine restart a server on another one.
func (o *oneRound) restart() {
	o.restarted = o.untilDone(func() bool {
		out, err := o.places[o.asks[0]].does("restart", o.places[1].name+"/one", "--fleet")
		if err == nil {
			o.asked++
			return true
		}
		o.maybe++ // it may have happened
		o.refused = append(o.refused, rounded(time.Since(o.begun)).String()+": "+lastLine(out))
		return false
	})
}

// untilDone asks again and again, and returns when the answer was given, from the beginning on; 0: never.
func (o *oneRound) untilDone(ask func() bool) time.Duration {
	for time.Since(o.begun) < backWithin {
		if ask() {
			return time.Since(o.begun)
		}
		time.Sleep(200 * time.Millisecond)
	}
	return 0
}

// slowCommand is from when on a round tells what stood in the way of a command.
const slowCommand = 10 * time.Second

// lastLine is the last line of a text.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func rounded(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// allSeen waits until each machine has heard of each after a moment, and all servers are there.
func (r *fleetRounds) allSeen(number int, since time.Time) time.Duration {
	r.t.Helper()
	late := ""
	ok := func() bool {
		for _, p := range r.places {
			s := p.sees()
			if len(s.Hosts) != len(r.places) {
				late = fmt.Sprintf("the machines that %s sees: %+v", p.name, s)
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
	r.cluster.complete(r.t, 3)
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

// explain shows what monitors and members have said, if the test has failed.
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
		show(p.joined, "stderr.log")
		show(p.joined, "state/outlive/agents/improvement-log.md")
	}
	r.t.Logf("messages: %+v", r.people.phone.Messages())
}

// report says how long things took after the leader was lost.
func (r *fleetRounds) report() {
	for what, of := range map[string]func(*oneRound) time.Duration{
		"an agent was recovered":                          func(o *oneRound) time.Duration { return o.recovered },
		"a server was restarted by another machine":       func(o *oneRound) time.Duration { return o.restarted },
		"an incident was acknowledged by another machine": func(o *oneRound) time.Duration { return o.acked },
		"all machines had heard all others":               func(o *oneRound) time.Duration { return o.seen },
		"the slowest call was answered":                   func(o *oneRound) time.Duration { return o.called },
	} {
		var list []time.Duration
		for _, o := range r.afterLeader {
			list = append(list, of(o))
		}
		if slices.Sort(list); len(list) > 0 {
			r.t.Logf("after the leader's fault %s: p50 %s, p99 %s, of %d", what, rounded(list[len(list)/2]), rounded(list[min(len(list)-1, len(list)*99/100)]), len(list))
		}
	}
}

// Whatever is killed, stopped or cut off for a while: each agent is recovered once for one death, people are told of each incident once, and
// a command that was answered was carried out.
func TestFleetRounds(t *testing.T) {
	needFull(t, "faults drawn at random, for minutes")
	t.Parallel()
	many, seed := numberFrom("OUTLIVE_E2E_ROUNDS", fewRounds), testSeed(t)
	t.Logf("OUTLIVE_TEST_SEED=%d OUTLIVE_E2E_ROUNDS=%d", seed, many)
	l := newLANWithUs(t, 3+len(members))
	chance := rand.New(rand.NewPCG(seed, 1))
	if wrongClocks() == "" {
		t.Log("all clocks are the same: OUTLIVE_CLOCK_BIN names no outlive whose clock can be set")
	} else {
		others := chance.Perm(len(members))
		for n, off := range clocks {
			l.machines[3+others[n]].clock = off
		}
	}
	cluster, f := newCluster(t, l.machines[:3]...)
	r := &fleetRounds{t: t, lan: l, away: map[string]int{}, chance: chance, cluster: cluster, people: newPeople(t)}
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
	t.Cleanup(r.report)
	t.Cleanup(r.explain)
	r.places[1].serve(t, "one")
	r.startGateways(t)
	r.allSeen(0, time.Now())
	for n := range many {
		r.round(n + 1)
	}
}

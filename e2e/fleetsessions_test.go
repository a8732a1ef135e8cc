package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// takenOverWithin is how late at most another core has the sessions whose machine has vanished: the lease, and the look for it.
const takenOverWithin = 25 * time.Second

// coreOfFleet is a machine of a fleet that may have the sessions of a gateway.
type coreOfFleet struct {
	*joined
	network *network
	argv    []string
	cmd     *exec.Cmd
}

func (c *coreOfFleet) startCore(t *testing.T) {
	t.Helper()
	c.cmd = c.joined.start(t, "core.log", c.argv...)
}

// changeConfig writes something into the configuration that changes nothing else.
func (c *coreOfFleet) changeConfig(t *testing.T) {
	t.Helper()
	at := c.path("outlive.yaml")
	text, err := os.ReadFile(at)
	if err == nil {
		err = os.WriteFile(at, append(text, "# changed\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// takes is how often this core has begun to take replicas.
func (c *coreOfFleet) takes() int { return c.said("Waiting for replicas at") }

func (c *coreOfFleet) said(what string) int {
	text, _ := os.ReadFile(c.path("core.log")) // it is empty, then
	return strings.Count(string(text), what)
}

// coresOfFleet are two of them, with two replicas on machines of their own, and clients.
type coresOfFleet struct {
	*replicasApart
	cores   [2]*coreOfFleet
	clients []*countingSession
}

// countingSession is a client's session, with a server that counts in the memory of its process.
type countingSession struct {
	*rawSession
	count  int // the last answer
	failed int // calls before it that had no answer
	calls  int // made so far: each has a number that no other session's has
	takes  int // how often a core had begun before it was asked for
}

// newCoresOfFleet starts the first core and then the second one, which waits, and the replicas.
func newCoresOfFleet(t *testing.T, l *lan, cores [2]*coreOfFleet, replicas ...*network) *coresOfFleet {
	t.Helper()
	c := &coresOfFleet{replicasApart: &replicasApart{lan: l}, cores: cores}
	at := []string{cores[0].network.address + ":7420", cores[1].network.address + ":7420"}
	secret := func(w *workspace) string {
		path := w.path("secret.txt")
		if err := os.WriteFile(path, []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := func(w *workspace) string {
		return w.gatewayConfig(t, []string{"names: never", "sessions: fleet", "auth: {bearer: [" + tokenOfMachines + "]}"}, backend{name: "s", server: servers()["go-legacy"]})
	}
	for n, one := range cores {
		one.argv = []string{"gateway", "-c", config(one.workspace), "--audit", one.path("audit.log"), "--core", "--core-listen", at[n], "--core-secret-file", secret(one.workspace)}
		one.startCore(t)
		one.says(t, "core.log", [...]string{"Waiting for replicas at", "The machine " + cores[0].name + " has the sessions of this gateway; this core waits for its turn"}[n])
	}
	w := newWorkspace(t) // of the replicas
	var all []*gateway
	for _, n := range replicas {
		all = append(all, w.listenBy(t, w.apart(n, config(w), "--listen", n.address+":8080", "--replica", "--core-at", strings.Join(at, ","), "--core-secret-file", secret(w))))
	}
	c.replicas = w.inFrontOf(t, all, http.Header{"Authorization": {"Bearer " + tokenOfMachines}})
	return c
}

// countLine counts in the memory of a server's process.
const countLine = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"count","arguments":{}}}`

var counted = regexp.MustCompile(`"text":"(\d+)"`)

// takes is how often a core has begun.
func (c *coresOfFleet) takes() int { return c.cores[0].takes() + c.cores[1].takes() }

// open opens sessions, each of which has counted once.
func (c *coresOfFleet) open(t *testing.T, many int) {
	t.Helper()
	for n := range many {
		s := &countingSession{rawSession: c.at(n%2, ""), takes: c.takes()}
		s.mustHave(t, helloLine, `"protocolVersion"`)
		c.clients = append(c.clients, s)
	}
	if lost := c.countAll(t, "at the beginning"); lost != 0 {
		t.Errorf("%d calls have failed at the beginning", lost)
	}
}

// countAll has each session count until it has an answer, at one replica after the other. Its session must be there each time. It returns how
// many calls have failed, of which each session may have one.
func (c *coresOfFleet) countAll(t *testing.T, when string) (failed int) {
	t.Helper()
	var all sync.WaitGroup
	var lost atomic.Int64
	for n, s := range c.clients {
		all.Go(func() {
			var why []string
			for try := 0; ; try++ {
				before := c.takes()
				s.calls++
				id := fmt.Sprint(n*1_000_000 + s.calls)
				status, text, err := c.at((n+try)%2, s.id).post(strings.Replace(countLine, `"id":5`, `"id":`+id, 1))
				if m := counted.FindStringSubmatch(text); err == nil && m != nil {
					if !strings.Contains(text, `"id":`+id+",") && !strings.Contains(text, `"id":`+id+"}") {
						t.Errorf("%s: session %d asked with the id %s, and has the answer %.300s", when, n, id, text)
					}
					if wrong := s.counts(m[1], try, before, c.takes()); wrong != "" {
						t.Errorf("%s: session %d: %s; failed before: %q", when, n, wrong, why)
					}
					return
				}
				lost.Add(1)
				why = append(why, fmt.Sprintf("%s: %d %.300s %v", time.Now().Format(time.TimeOnly), status, text, err))
				if status == http.StatusNotFound || try == 1 {
					t.Errorf("%s: session %d: %q", when, n, why)
					return
				}
			}
		})
	}
	all.Wait()
	return int(lost.Load())
}

// counts says what is wrong with an answer after failed calls, each of which may have been counted before its answer was lost. A new process
// of the server begins at 1, and there is one only if a core has begun since the last call: one that was stopped, and has lost the sessions,
// may still answer what it had been asked before.
func (s *countingSession) counts(answer string, failed, before, takes int) (wrong string) {
	count, _ := strconv.Atoi(answer) // it is digits
	began := takes > s.takes
	if !(count > s.count && count <= s.count+1+failed) && !(began && count <= 1+failed) {
		wrong = fmt.Sprintf("it counts %d after %d, when %d calls had failed; a core has begun since: %t", count, s.count, failed, began)
	}
	s.count, s.failed, s.takes = count, failed, before
	return wrong
}

// allNew reports whether all processes of servers are new: the machine that had the others is gone.
func (c *coresOfFleet) allNew() bool {
	return !slices.ContainsFunc(c.clients, func(s *countingSession) bool { return s.count > 1+s.failed })
}

// countsNow are the last answers.
func (c *coresOfFleet) countsNow() (all []int) {
	for _, s := range c.clients {
		all = append(all, s.count)
	}
	return all
}

// fails has something happen to the core that has the sessions, and each session call meanwhile.
func (c *coresOfFleet) fails(t *testing.T, what string, next *coreOfFleet, within time.Duration, happens func()) {
	t.Helper()
	before, begun := next.takes(), time.Now()
	happens()
	lost := c.countAll(t, what)
	took := time.Since(begun)
	if next.takes() == before {
		t.Errorf("%s: %s has not taken over", what, next.name)
	}
	if !c.allNew() {
		t.Errorf("%s: some servers still count in the memory of before: %v", what, c.countsNow())
	}
	if took > within+silence/2 { // a call waits until its replica has noticed, and until its server has started
		t.Errorf("%s: all had their answers after %v", what, took)
	}
	t.Logf("%s: all %d sessions went on after %v; %d calls have failed", what, len(c.clients), took.Round(100*time.Millisecond), lost)
}

// TestSessionsOutliveTheirMachine: two cores on two machines of a fleet, and two replicas on others. The machine that has the sessions vanishes,
// comes back, is stopped as it should be, and its core is stopped and wakes late: each time the other one goes on with all sessions, a real SDK's
// subscription and log level among them, and no session is lost or has two owners.
func TestSessionsOutliveTheirMachine(t *testing.T) {
	needFull(t, "machines that vanish, and how soon another one goes on")
	t.Parallel()
	needOutlive(t)
	needFull(t, "a lease of 20 s has to run out twice, and it is judged how long sessions wait; internal/fleet/sessions has what is decided")
	l := newLANWithUs(t, 4)
	f := newFleet(t, l.machines[4].address+":0")
	on := func(name string, n *network) *coreOfFleet {
		return &coreOfFleet{joined: f.join(t, name, "ip", "netns", "exec", n.name), network: n}
	}
	a, b := on("a", l.machines[0]), on("b", l.machines[1])
	c := newCoresOfFleet(t, l, [2]*coreOfFleet{a, b}, l.machines[2:4]...)
	a.shows(t, `^gateway +serving .*\n`, "status")
	b.shows(t, `^gateway +standby .*\ngateway: waits for its turn: The machine a has the sessions of this gateway$`, "status")
	c.open(t, 20)
	s := c.join(t, gatewayClients()["go-legacy"], c.url())
	s.do(t, step{"op": "subscribe", "uri": item})
	s.do(t, step{"op": "level", "level": "error"})
	subscribed := func(when string) {
		t.Helper()
		from := s.mark()
		if !eventually(func() bool {
			_, ch := s.begin(step{"op": "call", "tool": "touch", "args": map[string]any{"uri": item}})
			_ = s.await(t, when, ch) // it may fail once
			return within(500*time.Millisecond, func() bool {
				return slices.ContainsFunc(s.seen(from), notification("notifications/resources/updated", item))
			})
		}) {
			t.Errorf("%s: subscribed and not told; it saw %v", when, s.seen(from))
		}
	}
	subscribed("at the beginning")

	_ = b.cmd.Process.Signal(syscall.SIGHUP)
	b.says(t, "core.log", "The configuration has no mistakes: .*; it is used when this core's turn comes")
	c.fails(t, "the machine of the core vanishes", b, takenOverWithin, func() {
		b.changeConfig(t)
		c.off(0)
	})
	b.says(t, "core.log", "Configuration read again, since it has changed while this core waited")
	subscribed("after the machine vanished")
	if !eventually(func() bool { return a.said("This core ends: ") == 1 }) {
		t.Error("the core that was cut off does not end by itself")
	}
	c.on(0)
	_ = a.cmd.Wait()
	if code := a.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("the core that was cut off ends with %d", code)
	}
	a.startCore(t)
	a.says(t, "core.log", "The machine b has the sessions of this gateway; this core waits for its turn")

	c.fails(t, "the core is stopped as it should be", a, 5*time.Second, func() { ended(b.cmd) })
	b.startCore(t)
	b.says(t, "core.log", "The machine a has the sessions of this gateway; this core waits for its turn(?s:.*)The machine a has")

	c.fails(t, "the core is stopped by SIGSTOP", b, takenOverWithin, func() { _ = a.cmd.Process.Signal(syscall.SIGSTOP) })
	_ = a.cmd.Process.Signal(syscall.SIGCONT)
	_ = a.cmd.Wait()
	if lost := c.countAll(t, "after the other core woke up"); lost != 0 || c.allNew() {
		t.Errorf("after the other core woke up %d calls have failed, and the sessions count %v", lost, c.countsNow())
	}
	subscribed("after the other core woke up")

	before := b.takes()
	if out, err := b.command("upgrade", "gateway").CombinedOutput(); err != nil {
		t.Errorf("upgrade: %v %s", err, out)
	}
	if !eventually(func() bool { return b.takes() == before+1 }) || b.said("The machine a has the sessions of this gateway; this core waits for its turn") != 2 {
		t.Errorf("after its upgrade it takes replicas %d times, and has waited for a %d times", b.takes(), b.said("The machine a has the sessions"))
	}
	c.countAll(t, "after an upgrade in place")

	c.fails(t, "the core is killed and starts again", b, 5*time.Second, func() {
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait()
		b.startCore(t)
	})
	if status, text, err := c.at(0, "0123456789abcdef").post(countLine); status != http.StatusNotFound {
		t.Errorf("a session that nobody has: %d %s %v", status, text, err)
	}
	want(t, b.run(t, 0, "fleet", "leave"), `has left(?s:.*)A gateway here has its sessions in the fleet`)
	c.stopAll(t)
}

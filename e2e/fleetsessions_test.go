package e2e

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startAfter is how long after another gateway may have a session its server answers at most.
const startAfter = 10 * time.Second

// startGateway starts a gateway on a machine of a fleet, with its sessions in that.
func (j *joined) startGateway(t *testing.T, n *network) *gateway {
	t.Helper()
	config := j.gatewayConfig(t, []string{"names: never", "sessions: fleet", "auth: {bearer: [" + tokenOfGateways + "]}"}, backend{name: "s", server: servers()["go-legacy"]})
	program, more := j.outlive()
	return j.listenBy(t, slices.Concat([]string{"ip", "netns", "exec", n.name, "env"}, more, []string{program, "gateway", "-c", config, "--audit", j.path("audit.log"),
		"--listen", n.address + ":8080", "--peer-listen", n.address + ":7420", "--peer-secret-file", j.secretFile(t)}))
}

// fleetGateways are gateways on machines of a fleet, a load balancer in front of them, and clients that come there.
type fleetGateways struct {
	lan      *lan
	at       []*joined
	networks []*network
	all      []*gateway
	url      string // of the load balancer
	clients  bumpers
}

func newFleetGateways(t *testing.T, l *lan, at []*joined, networks []*network, clients int) *fleetGateways {
	t.Helper()
	g := &fleetGateways{lan: l, at: at, networks: networks}
	for n, j := range at {
		g.all = append(g.all, j.startGateway(t, networks[n]))
	}
	g.url = inFront(t, g.all, http.Header{"Authorization": {"Bearer " + tokenOfGateways}})
	g.clients = openBumpers(t, clients, g.url)
	return g
}

// off cuts a machine off, and on mends that.
func (g *fleetGateways) off(n int) { g.lan.set(wire{cut: true}, g.ways(n)...) }
func (g *fleetGateways) on(n int)  { g.lan.set(wire{}, g.ways(n)...) }

func (g *fleetGateways) ways(n int) []way {
	return slices.Concat(g.lan.outOf(g.networks[n]), g.lan.into(g.networks[n]))
}

// said is how often gateways have said something.
func (g *fleetGateways) said(what string) (times int) {
	for _, j := range g.at {
		text, _ := os.ReadFile(j.path("stderr.log")) // it is there
		times += strings.Count(string(text), what)
	}
	return times
}

// fails has something happen to a gateway while all clients call. Each may see one failed call. The gateway's sessions go on elsewhere, or
// in its next process, within a time.
func (g *fleetGateways) fails(t *testing.T, what string, soon time.Duration, happens func()) {
	t.Helper()
	moved := g.clients.moved()
	g.clients.times()
	g.clients.while(t, what, 1, 4, happens)
	times := g.clients.times()
	if moved = g.clients.moved() - moved; moved == 0 {
		t.Errorf("%s: all servers still count in the processes of before", what)
	}
	slowest := times[len(times)-1]
	if slowest > soon+startAfter {
		t.Errorf("%s: a call had its answer after %v", what, slowest)
	}
	t.Logf("%s: %d of %d sessions went on in another process; the slowest call took %v", what, moved, len(g.clients), slowest.Round(100*time.Millisecond))
}

// TestSessionsOutliveTheirMachine: three gateways on three machines of a fleet. One machine vanishes and comes back; a gateway is stopped as
// it should be, is stopped and wakes late, is killed and starts again: each time the others go on with its sessions, a real SDK's subscription
// and log level among them, no session is lost, and nobody hears of a former owner.
func TestSessionsOutliveTheirMachine(t *testing.T) {
	needFull(t, "machines that vanish, and how soon others go on: a lease of 20 s has to run out twice; internal/fleet/sessions has what is decided")
	t.Parallel()
	l := newLANWithUs(t, 3)
	f := newFleet(t, l.machines[3].address+":0")
	var at []*joined
	for n, name := range []string{"a", "b", "c"} {
		at = append(at, f.join(t, name, "ip", "netns", "exec", l.machines[n].name))
	}
	a, b := at[0], at[1]
	g := newFleetGateways(t, l, at, l.machines[:3], 18)
	a.shows(t, `^gateway: takes what other gateways pass on at `+l.machines[0].address+`:7420$`, "status")
	s := a.join(t, gatewayClients()["go-legacy"], g.url)
	s.do(t, step{"op": "subscribe", "uri": item})
	s.do(t, step{"op": "level", "level": "error"})
	subscribed := func(when string) {
		t.Helper()
		if !eventually(func() bool {
			from := s.mark()
			_, ch := s.begin(step{"op": "call", "tool": "touch", "args": map[string]any{"uri": item}})
			_ = s.await(t, when, ch) // it may fail once
			return within(500*time.Millisecond, func() bool {
				return slices.ContainsFunc(s.seen(from), notification("notifications/resources/updated", item))
			})
		}) {
			t.Errorf("%s: subscribed and not told; it saw %v", when, s.seen(0))
		}
	}
	subscribed("at the beginning")

	g.fails(t, "a machine vanishes", leaseOver, func() { g.off(0) })
	subscribed("after a machine has vanished")
	a.says(t, "stderr.log", "No sessions can be had here: the fleet could not be reached from here, or this process was stopped")
	g.on(0)
	a.says(t, "stderr.log", "Sessions of the fleet can be had here again")
	g.clients.while(t, "the machine is back", 0, 4, func() {})

	g.fails(t, "a gateway is stopped as it should be", 0, func() { g.all[1].stop2(t) })
	g.all[1] = g.all[1].listenAgain(t)
	subscribed("after a gateway was stopped")

	g.fails(t, "a gateway is stopped by SIGSTOP", leaseOver, func() {
		over := "The gateway that was at " + l.machines[2].address + ":7420 has ended"
		before := g.said(over)
		_ = g.all[2].cmd.Process.Signal(syscall.SIGSTOP)
		if !eventually(func() bool { return g.said(over) > before }) {
			t.Error("nobody notices")
		}
		_ = g.all[2].cmd.Process.Signal(syscall.SIGCONT)
	})
	subscribed("after a gateway woke up late")

	g.fails(t, "a gateway is killed and starts again", 0, func() {
		g.all[0].killed(t)
		g.all[0] = g.all[0].listenAgain(t)
	})
	g.fails(t, "a gateway is upgraded in place", 0, func() { g.all[1].upgrade(t) })
	subscribed("after an upgrade")

	if status, text, err := plain(g.url, "0123456789abcdef", tokenOfGateways).post(slowLine(1, "nobody", 1)); status != http.StatusNotFound {
		t.Errorf("a session that nobody has: %d %s %v", status, text, err)
	}
	g.clients.counted(t, at[0].workspace, at[1].workspace, at[2].workspace)
	want(t, b.run(t, 0, "fleet", "leave"), `has left`)
	for _, one := range g.all {
		one.stop2(t)
	}
	for _, j := range at {
		if !eventually(func() bool { return len(j.processes("gateway -c")) == 0 }) {
			t.Errorf("left over: %v", j.processes("gateway -c"))
		}
	}
}

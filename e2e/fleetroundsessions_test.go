package e2e

import (
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The machines of the rounds that have a core, and those that have a replica, by their numbers.
var roundCores, roundReplicas = [2]int{0, 1}, [2]int{2, 3}

// roundSessions is how many sessions the gateway of the rounds has.
const roundSessions = 6

// roundGateway is a gateway whose sessions are in the fleet of the rounds.
type roundGateway struct {
	*coresOfFleet
	t       *testing.T
	running [2]*gateway // the replicas

	mu   sync.Mutex // of cores[n].cmd
	over bool
	kept sync.WaitGroup
}

func newRoundGateway(t *testing.T, r *fleetRounds) *roundGateway {
	t.Helper()
	var cores [2]*coreOfFleet
	for n, at := range roundCores {
		cores[n] = &coreOfFleet{joined: r.places[at].inner, network: r.places[at].network}
	}
	g := &roundGateway{t: t, coresOfFleet: newCoresOfFleet(t, r.lan, cores, r.places[roundReplicas[0]].network, r.places[roundReplicas[1]].network)}
	copy(g.running[:], g.all)
	g.open(t, roundSessions)
	for _, c := range cores {
		g.kept.Go(func() { g.keep(c) })
	}
	t.Cleanup(func() {
		g.mu.Lock()
		g.over = true
		for _, c := range g.cores {
			_ = c.cmd.Process.Kill()
		}
		g.mu.Unlock()
		g.kept.Wait()
	})
	return g
}

// keep starts a core again whenever it has ended, as a system's manager would.
func (g *roundGateway) keep(c *coreOfFleet) {
	for {
		_ = c.cmd.Wait() // it is written here alone
		g.mu.Lock()
		if g.over {
			g.mu.Unlock()
			return
		}
		cmd := c.command(c.argv...)
		err := c.launch("core.log", cmd)
		c.cmd = cmd
		g.mu.Unlock()
		if err != nil {
			g.t.Errorf("the core of %s does not start again: %v", c.name, err)
			return
		}
		time.Sleep(time.Second) // one that ends at once does so again
	}
}

// serving is the core that has the sessions; while none has, the first.
func (g *roundGateway) serving() *coreOfFleet {
	if out, _ := g.cores[1].command("status").Output(); strings.Contains(string(out), "takes replicas of other machines at") { // it may be about to start
		return g.cores[1]
	}
	return g.cores[0]
}

func (g *roundGateway) signal(c *coreOfFleet, s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = c.cmd.Process.Signal(s)
}

// coreFault befalls the core that has the sessions. One that is killed is started at once.
func (r *fleetRounds) coreFault(kind int) roundFault {
	c := r.gateway.serving()
	f := roundFault{what: processFaults[kind] + " the core of " + c.name, begin: func() { r.gateway.signal(c, syscall.SIGKILL) }, end: func() {}}
	if kind == 1 {
		f.long = true
		f.begin, f.end = func() { r.gateway.signal(c, syscall.SIGSTOP) }, func() { r.gateway.signal(c, syscall.SIGCONT) }
	}
	return f
}

// replicaFault befalls one of the replicas.
func (r *fleetRounds) replicaFault(kind int) roundFault {
	n := r.chance.IntN(len(r.gateway.running))
	one := r.gateway.running[n]
	return process(kind, "the replica of "+r.places[roundReplicas[n]].name, one.cmd, func() { one.killed(r.t) }, func() { r.gateway.running[n] = one.listenAgain(r.t) })
}

// callUntil has all sessions call, again and again, until over is closed, and once more. It returns how long the slowest of the calls has
// taken, how many were made, and how many have failed, of which each may once.
func (g *roundGateway) callUntil(over <-chan struct{}, when string) (slowest time.Duration, made, failed int) {
	for last := false; !last; {
		select {
		case <-over:
			last = true
		case <-time.After(200 * time.Millisecond):
		}
		begun := time.Now()
		failed += g.countAll(g.t, when)
		made += len(g.clients)
		slowest = max(slowest, time.Since(begun))
	}
	return slowest, made, failed
}

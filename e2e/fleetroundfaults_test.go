package e2e

import (
	"os/exec"
	"syscall"
	"time"
)

// roundFault is what befalls one of them in a round.
type roundFault struct {
	what       string
	begin, end func()
	leader     bool   // the server that leads has it
	long       bool   // each longEach-th round it lasts for longFault
	at         *place // that it befalls; nil: it is a server
}

// faultsOf are all kinds of faults. Which of the servers leads is found out when a fault begins its round.
func (r *fleetRounds) faultsOf() (all []func(dies *place) roundFault) {
	for kind := range processFaults {
		all = append(all,
			func(*place) roundFault { return r.serverFault(true, kind) },
			func(*place) roundFault { return r.serverFault(false, kind) },
			func(dies *place) roundFault { return r.memberFault(r.either(dies), kind) },
			func(dies *place) roundFault { return r.monitorFault(r.either(dies), kind) },
			func(*place) roundFault { return r.gatewayFault(kind) })
	}
	for kind := range badWays {
		all = append(all,
			func(*place) roundFault {
				leader := r.leader()
				return r.onWays(kind, "the server that leads", r.cluster.networks[leader]).of(nil, true)
			},
			func(*place) roundFault {
				return r.onWays(kind, "a server that follows", r.cluster.networks[r.follower(r.leader())]).of(nil, false)
			},
			func(dies *place) roundFault {
				at := r.either(dies)
				return r.onWays(kind, "the machine "+at.name, at.network).of(at, false)
			})
	}
	return append(all,
		func(*place) roundFault {
			leader := r.leader()
			return r.pairCut("the server that leads and one that follows", r.cluster.networks[leader], r.cluster.networks[r.follower(leader)]).of(nil, true)
		},
		func(*place) roundFault {
			leader := r.leader()
			return r.pairCut("both servers that follow", r.cluster.networks[(leader+1)%3], r.cluster.networks[(leader+2)%3]).of(nil, false)
		},
		func(dies *place) roundFault {
			at, leader := r.either(dies), r.leader()
			return r.pairCut("the machine "+at.name+" and two servers", at.network, r.cluster.networks[leader], r.cluster.networks[r.follower(leader)]).of(at, false)
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

func (r *fleetRounds) leader() int { return r.cluster.complete(r.t, 3) }

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

func (r *fleetRounds) serverFault(leads bool, kind int) roundFault {
	n, what := r.leader(), "the server that leads"
	if !leads {
		n, what = r.follower(n), "a server that follows"
	}
	one := r.cluster.servers[n]
	return process(kind, what, one.cmd, one.kill, one.start).of(nil, leads)
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
	return roundFault{what: bad.what + " " + what, long: true, begin: func() {
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
	return roundFault{what: "cut the ways between " + what, long: true, begin: func() { r.lan.set(wire{cut: true}, ways...) }, end: func() { r.lan.set(wire{}, ways...) }}
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

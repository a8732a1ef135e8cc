package e2e

import (
	"testing"
	"time"
)

// roundGateways is how many of the machines of the rounds have a gateway, the first ones, and roundSessions how many clients these have.
const roundGateways, roundSessions = 3, 6

func (r *fleetRounds) startGateways(t *testing.T) {
	t.Helper()
	var at []*joined
	var networks []*network
	for _, p := range r.places[:roundGateways] {
		at, networks = append(at, p.inner), append(networks, p.network)
	}
	r.gateways = newFleetGateways(t, r.lan, at, networks, roundSessions)
}

// gatewayFault befalls one of the gateways.
func (r *fleetRounds) gatewayFault(kind int) roundFault {
	g, n := r.gateways, r.chance.IntN(roundGateways)
	f := process(kind, "the gateway of "+g.at[n].name, g.all[n].cmd, func() { g.all[n].killed(r.t) }, func() { g.all[n] = g.all[n].listenAgain(r.t) })
	f.long = kind == 1
	return f
}

// callUntil has all clients of the gateways call, again and again, until over is closed, and once more. It returns how long the slowest of the
// calls that were answered has taken, how many were made, and how many have failed, of which each client may see one.
func (r *fleetRounds) callUntil(over <-chan struct{}, when string) (slowest time.Duration, made, failed int) {
	all := r.gateways.clients
	made = all.made()
	all.times()
	failed = all.until(r.t, over, when, 1, 1)
	if times := all.times(); len(times) > 0 {
		slowest = times[len(times)-1]
	}
	return slowest, all.made() - made, failed
}

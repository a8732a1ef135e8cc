package wire

import "time"

const (
	// spinBelow is the longest usual pause that is worth waiting for awake.
	spinBelow = 60 * time.Microsecond
	// spinSlack is how much longer than usual such a pause may last.
	spinSlack = 10 * time.Microsecond
	// watched is how many descriptors have a rhythm of their own; a relay has four and the wake-up pipe.
	watched = 8
)

// rhythm learns how soon something follows on the traffic of each descriptor. When that is usually a matter of
// microseconds, as between a call and a fast server's answer, falling asleep and being woken costs more than waiting
// awake. When it is not, the loop sleeps at once: a slow server or a thinking client costs nothing.
type rhythm struct {
	served int                    // place in the poll set of what was served last
	pause  [watched]time.Duration // running mean of the pause after it; 0: unknown yet
	luck   [watched]int           // how well waiting awake went lately; below 0 it is not tried
}

const (
	// mostLuck and leastLuck bound luck; misfortune is what a wait in vain costs. On a busy machine the awake waiter
	// takes the processor that its own answer needs, so a few failures must outweigh many successes.
	mostLuck, leastLuck = 4, -200
	misfortune          = 20
)

// woke learns from a sleep of length d; traffic says that it was ended by traffic.
func (r *rhythm) woke(d time.Duration, traffic bool) {
	if !traffic || r.served >= watched {
		return
	}
	p := &r.pause[r.served]
	if *p == 0 {
		*p = 10 * spinBelow
	}
	*p += (min(d, 20*spinBelow) - *p) / 4
	if luck := &r.luck[r.served]; *luck < 0 && d < spinBelow {
		*luck++
	}
}

// waited learns from a wait awake.
func (r *rhythm) waited(inVain bool) {
	luck := &r.luck[r.served]
	if inVain {
		*luck = max(leastLuck, *luck-misfortune)
	} else {
		*luck = min(mostLuck, *luck+1)
	}
}

// patience is how long to wait awake now; 0 is not at all.
func (r *rhythm) patience() time.Duration {
	if r.served >= watched {
		return 0
	}
	if p := r.pause[r.served]; p > 0 && p < spinBelow && r.luck[r.served] >= 0 {
		return p + p/2 + spinSlack
	}
	return 0
}

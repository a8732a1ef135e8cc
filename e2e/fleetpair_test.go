package e2e

import (
	"strings"
	"testing"
	"time"
)

// Two hubs of three do not reach each other, and both reach the third: machines at the one still reach machines at the other, within the time
// that the loss of a hub takes. All of it is as before when they reach each other again.
func TestFleetPairOfHubsIsCut(t *testing.T) {
	needFull(t, "a pair of hubs that are cut, and how soon they answer")
	t.Parallel()
	l := newLAN(t, 6)
	h, f := newHubs(t, l.machines[:3]...)
	var all []*joined
	for n, name := range []string{"a", "b", "c"} {
		all = append(all, f.join(t, name, "ip", "netns", "exec", l.machines[3+n].name))
	}
	here := func(j *joined) *joined { return &joined{workspace: j.workspace, name: j.name} }
	here(all[1]).serve(t, "one")
	asks := func(limit time.Duration, from *joined) (took time.Duration, said string) {
		begun := time.Now()
		if !within(limit, func() bool {
			out, err := from.command("status", "--fleet").CombinedOutput()
			said = string(out)
			return err == nil && strings.Contains(said, "b/one")
		}) {
			return 0, said
		}
		return time.Since(begun), said
	}
	one := h.complete(t, here(all[0]), 3) // it leads
	other := (one + 1) % 3
	apart := l.between(l.machines[one], l.machines[other])
	for _, cut := range []bool{true, false} {
		l.set(wire{cut: cut}, apart...)
		begun := time.Now()
		if cut {
			h.hubs[max(one, other)].says(t, "hub.log", `this hub does not reach one that others reach; machines are sent to those until it does" hub=`+h.names[min(one, other)])
		} else {
			h.complete(t, here(all[0]), 3)
		}
		for range 2 { // it stays so
			for _, j := range all {
				took, said := asks(electedWithin, here(j))
				if took == 0 {
					t.Fatalf("two hubs are cut: %t; %s does not reach all:\n%s", cut, j.name, said)
				}
				t.Logf("two hubs are cut: %t; after %s %s has asked all within %s", cut, rounded(time.Since(begun)), j.name, rounded(took))
			}
		}
	}
}

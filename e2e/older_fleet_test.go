package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestOlderFleet: a fleet of the release before is upgraded. A member and a hub of two releases do not work together: whoever meets that says what
// to do. With the hub's files, its tokens and the machines' files of the release before all go on as soon as both are this one.
func TestOlderFleet(t *testing.T) {
	before := older(t)
	t.Parallel()
	machine := func(name, program string) *joined {
		return &joined{workspace: newWorkspace(t), name: name, program: program}
	}
	f := &fleetOf{hub: machine("hub", before)}
	f.open(t, freeAddress(t))
	a, b := f.joinAs(t, machine("a", before)), f.joinAs(t, machine("b", before))
	a.stands(t, "b", "connected")
	f.token(t, "gone")
	f.hub.run(t, 0, "fleet", "token", "revoke", "gone")

	early := machine("early", "")
	want(t, early.run(t, 1, "fleet", "join", f.address, "--token", f.token(t, "early")), `may not be asked anything: .*upgrade the older of the two`)

	a.program = ""
	want(t, a.run(t, 0, "fleet", "status"), `^a +connected`, `^b +connected`) // by the member that goes on

	ended(f.running)
	f.hub.program = ""
	f.open(t, f.address)
	f.hub.says(t, "hub.log", `a machine was not let in.*another version.*upgrade the older`)
	for _, j := range []*joined{a, b} {
		if !eventually(func() bool { return dead(j.member.Process.Pid) }) {
			t.Fatalf("the member of %s goes on", j.name)
		}
		if err := j.member.Wait(); err == nil {
			t.Errorf("the member of %s ends without an error", j.name)
		}
		j.says(t, "member.log", `the hub refuses the token`)
	}
	if list := f.hub.run(t, 0, "fleet", "token", "list"); strings.Contains(list, "gone") {
		t.Errorf("a token that was revoked is listed:\n%s", list)
	} else {
		want(t, list, `^a +`, `^b +`)
	}
	f.token(t, "gone")

	b.program = ""
	for _, j := range []*joined{a, b, early} {
		_ = os.Remove(j.path("member.log"))
		j.member = j.start(t, "member.log", "fleet", "join")
		j.says(t, "member.log", `connected to the hub`)
	}
	for _, from := range []*joined{a, b, early} {
		for _, of := range []*joined{a, b, early} {
			from.stands(t, of.name, "connected")
		}
	}
	want(t, a.run(t, 0, "status", "--fleet"), `^a +`, `^b +`, `^early +`)
}

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

// TestOlderFleetOnNATS: on NATS servers of their own machines of the two releases do not see each other, and people are told so on both sides. What
// one says is not in the other's way.
func TestOlderFleetOnNATS(t *testing.T) {
	before := older(t)
	t.Parallel()
	n := startNATS(t, "4G")
	join := func(name, program string) *joined {
		j := &joined{workspace: newWorkspace(t), name: name, program: program}
		j.more = []string{"SSL_CERT_FILE=" + n.cert}
		j.member = j.start(t, "member.log", "fleet", "join", "--nats", n.address, "--creds", n.credentials(n.account, name), "--name", name)
		j.says(t, "member.log", `connected to the hub`)
		return j
	}
	was := join("was", before)
	was.stands(t, "was", "connected")
	now := join("now", "")
	now.says(t, "member.log", `with an older outlive.*upgrade them.*was`)
	now.shows(t, `^was: it has joined with an older outlive`, "fleet", "status")
	was.shows(t, `^now +.* which this outlive does not see: upgrade it$`, "fleet", "status")
	now.stands(t, "now", "connected")
	was.stands(t, "was", "connected")

	ended(was.member)
	was.program = ""
	_ = os.Remove(was.path("member.log"))
	was.member = was.start(t, "member.log", "fleet", "join")
	now.stands(t, "was", "connected")
	was.stands(t, "now", "connected")
}

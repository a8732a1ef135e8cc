package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/faketelegram"
)

// toldWithin is how long it may take at most until people are told of a machine: its silence, the time of a lease whose holder was lost, a
// new judge's own silence, and the monitor's look.
var toldWithin = inFull(3 * time.Minute)

// people are a fleet's people: one chat.
type people struct {
	t     *testing.T
	phone *faketelegram.Server
	seen  int // messages that were looked at
}

func newPeople(t *testing.T) *people {
	p := &people{t: t, phone: faketelegram.New("7:secret")}
	t.Cleanup(p.phone.Close)
	return p
}

// watch starts a monitor on a machine that tells them.
func (p *people) watch(j *joined) {
	p.t.Helper()
	home := j.path("state/outlive/agents")
	if err := os.MkdirAll(home, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "registry.yaml"), []byte("version: 2\nagents: {}\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	monitor := j.command("monitor", "--answers", "off")
	monitor.Env = append(monitor.Env, "TELEGRAM_BOT_TOKEN="+p.phone.Token, "TELEGRAM_CHAT_ID="+chatName, "TELEGRAM_API_URL="+p.phone.URL())
	j.begin(p.t, "monitor.log", monitor)
}

// hear waits for as many messages as are wanted, in any order, and for no other.
func (p *people) hear(want ...string) {
	p.t.Helper()
	begin := time.Now()
	for len(want) > 0 {
		if !p.phone.Wait(toldWithin, func() bool { return len(p.phone.Messages()) > p.seen }) {
			p.t.Fatalf("nobody is told: %q", want)
		}
		text := p.phone.Messages()[p.seen].Text
		p.seen++
		at := slices.IndexFunc(want, func(w string) bool { return strings.Contains(text, w) })
		if at < 0 {
			p.t.Fatalf("people are told %q, want one of %q", text, want)
		}
		p.t.Logf("told after %s: %s", time.Since(begin).Round(100*time.Millisecond), strings.Split(text, "\n")[0])
		want = slices.Delete(want, at, at+1)
	}
}

// hearNothing looks that nothing more is told for a while.
func (p *people) hearNothing(limit time.Duration) {
	p.t.Helper()
	if p.phone.Wait(limit, func() bool { return len(p.phone.Messages()) > p.seen }) {
		p.t.Errorf("people are told, too: %q", p.phone.Messages()[p.seen].Text)
	}
}

// judges waits until one of the machines has judged for long enough to know who lives, and returns it.
func judges(t *testing.T, f *fleetOf, all ...*joined) *joined {
	t.Helper()
	var holder *joined
	if !within(inFull(time.Minute), func() bool {
		holder = nil
		for _, j := range all {
			text, _ := os.ReadFile(j.path("member.log"))
			begun, over := strings.LastIndex(string(text), "this machine looks after the others now"), strings.LastIndex(string(text), "does not look after the others any more")
			if begun > over {
				holder = j
			}
		}
		return holder != nil
	}) {
		t.Fatal("no machine looks after the others")
	}
	return holder
}

// shows waits until a command there prints what matches.
func (j *joined) shows(t *testing.T, pattern string, args ...string) {
	t.Helper()
	re, out := regexp.MustCompile("(?m)"+pattern), []byte(nil)
	if !eventually(func() bool { out, _ = j.command(args...).CombinedOutput(); return re.Match(out) }) {
		t.Fatalf("on %s, outlive %s does not show %s:\n%s", j.name, strings.Join(args, " "), pattern, out)
	}
}

func (j *joined) killMember() {
	_ = j.member.Process.Signal(syscall.SIGKILL)
	_ = j.member.Wait()
}

func (j *joined) joinAgain(t *testing.T) {
	t.Helper()
	j.member = j.start(t, "member.log", "fleet", "join")
}

// twoWatched are two machines of a fleet with monitors that tell the same people, the first the one that judges.
func twoWatched(t *testing.T, f *fleetOf) (p *people, judge, other *joined) {
	t.Helper()
	p = newPeople(t)
	a, b := f.join(t, "a"), f.join(t, "b")
	p.watch(a)
	p.watch(b)
	if judges(t, f, a, b) == a {
		return p, a, b
	}
	return p, b, a
}

// A machine that falls silent is one incident of the fleet, which says whether it is gone or cut off.
func TestFleetSilentMachine(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	f := newFleet(t, n.address+":0")
	p, judge, other := twoWatched(t, f)
	c := f.join(t, "c")
	f.join(t, "d", "ip", "netns", "exec", n.name)

	c.killMember()
	p.hear("The machine c is gone from the fleet")
	other.stands(t, "c", "silent")
	other.shows(t, `^c +silent, gone (.*\n)+The machine c is gone since .*; people were told by `+judge.name, "fleet", "status")
	other.shows(t, `^`+judge.name+`/\S+ +machine:c +machine_gone +critical +notified`, "ack", "--fleet")
	other.shows(t, `The machine c is gone from the fleet`, "top", "--plain", "--fleet")

	c.joinAgain(t)
	n.set(t, "down")
	p.hear("The machine d is cut off from the fleet", "The machine c works again")
	other.shows(t, `^d +silent, cut off `, "fleet", "status")
	n.set(t, "up")
	p.hear("The machine d works again")
}

// The machine that judges is killed: the other one judges, and tells of it.
func TestFleetJudgeIsKilled(t *testing.T) {
	needFull(t, "faults of the fleet's judge")
	t.Parallel()
	p, judge, other := twoWatched(t, newFleet(t, "127.0.0.1:0"))
	judge.killMember()
	p.hear("The machine " + judge.name + " is gone")
	other.shows(t, `^The machine `+judge.name+` is gone since .*; people were told by `+other.name, "fleet", "status")
	judge.joinAgain(t)
	p.hear("The machine " + judge.name + " works again")
}

// The machine that judges is stopped while another one falls silent: when it goes on it tells nobody what the other one has told. One that
// ends as it should is not missed.
func TestFleetJudgeIsStopped(t *testing.T) {
	needFull(t, "faults of the fleet's judge")
	t.Parallel()
	f := newFleet(t, "127.0.0.1:0")
	p, judge, other := twoWatched(t, f)
	c, e := f.join(t, "c"), f.join(t, "e")
	other.stands(t, "c", "connected")
	other.stands(t, "e", "connected")
	stopped := judge.member.Process
	_ = stopped.Signal(syscall.SIGSTOP)
	t.Cleanup(func() { _ = stopped.Signal(syscall.SIGCONT) }) // before it is ended
	e.killMember()
	p.hear("The machine "+judge.name+" is cut off", "The machine e is gone")
	_ = stopped.Signal(syscall.SIGCONT)
	e.joinAgain(t)
	p.hear("The machine "+judge.name+" works again", "The machine e works again")
	ended(c.member)
	p.hearNothing(silenceAndLease(time.Minute)) // more than a silence and a lease
	other.shows(t, `^c +silent +`, "fleet", "status")
}

// share says to the member of a machine what its monitor would: which agents have a trouble that machines may share. Like a monitor it comes again
// where nobody listens: a member says that it is connected a moment before it listens.
func (j *joined) share(t *testing.T, list string) string {
	t.Helper()
	var out []byte
	var err error
	if !eventually(func() bool {
		out, err = exec.Command("curl", "-sf", "--unix-socket", j.path("state/outlive/fleet/member.sock"), "-d", list, "http://x/v1/share").Output()
		return err == nil
	}) {
		t.Fatalf("%s: %v %s", j.name, err, out)
	}
	return strings.TrimSpace(string(out))
}

// A cause that agents of several machines share is one message, which names them all, also those that join them; it ends when none has it.
// Machines that fall silent at the same time are one, too.
func TestFleetOneMessage(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "127.0.0.1:0")
	p := newPeople(t)
	a, b, c := f.join(t, "a"), f.join(t, "b"), f.join(t, "c")
	p.watch(a)
	left := `{"causes":["account:claude:credit"]}`
	share := func(j *joined, agent string) {
		t.Helper()
		var got string
		if !eventually(func() bool {
			got = j.share(t, `[{"cause":"account:claude:credit","agent":"`+agent+`"}]`)
			return got == left
		}) {
			t.Fatalf("%s leaves %s to the fleet", j.name, got)
		}
	}
	share(b, "shop")
	share(c, "blog")
	p.hear("The account of claude (credit) stops agents of the fleet")
	if text := p.phone.Messages()[0].Text; !strings.Contains(text, "b/shop, c/blog") || !strings.Contains(text, "agents of 2 machines have this trouble") {
		t.Errorf("people are told %q", text)
	}
	b.shows(t, `^The account of claude \(credit\) stops b/shop, c/blog; people were told by a`, "fleet", "status")
	b.share(t, `[{"cause":"account:claude:credit","agent":"shop"},{"cause":"account:claude:credit","agent":"wiki"}]`)
	if !p.phone.Wait(inFull(time.Minute), func() bool { return strings.Contains(p.phone.Messages()[0].Text, "b/shop, b/wiki, c/blog") }) {
		t.Errorf("people see %q", p.phone.Messages()[0].Text)
	}
	b.share(t, `[]`)
	c.share(t, `[]`)
	p.hear("The account of claude (credit) works again")

	d := f.join(t, "d")
	a.stands(t, "d", "connected")
	for _, j := range []*joined{b, c, d} {
		j.killMember()
	}
	p.hear("A group of 3 machines (b, c, d) is gone from the fleet")
	a.shows(t, `^c +silent, gone (.*\n)+The machines b, c, d are gone since .*; people were told by a`, "fleet", "status")
	c.joinAgain(t)
	last := func() string { list := p.phone.Messages(); return list[len(list)-1].Text }
	if !p.phone.Wait(inFull(time.Minute), func() bool { return strings.Contains(last(), "A group of 3 machines (b, d) is gone from the fleet") }) {
		t.Errorf("people see %q", last())
	}
	p.hearNothing(0)
}

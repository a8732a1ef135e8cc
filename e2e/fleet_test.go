package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// beatAndASecond is how late at most a change on one machine is seen from another one.
const beatAndASecond = 6 * time.Second

// twoBeatsAndASecond is how late at most a machine that says nothing is silent for another one.
const twoBeatsAndASecond = 11 * time.Second

// joined is a machine of a fleet: a home of its own.
type joined struct {
	*workspace
	name    string
	program string        // outlive there; "": the one that is tested
	inside  []string      // what starts a program on it; none: as it is
	more    []string      // of its environment
	clock   time.Duration // how far it is off; it needs wrongClocks
	member  *exec.Cmd
}

// wrongClocks is an outlive whose clock can be set to another time than the machine's, with an outlive-fleet beside it; "": there is none.
// See overlay/clock.go.
func wrongClocks() string { return os.Getenv("OUTLIVE_CLOCK_BIN") }

// outlive is the program there, and what its environment has besides.
func (j *joined) outlive() (program string, more []string) {
	switch {
	case j.program != "":
		return j.program, j.more
	case j.clock == 0:
		return timed(), j.more
	}
	return wrongClocks(), append([]string{"OUTLIVE_E2E_CLOCK=" + j.clock.String()}, j.more...)
}

func (j *joined) command(args ...string) *exec.Cmd {
	program, more := j.outlive()
	argv := append(append([]string(nil), j.inside...), append([]string{program}, args...)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = append(j.env(), more...), j.dir
	return cmd
}

// run runs outlive there and wants an exit status.
func (j *joined) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd := j.command(args...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("on %s, outlive %s: %v, want exit status %d\n%s", j.name, strings.Join(args, " "), err, code, out)
	}
	return string(out)
}

// start starts outlive there; what it says is in a file. It is ended with the test.
func (j *joined) start(t *testing.T, file string, args ...string) *exec.Cmd {
	t.Helper()
	return j.begin(t, file, j.command(args...))
}

func (j *joined) begin(t *testing.T, file string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if err := j.launch(file, cmd); err != nil {
		t.Fatal(err)
	}
	j.t.Cleanup(func() { ended(cmd) })
	return cmd
}

// launch starts a program; what it says is in a file. Whoever launches it ends it.
func (j *joined) launch(file string, cmd *exec.Cmd) error {
	log, err := os.OpenFile(j.path(file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Start()
}

func ended(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}
}

// follow starts outlive there; what it writes is collected.
func (j *joined) follow(t *testing.T, args ...string) *following {
	t.Helper()
	f := &following{}
	go f.read(untilInterrupted(t, j.command(args...)))
	return f
}

// says waits until a file there has what matches.
func (j *joined) says(t *testing.T, file, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	var text []byte
	if !eventually(func() bool { text, _ = os.ReadFile(j.path(file)); return re.Match(text) }) {
		t.Fatalf("%s: %s does not say %s:\n%s", j.name, file, pattern, text)
	}
	return re.FindStringSubmatch(string(text))
}

// serve starts a real server behind outlive there.
func (j *joined) serve(t *testing.T, name string) *raw {
	t.Helper()
	everything := filepath.Join(tools.root, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	program, more := j.outlive()
	return connectRaw(t, j.workspace, append(append([]string{"env"}, more...), program, "run", "--name", name, "--restart-delay", "0", "--", tools.node, everything, "stdio"))
}

// fleetOf is a hub and machines that have joined.
type fleetOf struct {
	hub     *joined // nil: there are servers of NATS in its place
	running *exec.Cmd
	address string
	cluster *natsCluster
}

func newFleet(t *testing.T, address string) *fleetOf {
	t.Helper()
	needOutlive(t)
	f := &fleetOf{hub: &joined{workspace: newWorkspace(t), name: "hub"}}
	f.open(t, address)
	return f
}

func (f *fleetOf) open(t *testing.T, address string) {
	t.Helper()
	_ = os.Remove(f.hub.path("hub.log"))
	f.running = f.hub.start(t, "hub.log", "fleet", "hub", "--listen", address)
	f.address = f.hub.says(t, "hub.log", `The hub listens on (\S+:\d+)\.`)[1]
}

func (f *fleetOf) token(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(f.hub.run(t, 0, "fleet", "token", "make", name))
}

// join makes a machine and joins it. inside starts a program on it.
func (f *fleetOf) join(t *testing.T, name string, inside ...string) *joined {
	t.Helper()
	return f.joinAs(t, &joined{workspace: newWorkspace(t), name: name, inside: inside})
}

// joinAs joins a machine that was made already; rights are of its user on servers of NATS.
func (f *fleetOf) joinAs(t *testing.T, j *joined, rights ...string) *joined {
	t.Helper()
	args := []string{"fleet", "join", "--nats", f.address, "--name", j.name}
	if f.cluster == nil {
		args = []string{"fleet", "join", f.address, "--token", f.token(t, j.name)}
	} else {
		key := j.path("fleet.nk")
		f.cluster.users = append(f.cluster.users, j.run(t, 0, append([]string{"fleet", "nats-user", j.name, "--file", key}, rights...)...))
		f.cluster.reload()
		j.more = append(j.more, "SSL_CERT_FILE="+f.cluster.servers[0].cert)
		args = append(args, "--creds", key)
	}
	j.member = j.start(t, "member.log", args...)
	j.says(t, "member.log", `connected to the hub`)
	return j
}

// stands waits until a machine has a state, seen from another one.
func (j *joined) stands(t *testing.T, name, state string) {
	t.Helper()
	var out []byte
	if !eventually(func() bool {
		var s struct {
			Hosts []struct{ Name, State string }
		}
		out, _ = j.command("fleet", "status", "--json").Output()
		if json.Unmarshal(out, &s) != nil {
			return false
		}
		for _, h := range s.Hosts {
			if h.Name == name {
				return h.State == state
			}
		}
		return state == ""
	}) {
		t.Fatalf("seen from %s, %s is not %q: %s", j.name, name, state, out)
	}
}

// network is a machine's own, with one way to the hub that can be cut.
type network struct {
	name, outside, address string
	clock                  time.Duration // of the machine: how far it is off
}

// networks counts those that were made.
var networks atomic.Int64

func newNetwork(t *testing.T) *network {
	t.Helper()
	own := networks.Add(1) // of this process, whose tests run side by side
	n := &network{
		name: fmt.Sprintf("outlive-e2e-%d-%d", os.Getpid(), own), outside: fmt.Sprintf("oe%d-%d", os.Getpid(), own),
		address: fmt.Sprintf("10.253.%d.%d", os.Getpid()%250, 4*own+1),
	}
	if out, err := exec.Command("ip", "netns", "add", n.name).CombinedOutput(); err != nil {
		t.Skipf("a machine is cut off by a network of its own, which needs root and ip netns: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n.name).Run() })
	there := netip.MustParseAddr(n.address).Next().String()
	for _, line := range []string{
		"link add " + n.outside + " type veth peer name e0 netns " + n.name,
		"addr add " + n.address + "/30 dev " + n.outside,
		"link set " + n.outside + " up",
		"-n " + n.name + " addr add " + there + "/30 dev e0",
		"-n " + n.name + " link set e0 up",
		"-n " + n.name + " link set lo up",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v %s", line, err, out)
		}
	}
	return n
}

func (n *network) set(t *testing.T, to string) {
	t.Helper()
	if out, err := exec.Command("ip", "link", "set", n.outside, to).CombinedOutput(); err != nil {
		t.Fatalf("ip link set %s: %v %s", to, err, out)
	}
}

// Two machines and a hub: what happens on one is seen from the other, and what is asked for there is done; one that is cut off is shown
// as silent, and what has happened meanwhile is told when it is back; and so it is when the hub was killed.
func TestFleet(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	f := newFleet(t, n.address+":0")
	a := f.join(t, "a")
	b := f.join(t, "b", "ip", "netns", "exec", n.name)
	events := a.follow(t, "watch", "--fleet")
	asJSON := a.follow(t, "watch", "--fleet", "--json")
	events.await(t, `^\S+ a: connected`)
	events.await(t, `^\S+ b: connected`)
	one := b.serve(t, "one")
	events.await(t, `^\S+ b/one@\d+: MCP Proxy starting`) // the first that b tells at all
	asJSON.await(t, `"host":"b".*"event_type":"host_connected"`)

	t.Run("a killed server is seen", func(t *testing.T) {
		killed := time.Now()
		kill(t, one.keptPID(t))
		events.await(t, `b/one@\d+: Server crashed`)
		inTime(t, "it was seen", time.Since(killed), beatAndASecond)
		asJSON.await(t, `^\{"host":"b","instance":"one@\d+","timestamp":.*"event_type":"server_crashed"`)
		events.await(t, `b/one@\d+: Restart completed`)
	})
	t.Run("status, restart and logs", func(t *testing.T) {
		want(t, a.run(t, 0, "status", "--fleet"), `^a +nothing runs`, `^b/one +ready `)
		before := one.keptPID(t)
		want(t, a.run(t, 0, "restart", "b/one", "--fleet", "--reason", `a 'quoted' "reason"`), `^b/one: ready after [0-9]+ ms`)
		if after := one.keptPID(t); after == before {
			t.Error("the server was not restarted")
		}
		one.ask(t, "tools/list", nil)
		want(t, a.run(t, 0, "logs", "one", "--fleet"), `.`)
		want(t, a.run(t, 1, "restart", "nobody", "--fleet"), `no server "nobody" is running on a, b`)
		want(t, a.run(t, 1, "agent", "restart", "b/nobody", "--fleet"), `no agent "nobody": none is declared in `)
		want(t, a.run(t, 0, "top", "--plain", "--fleet"), `b/one`)
		logs := a.follow(t, "logs", "one", "--fleet", "--follow")
		logs.await(t, `.`)
		logs.forget()
		kill(t, one.keptPID(t))
		logs.await(t, `.`) // of the new process
	})
	t.Run("agents and incidents", func(t *testing.T) {
		shop := b.path("shop")
		home := b.path("state/outlive/agents")
		for _, dir := range []string{shop, home} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		agent := exec.Command("sleep", "600")
		agent.Dir = shop // or it counts as somebody else's
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{
			filepath.Join(shop, "pid"):           fmt.Sprintln(agent.Process.Pid),
			filepath.Join(home, "registry.yaml"): "version: 2\nagents:\n  shop: {kind: command, path: " + shop + ", match: {pidfile: pid}}\n",
		} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		monitor := b.command("monitor")
		monitor.Env = append(monitor.Env, "PIV_MONITOR_INTERVAL_MS=1000")
		b.begin(t, "monitor.log", monitor)
		b.says(t, "monitor.log", `Monitor cycle complete: 1 projects`) // it has seen the agent alive: one that was never seen is not missed
		if !eventually(func() bool {
			out, _ := a.command("agent", "list", "--fleet").Output()
			return regexp.MustCompile(`(?m)^b/shop +command +runs `).Match(out)
		}) {
			t.Fatalf("%s", a.run(t, 0, "agent", "list", "--fleet"))
		}
		kill(t, agent.Process.Pid)
		_ = agent.Wait()
		if !eventually(func() bool {
			out, _ := a.command("ack", "--fleet").Output()
			return regexp.MustCompile(`(?m)^b/\S+ +shop `).Match(out)
		}) {
			t.Fatalf("%s", a.run(t, 0, "ack", "--fleet"))
		}
		want(t, a.run(t, 0, "ack", "shop", "--fleet"), `^b/`)
		want(t, b.run(t, 0, "ack"), `shop .*acknowledged`)
	})
	t.Run("what is not done for others", func(t *testing.T) {
		socket := a.path("state/outlive/fleet/member.sock")
		out, err := exec.Command("curl", "-s", "--unix-socket", socket, "-d", `{"host":"b","args":["run","--","touch","`+b.path("touched")+`"]}`, "http://x/v1/run").Output()
		var said []byte
		for line := range bytes.Lines(out) {
			var f struct{ Err []byte }
			_ = json.Unmarshal(line, &f) // then it says nothing
			said = append(said, f.Err...)
		}
		if err != nil || !bytes.Contains(said, []byte("outlive run is not done for other machines")) {
			t.Errorf("%s %q %v", out, said, err)
		}
		if _, err := os.Stat(b.path("touched")); err == nil {
			t.Error("it was done")
		}
	})
	t.Run("cut off", func(t *testing.T) {
		n.set(t, "down")
		cut := time.Now()
		events.await(t, `b: silent: nothing was heard of it since `)
		inTime(t, "it was silent", time.Since(cut), twoBeatsAndASecond)
		a.stands(t, "b", "silent")
		want(t, a.run(t, 1, "status", "--fleet"), `^b +no answer$`, `^b: no answer: nothing was heard of it since \d{4}-`)
		want(t, a.run(t, 0, "top", "--plain", "--fleet"), `b.*silent`)
		b.run(t, 1, "fleet", "status") // it knows, too
		one.ask(t, "tools/list", nil)  // and goes on
		events.forget()
		kill(t, one.keptPID(t))
		one.ask(t, "tools/list", nil)
		n.set(t, "up")
		events.await(t, `b: connected`)
		events.await(t, `b/one@\d+: Server crashed`) // while it was cut off
		a.stands(t, "b", "connected")
		b.stands(t, "a", "connected")
	})
	t.Run("the hub is killed", func(t *testing.T) {
		events.forget()
		_ = f.running.Process.Kill()
		_ = f.running.Wait()
		events.await(t, `b: not known: this machine has no connection to the hub since `)
		kill(t, one.keptPID(t))
		one.ask(t, "tools/list", nil)
		events.forget()
		f.open(t, f.address)
		events.await(t, `b: connected`)
		events.await(t, `a: connected`)
		events.await(t, `b/one@\d+: Server crashed`)
		for _, from := range []*joined{a, b} {
			from.stands(t, "a", "connected")
			from.stands(t, "b", "connected")
		}
		want(t, a.run(t, 0, "restart", "b/one", "--fleet"), `^b/one: ready after`)
	})
	t.Run("a member is killed", func(t *testing.T) {
		_ = b.member.Process.Signal(syscall.SIGKILL)
		_ = b.member.Wait()
		a.stands(t, "b", "silent")
		b.member = b.start(t, "member.log", "fleet", "join")
		a.stands(t, "b", "connected")
	})
	t.Run("one joins later, and leaves", func(t *testing.T) {
		c := f.join(t, "c")
		events.await(t, `^\S+ c: connected`)
		want(t, c.run(t, 0, "fleet", "leave"), `has left(?s:.*)token revoke c\n(?s:.*)token make c`)
		a.stands(t, "c", "")
		want(t, c.run(t, 1, "fleet", "leave"), `in no fleet`)
		events.await(t, `^\S+ c: has left`)
	})
}

// Who may come in, and what is said to who may not.
func TestFleetTokens(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "127.0.0.1:0")
	a := f.join(t, "a")
	good := f.token(t, "b")
	b := &joined{workspace: newWorkspace(t), name: "b"}

	parts := strings.Split(good, ".")
	wrong := strings.Join([]string{parts[0], parts[1], strings.Repeat("0", 32), parts[3]}, ".")
	want(t, b.run(t, 1, "fleet", "join", f.address, "--token", wrong), `the hub refuses the token: it is wrong, .*as the hub's log says`)
	other := newFleet(t, "127.0.0.1:0")
	want(t, b.run(t, 1, "fleet", "join", f.address, "--token", other.token(t, "b")), `its certificate is not the one that the token names`)
	want(t, b.run(t, 2, "fleet", "join", f.address, "--token", good[:30]), `not the whole of one`)
	want(t, b.run(t, 2, "fleet", "join", f.address), `--token is missing`)
	want(t, b.run(t, 2, "fleet", "join"), `this machine is in no fleet yet`)
	want(t, b.run(t, 1, "fleet", "join", "127.0.0.1:1", "--token", good), `127\.0\.0\.1:1: .*(refused|nobody answers)`)
	want(t, b.run(t, 1, "status", "--fleet"), `no member of a fleet runs here: outlive fleet join starts it`)
	want(t, f.hub.run(t, 1, "fleet", "token", "make", "a"), `a has a token already`)
	want(t, f.hub.run(t, 2, "fleet", "token", "make", "a b"), `want letters`)
	want(t, f.hub.run(t, 1, "fleet", "hub", "--listen", "127.0.0.1:0"), `a hub runs already`)
	want(t, a.run(t, 1, "fleet", "join"), `a member of a fleet runs already`)
	for _, words := range [][]string{{"make", "x"}, {"list"}, {"revoke", "a"}} { // it would be of a hub that nobody runs
		want(t, a.run(t, 1, append([]string{"fleet", "token"}, words...)...), `no hub is here: this machine is a member of the fleet of 127\.0\.0\.1:`)
	}
	want(t, a.run(t, 0, "fleet", "token", "make", "--help"), `outlive fleet token make NAME`)

	stranger := &joined{workspace: newWorkspace(t), name: "stranger"}
	want(t, stranger.run(t, 0, "fleet", "token", "make", "x"), `No hub has run on this machine yet.* delete \S+/fleet/hub here`)

	b.member = b.start(t, "member.log", "fleet", "join", f.address, "--token", good)
	b.says(t, "member.log", `connected to the hub`)
	thief := &joined{workspace: newWorkspace(t), name: "thief"}
	want(t, thief.run(t, 1, "fleet", "join", f.address, "--token", good), `another machine has used it`)
	want(t, f.hub.run(t, 0, "fleet", "token", "list"), `^b +.*127\.0\.0\.1`)

	a.stands(t, "b", "connected")
	want(t, f.hub.run(t, 0, "fleet", "token", "revoke", "b"), `b is let in no more`)
	if !eventually(func() bool { return dead(b.member.Process.Pid) }) {
		t.Error("a member goes on with a revoked token")
	}
	_ = b.member.Wait()
	b.says(t, "member.log", `the hub refuses the token: it was revoked, .*as the hub's log says`)
	want(t, b.run(t, 1, "fleet", "join"), `the hub refuses the token: it (is wrong, )?was revoked`)
	a.stands(t, "b", "")
	a.stands(t, "a", "connected")
	if secret, err := os.ReadFile(f.hub.path("state/outlive/fleet/hub/tokens.json")); err != nil || bytes.Contains(secret, []byte(parts[2])) {
		t.Errorf("the hub keeps a secret: %v\n%s", err, secret)
	}

	alone := exec.Command(tools.outlive, "fleet", "status")
	copied := b.path("outlive")
	if out, err := exec.Command("cp", tools.outlive, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	alone.Path, alone.Env = copied, append(b.env(), "PATH=/nonexistent")
	out, _ := alone.CombinedOutput()
	want(t, string(out), `the program outlive-fleet is missing: .* put it beside outlive or on PATH`)
}

// Machines whose clocks are minutes apart: who looks for the first time sees who lives and who does not, and is told of the clocks.
func TestFleetClocks(t *testing.T) {
	needFull(t, "it needs a second build of everything, and waits for beats; TestFirstLook in outlive-fleet has what is decided")
	t.Parallel()
	if wrongClocks() == "" {
		t.Skip("OUTLIVE_CLOCK_BIN names no outlive whose clock can be set: e2e/run.sh builds one")
	}
	f := newFleet(t, "127.0.0.1:0")
	machine := func(name string, off time.Duration) *joined {
		return f.joinAs(t, &joined{workspace: newWorkspace(t), name: name, clock: off})
	}
	dead := machine("dead", 3*time.Minute)
	behind, right, ahead := machine("behind", -4*time.Minute), machine("right", 0), machine("ahead", 3*time.Minute)
	dead.says(t, "member.log", `This machine is dead`)
	looks := machine("looks", 0) // and looks from the start: the others have not looked when it has seen enough
	for _, j := range []*joined{dead, behind, right, ahead} {
		looks.stands(t, j.name, "connected")
	}
	dead.killMember()
	heard := func() (at map[string]time.Time) {
		at = map[string]time.Time{}
		for _, h := range looks.sees().Hosts {
			at[h.Name] = h.Heard
		}
		return at
	}
	before := heard()
	if !eventually(func() bool {
		now := heard()
		return now["right"].After(before["right"]) && now["behind"].After(before["behind"]) && now["ahead"].After(before["ahead"])
	}) {
		t.Fatalf("not all are heard after the death: %v, before %v", heard(), before)
	}
	beaten := time.Now()
	looks.stands(t, "dead", "silent")
	// At its first look a machine knows what is older than a sign of life that itself has written two beats ago.
	time.Sleep(time.Until(beaten.Add(twoBeatsAndASecond)))
	for _, j := range []*joined{right, behind, ahead} {
		for _, h := range j.sees().Hosts { // nobody has looked before
			if want := map[bool]string{true: "silent", false: "connected"}[h.Name == "dead"]; h.State != want {
				t.Errorf("seen from %s at the first look, %s is %q, want %q", j.name, h.Name, h.State, want)
			}
		}
	}
	right.shows(t, `^behind: its clock is (4m0s|3m59s) behind\n(.*\n)*ahead: |^ahead: its clock is (3m0s|2m59s) ahead\n(.*\n)*behind: `, "fleet", "status")
	right.shows(t, `^behind +connected +`+regexp.QuoteMeta(time.Now().Format("2006-01-02 15:"))+`.*\n(.*\n)*right`, "fleet", "status")
}

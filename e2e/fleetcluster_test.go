package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// electedWithin is how late at most what happens on a machine is seen from another one while servers elect a leader: the election, and a sign
// of life that was not taken before it.
const electedWithin = 15 * time.Second

// natsCluster is a team's own cluster of three NATS servers, which a fleet joins in place of a hub: packaging/fleet/nats.conf on each.
type natsCluster struct {
	t        *testing.T
	servers  [3]*natsServer
	networks []*network
	monitors [3]string // where each says how it is
	users    []string  // lines of outlive fleet nats-user
	shipped  string    // the configuration, of each server with its own addresses
	own      [3]*strings.Replacer
}

// newCluster starts three servers, on machines with networks of their own if there are some, and returns a fleet on them.
func newCluster(t *testing.T, networks ...*network) (*natsCluster, *fleetOf) {
	t.Helper()
	needOutlive(t)
	needFull(t, "three servers elect a leader for up to 9 s, which the times of the fleet must outlast: they cannot be shorter")
	c := &natsCluster{t: t, networks: networks}
	c.shipped = string(must(os.ReadFile(filepath.Join(tools.root, "..", "packaging", "fleet", "nats.conf")))(t))
	ports, trust := freeAddresses(t, 9), &natsServer{t: t, dir: t.TempDir()}
	hosts, listens, at := [3]string{}, [3]string{}, []net.IP(nil) // without networks the certificate is for a name alone, as a team's own is
	for n := range c.servers {
		hosts[n], listens[n] = "localhost", "127.0.0.1"
		if len(networks) > 0 {
			hosts[n], listens[n] = networks[n].address, networks[n].address
			at = append(at, net.ParseIP(hosts[n]))
		}
	}
	trust.makeCertificate(at...)
	join := func(host string, n, kind int) string {
		_, port, _ := net.SplitHostPort(ports[3*n+kind]) // it is one
		return net.JoinHostPort(host, port)
	}
	address := func(n, kind int) string { return join(hosts[n], n, kind) }
	listen := func(n, kind int) string { return join(listens[n], n, kind) }
	var all []string
	for n := range c.servers {
		one := &natsServer{t: t, dir: t.TempDir(), host: hosts[n], cert: trust.cert, key: trust.key}
		if len(networks) > 0 {
			one.inside = []string{"ip", "netns", "exec", networks[n].name}
		}
		c.servers[n], c.monitors[n] = one, listen(n, 2)
		c.own[n] = strings.NewReplacer("server_name: nats1", fmt.Sprint("server_name: nats", n+1), "0.0.0.0:4222", listen(n, 0), "127.0.0.1:8222", listen(n, 2),
			"0.0.0.0:6222", listen(n, 1), `advertise: "nats1.example:6222"`, fmt.Sprintf("advertise: %q", address(n, 1)), "nats1.example:6222", address(0, 1), "nats2.example:6222", address(1, 1), "nats3.example:6222", address(2, 1),
			"/etc/nats/server.pem", trust.cert, "/etc/nats/server-key.pem", trust.key, "/etc/nats/ca.pem", trust.cert, "/var/lib/nats", one.dir)
		all = append(all, "tls://"+address(n, 0))
	}
	t.Cleanup(c.explain)
	c.configure()
	for _, one := range c.servers {
		one.start()
	}
	c.complete(t, 3)
	f := &fleetOf{cluster: c, address: strings.Join(all, ",")}
	first := f.joinAs(t, &joined{workspace: newWorkspace(t), name: "first"}, "--makes-tables")
	first.says(t, "member.log", `This machine is first in the fleet of`)
	first.run(t, 0, "fleet", "leave")
	return c, f
}

// configure writes what the servers have to know.
func (c *natsCluster) configure() {
	c.t.Helper()
	for n, one := range c.servers {
		text := strings.Replace(c.own[n].Replace(c.shipped), "users: [\n", "users: [\n"+strings.Join(c.users, ""), 1)
		one.config = one.write("nats.conf", []byte(text))
	}
}

// reload has the servers that run read their configuration again.
func (c *natsCluster) reload() {
	c.t.Helper()
	c.configure()
	for _, one := range c.servers {
		before := one.said("Reloaded server configuration")
		if one.cmd.ProcessState != nil || one.cmd.Process.Signal(syscall.SIGHUP) != nil {
			continue
		}
		if !eventually(func() bool { return one.said("Reloaded server configuration") > before }) {
			c.t.Fatalf("%s does not read its configuration again", one.address)
		}
	}
}

// explain shows what the servers have said, if the test has failed.
func (c *natsCluster) explain() {
	if !c.t.Failed() {
		return
	}
	for n, one := range c.servers {
		text, _ := os.ReadFile(filepath.Join(one.dir, "nats.log")) // it may not be there
		c.t.Logf("nats%d has said, at the end:\n%s", n+1, text[max(0, len(text)-4000):])
	}
}

// leads is the number of the server that leads, as one of them says; false: it does not answer, or is not up to date.
func (c *natsCluster) leads(n int) (leader int, ok bool) {
	client := http.Client{Timeout: time.Second}
	read := func(path string, to any) bool {
		r, err := client.Get("http://" + c.monitors[n] + path)
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return json.NewDecoder(r.Body).Decode(to) == nil
	}
	var health struct{ Status string }
	var js struct {
		Meta struct{ Leader string } `json:"meta_cluster"`
	}
	if !read("/healthz", &health) || health.Status != "ok" || !read("/jsz", &js) {
		return -1, false
	}
	_, err := fmt.Sscanf(js.Meta.Leader, "nats%d", &leader)
	return leader - 1, err == nil
}

// complete waits until so many servers are up to date and name the same leader.
func (c *natsCluster) complete(t *testing.T, many int) (leader int) {
	t.Helper()
	if !within(time.Minute, func() bool {
		var named []int
		for n := range c.servers {
			if one, ok := c.leads(n); ok {
				named = append(named, one)
			}
		}
		leader = -1
		if len(named) == many && !slices.ContainsFunc(named, func(one int) bool { return one != named[0] }) {
			leader = named[0]
		}
		return leader >= 0
	}) {
		t.Fatalf("there are not %d servers with a leader", many)
	}
	return leader
}

// sees is how a machine sees the fleet.
func (j *joined) sees() (s struct {
	Connected bool
	Why       string
	Hosts     []struct {
		Name, State string
		Heard       time.Time
	}
	Cases []json.RawMessage
}) {
	out, _ := j.command("fleet", "status", "--json").Output()
	_ = json.Unmarshal(out, &s) // then it is empty
	return s
}

// heardSince waits until a machine sees all of the others by what they have said after a moment, and returns how long that has taken.
func (j *joined) heardSince(t *testing.T, moment time.Time, names ...string) time.Duration {
	t.Helper()
	if !within(electedWithin, func() bool {
		heard := 0
		for _, one := range j.sees().Hosts {
			if slices.Contains(names, one.Name) && one.State == "connected" && one.Heard.After(moment) {
				heard++
			}
		}
		return heard == len(names)
	}) {
		t.Fatalf("%s has not heard all of %q since %s: %+v", j.name, names, moment, j.sees())
	}
	return time.Since(moment)
}

// restarts is how often outlive there was asked to restart a server, by what it says of it.
func (j *joined) restarts(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(j.path("stderr.log"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "Restart requested, ")
}

// A fleet on a cluster of three goes on when any of its servers is lost, with its disk; of two that are lost nothing is made up.
func TestFleetOnACluster(t *testing.T) {
	t.Parallel()
	s, f := newCluster(t)
	a, b, c := f.join(t, "a"), f.join(t, "b"), f.join(t, "c")
	all, names := []*joined{a, b, c}, []string{"a", "b", "c"}
	a.shows(t, `^Nobody can be told of what happens here: no machine of the fleet runs outlive monitor with a channel`, "fleet", "status")
	p := newPeople(t)
	p.watch(a)
	one := b.serve(t, "one")
	for _, j := range all {
		for _, name := range names {
			j.stands(t, name, "connected")
		}
	}
	heard := func(since time.Time, what string) {
		t.Helper()
		for _, j := range all {
			t.Logf("%s has heard all others again %s after %s", j.name, rounded(j.heardSince(t, since, names...)), what)
		}
	}
	incident := incidentOn(t, c, a)
	t.Run("the leader is killed", func(t *testing.T) {
		events := a.follow(t, "watch", "--fleet")
		events.await(t, `^\S+ c: connected`)
		events.forget()
		before, leader := b.restarts(t), s.complete(t, 3)
		s.servers[leader].kill()
		killed := time.Now()
		want(t, a.run(t, 0, "restart", "b/one", "--fleet", "--reason", "the leader was lost"), `^b/one: ready after`)
		t.Logf("a server was restarted %s after the leader's death", rounded(time.Since(killed)))
		want(t, a.run(t, 0, "ack", "shop", "--fleet"), `^c/`)
		t.Logf("an incident was acknowledged %s after the leader's death", rounded(time.Since(killed)))
		events.await(t, `b/one@\d+: Restart completed`)
		t.Logf("an event was seen %s after the leader's death", rounded(time.Since(killed)))
		heard(killed, "the leader's death")
		if next := s.complete(t, 2); next == leader {
			t.Error("who is dead leads")
		}
		one.ask(t, "tools/list", nil)
		if n := b.restarts(t) - before; n != 1 {
			t.Errorf("the server was restarted %d times for one command", n)
		}
		want(t, c.run(t, 0, "ack"), incident+` +shop .*acknowledged`)
		s.servers[leader].start()
		s.complete(t, 3)
	})
	t.Run("a follower loses its disk", func(t *testing.T) {
		lost := (s.complete(t, 3) + 1) % 3
		s.servers[lost].kill()
		killed := time.Now()
		if err := os.RemoveAll(filepath.Join(s.servers[lost].dir, "jetstream")); err != nil {
			t.Fatal(err)
		}
		heard(killed, "a follower's death")
		s.servers[lost].start()
		s.complete(t, 3)
		second := (lost + 1) % 3
		s.servers[second].kill() // what is needed now is the one that had lost everything
		heard(time.Now(), "the death of another one")
		s.servers[second].start()
		s.complete(t, 3)
	})
	t.Run("a machine is revoked", func(t *testing.T) {
		d := f.join(t, "d")
		a.stands(t, "d", "connected")
		s.users = slices.DeleteFunc(s.users, func(line string) bool { return strings.HasSuffix(line, "# d\n") })
		s.reload()
		if !eventually(func() bool { return dead(d.member.Process.Pid) }) {
			t.Error("a member goes on with a user that was deleted")
		}
		d.says(t, "member.log", `the server refuses the credentials: they were revoked`)
	})
	t.Run("what a machine may not do", func(t *testing.T) {
		thief := &joined{workspace: newWorkspace(t), name: "thief", more: c.more}
		want(t, thief.run(t, 1, "fleet", "join", "--nats", f.address, "--creds", c.path("fleet.nk"), "--name", "b"), `credentials of a user for b `)
	})
	t.Run("two are lost", func(t *testing.T) {
		events := a.follow(t, "watch", "--fleet")
		events.await(t, `^\S+ b: connected`)
		s.servers[0].kill()
		s.servers[1].kill()
		p.hearNothing(40 * time.Second) // longer than a silence and a lease
		events.await(t, `^\S+ b: not known: nothing is written since .*: most of the NATS servers are down`)
		want(t, a.run(t, 1, "fleet", "status"), `^b +not known `, `nothing is written since .*: most of the NATS servers are down`)
		want(t, b.run(t, 1, "fleet", "status"), `nothing is written since .*: most of the NATS servers are down`) // where nobody has looked before
		want(t, a.run(t, 0, "restart", "b/one", "--fleet"), `^b/one: ready after`)
		s.servers[0].start()
		heard(time.Now(), "the second server was back")
		s.servers[1].start()
		s.complete(t, 3)
		for n, one := range s.servers {
			if many := one.said("x509: "); many > 0 {
				t.Errorf("nats%d has refused certificates of the others %d times", n+1, many)
			}
		}
		want(t, a.run(t, 0, "restart", "b/one", "--fleet"), `^b/one: ready after`)
		b.killMember()
		p.hear("The machine b is") // people are still told, and of nothing else before
	})
}

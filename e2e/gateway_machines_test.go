package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// tokenOfMachines is what clients of the replicas on several machines have to send.
const tokenOfMachines = "token-of-machines-0123456789"

// silence is how long a machine may say nothing until the others know that it is gone.
const silence = 20 * time.Second

// replicasApart are a core and three replicas, each on a machine of its own, and a load balancer on the test's.
type replicasApart struct {
	*replicas
	core *gateway
	lan  *lan // machine 0 has the core, and each replica one
}

// apart are the words that run a gateway on a machine.
func (w *workspace) apart(n *network, config string, flags ...string) []string {
	return slices.Concat([]string{"ip", "netns", "exec", n.name}, w.stdioGateway(config), flags)
}

func (w *workspace) startApart(t *testing.T, config string) *replicasApart {
	t.Helper()
	m := &replicasApart{lan: newLANWithUs(t, 4)}
	secret := w.path("secret.txt")
	if err := os.WriteFile(secret, []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := m.lan.machines[0].address + ":7420"
	m.core = w.listenBy(t, w.apart(m.lan.machines[0], config, "--core", "--core-listen", at, "--core-secret-file", secret))
	var all []*gateway
	for _, n := range m.lan.machines[1:4] {
		all = append(all, w.listenBy(t, w.apart(n, config, "--listen", n.address+":8080", "--replica", "--core-at", at, "--core-secret-file", secret)))
	}
	m.replicas = w.inFrontOf(t, all, http.Header{"Authorization": {"Bearer " + tokenOfMachines}})
	return m
}

// off cuts a machine off, and on mends that.
func (m *replicasApart) off(n int) { m.lan.set(wire{cut: true}, m.ways(n)...) }
func (m *replicasApart) on(n int)  { m.lan.set(wire{}, m.ways(n)...) }

func (m *replicasApart) ways(n int) []way {
	return slices.Concat(m.lan.outOf(m.lan.machines[n]), m.lan.into(m.lan.machines[n]))
}

// cut is a machine whose network is gone for a while. fails is how many calls of each client may fail then: none, unless this machine was
// so busy that it has lasted long enough for a silent connection to break.
func (m *replicasApart) cut(t *testing.T, n int, long time.Duration) (fails int) {
	begun := time.Now()
	m.off(n)
	time.Sleep(long) // what is tried: a network that is gone for so long
	m.on(n)
	if took := time.Since(begun); took > silence/2 {
		t.Logf("machine %d was cut off for %v instead of %v", n, took.Round(time.Millisecond), long)
		return 1
	}
	return 0
}

// dialPatience is how long a client waits for a connection to a machine that may be cut off.
const dialPatience = 2 * time.Second

// at is a client of one replica.
func (m *replicasApart) at(n int, id string) *rawSession {
	s := plain(m.all[n], id)
	dial := &net.Dialer{Timeout: dialPatience}
	s.client.Transport = bearer{&http.Transport{DisableKeepAlives: true, DialContext: dial.DialContext}, []string{tokenOfMachines}}
	return s
}

// healthy reports what a replica says of itself.
func (m *replicasApart) healthy(n int) bool {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	resp, err := client.Get(strings.TrimSuffix(m.all[n].url, "/mcp") + "/healthz")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// calling has all clients call, and something happen while they do, which says how many calls of each may fail.
func (m *replicasApart) calling(t *testing.T, all counters, what string, happens func() (fails int)) {
	t.Helper()
	const calls = 12
	before := map[*counter]int{}
	for _, c := range all {
		before[c] = len(c.all)
	}
	over, fails := make(chan struct{}), 0
	go func() {
		defer close(over)
		fails = happens()
	}()
	begun := time.Now()
	all.each(t, func(c *counter) error {
		for n := 0; ; n++ {
			select {
			case <-over:
				if n >= calls {
					return nil
				}
			default:
			}
			if err := c.call(); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			time.Sleep(20 * time.Millisecond) // at most 50 calls a second of each client: 60 of them share two cores with all servers
		}
	})
	<-over
	failed := 0
	for _, c := range all {
		n := len(c.all) - before[c]
		failed += n
		if n > fails {
			t.Errorf("%s: a client saw failed calls: %q", what, c.all[before[c]:])
		}
	}
	t.Logf("%s: %d of all calls failed, in %v", what, failed, time.Since(begun).Round(time.Millisecond))
}

// TestReplicasOnMachines: 60 sessions, each with a server that counts in the memory of its own process, behind three replicas on three
// machines whose core is on a fourth. A replica is killed, one is cut off, the core is cut off, killed, and cut off for good: no session has a
// wrong count, and nobody sees more than one failed call.
func TestReplicasOnMachines(t *testing.T) {
	needFull(t, "machines that are cut off, and how soon that is noticed")
	t.Parallel()
	needOutlive(t)
	w := newWorkspace(t)
	m := w.startApart(t, w.gatewayConfig(t, []string{"names: never", "auth: {bearer: [" + tokenOfMachines + "]}"}, backend{name: "s", server: servers()["go-legacy"]}))
	if !eventually(func() bool {
		status := w.status()
		return strings.Contains(status, "takes replicas of other machines at "+m.core.url+"\n") && strings.Count(status, " at 10.252.") == 1+len(m.all)
	}) {
		t.Errorf("the status says\n%s", w.status())
	}
	all := m.openCounters(t, 60)
	m.calling(t, all, "a replica is killed", func() int {
		m.all[1].killed(t)
		return 1
	})
	m.all[1] = m.all[1].listenAgain(t)
	m.calling(t, all, "a replica is cut off for 4 s", func() int { return m.cut(t, 2, 4*time.Second) })
	m.calling(t, all, "the core is cut off for 4 s", func() int { return m.cut(t, 0, 4*time.Second) })

	// What a server has in its memory ends with the core; sessions do not, and whoever calls meanwhile waits.
	slow := m.at(0, "")
	slow.mustHave(t, helloLine, `"protocolVersion"`)
	answered := make(chan string, 1)
	call := func(id int, name string) {
		status, text, err := m.at(1, slow.id).post(slowLine(id, name, 120_000))
		answered <- fmt.Sprint(status, " ", text, " ", err)
	}
	go call(5, "killed")
	w.awaitTrace(t, "slow killed", 1)
	m.core.killed(t)
	for _, c := range all {
		c.count, c.failed = 0, 0
	}
	if text := <-answered; !strings.Contains(text, `"id":5,"error":`) || !strings.Contains(text, "outcome unknown") {
		t.Errorf("in flight when the core was killed: %s", text)
	}
	m.calling(t, all, "the core is killed, and started again", func() int {
		if !eventually(func() bool { return !m.healthy(0) && !m.healthy(1) && !m.healthy(2) }) {
			t.Error("replicas are healthy without a core")
		}
		m.core = m.core.listenAgain(t)
		return 1
	})

	// The core's machine says nothing any more: that is noticed on both sides.
	go call(6, "vanished")
	w.awaitTrace(t, "slow vanished", 1)
	begun := time.Now()
	m.off(0)
	if text := <-answered; !strings.Contains(text, `"id":6,"error":`) || !strings.Contains(text, "outcome unknown") {
		t.Errorf("in flight when the core vanished: %s", text)
	}
	took := time.Since(begun)
	if took > silence+10*time.Second {
		t.Errorf("it was noticed after %v", took)
	}
	t.Logf("a machine that vanished was noticed after %v", took.Round(100*time.Millisecond))
	if !eventually(func() bool {
		return !m.healthy(0) && !m.healthy(1) && !m.healthy(2) && strings.Count(w.status(), "(PID ") == 0
	}) {
		t.Errorf("not all have noticed: %s", w.status())
	}
	m.on(0)
	if !eventually(func() bool { return m.healthy(0) && m.healthy(1) && m.healthy(2) }) {
		t.Fatal("the replicas do not find the core again")
	}
	m.calling(t, all, "afterwards", func() int { return 0 })
	all.each(t, func(c *counter) error {
		_, ch := c.begin(step{"op": "close"})
		<-ch
		return nil
	})
	m.core.stop2(t)
	m.stopAll(t)
}

package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// helloLine opens a session of the legacy era; initializedLine follows on it.
const (
	helloLine       = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// tokenOfGateways is what clients of several gateways have to send, where load balancers of another user are in front.
const tokenOfGateways = "token-of-gateways-0123456789"

// leaseOver is how late at most other gateways may have the sessions of one that says nothing any more: its lease, and the look for that.
const leaseOver = 25 * time.Second

// secretFile has a secret that several gateways share.
func (w *workspace) secretFile(t *testing.T) string {
	t.Helper()
	path := w.path("secret.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// equals are several gateways of one configuration on one machine. Each is at an address of its own and has its own servers.
type equals struct {
	*workspace
	fleet *fleetOf // nil: their sessions are not in one
	all   []*gateway
}

// startEquals starts some. With a fleet they go on with each other's sessions.
func startEquals(t *testing.T, many int, inFleet bool, config []string, servers ...backend) *equals {
	t.Helper()
	needOutlive(t)
	e := &equals{}
	if inFleet {
		e.fleet = newFleet(t, "127.0.0.1:0")
		e.workspace = e.fleet.join(t, "m").workspace
		config = append([]string{"sessions: fleet"}, config...)
	} else {
		e.workspace = newWorkspace(t)
	}
	path, secret := e.gatewayConfig(t, append([]string{"names: never"}, config...), servers...), e.secretFile(t)
	for range many {
		e.all = append(e.all, e.listenBy(t, append(e.stdioGateway(path), "--listen", freeAddress(t), "--peer-listen", freeAddress(t), "--peer-secret-file", secret)))
	}
	return e
}

// stopAll stops them, which leaves nothing behind.
func (e *equals) stopAll(t *testing.T) {
	t.Helper()
	for _, g := range e.all {
		select {
		case <-g.ended: // it was killed
		default:
			g.stop2(t)
		}
	}
	if !eventually(func() bool { return len(e.processes("gateway -c")) == 0 }) {
		t.Errorf("left over: %v", e.processes("gateway -c"))
	}
}

// plain is a client of one gateway, with a connection for each request.
func plain(url, id string, token ...string) *rawSession {
	return &rawSession{client: &http.Client{Transport: bearer{&http.Transport{DisableKeepAlives: true}, token}, Timeout: 2 * patience}, url: url, id: id}
}

// slowLine is a call of a tool that takes a while.
func slowLine(id int, value string, ms int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow","arguments":{"value":%q,"steps":1,"ms":%d}}}`, id, value, ms)
}

// eventLines are the lines of an event stream that a session has open.
type eventLines struct {
	*bufio.Scanner
	lastID string
}

// events sends a request and reads the header of its answer.
func (s *rawSession) events(t *testing.T, method, line string, headers ...string) *eventLines {
	t.Helper()
	r, err := http.NewRequest(method, s.url, strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
	}
	r.Header.Set("Mcp-Session-Id", s.id)
	for n := 0; n < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &eventLines{Scanner: bufio.NewScanner(resp.Body)}
}

// until reads until a line has a text.
func (e *eventLines) until(t *testing.T, text string) {
	t.Helper()
	var seen []string
	for e.Scan() {
		seen = append(seen, e.Text())
		if id, ok := strings.CutPrefix(e.Text(), "id: "); ok {
			e.lastID = id
		}
		if strings.Contains(e.Text(), text) {
			return
		}
	}
	t.Fatalf("no %q in %q: %v", text, seen, e.Err())
}

// TestEqualGateways: three gateways whose sessions are in a fleet are one. A session is had by whoever is asked for it first, belongs to its
// token at each of them, and goes on at another one when its own has ended; then its client is told what it has lost.
func TestEqualGateways(t *testing.T) {
	t.Parallel()
	const alice, bob = "token-of-alice-0123456789", "token-of-bob-0123456789ab"
	e := startEquals(t, 3, true, []string{"auth: {bearer: [" + alice + ", " + bob + "]}"}, backend{name: "s", server: servers()["go-legacy"]})
	a, b, c := e.all[0], e.all[1], e.all[2]
	if !eventually(func() bool { return strings.Count(e.status(), "takes what other gateways pass on at 127.0.0.1:") == 3 }) {
		t.Errorf("the status says\n%s", e.status())
	}
	first := plain(a.url, "", alice)
	first.mustHave(t, helloLine, `"protocolVersion"`)
	at := func(g *gateway) *rawSession { return plain(g.url, first.id, alice) }
	at(b).mustHave(t, initializedLine, "") // so it is b's
	at(c).mustHave(t, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, `"count"`)
	count := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"count","arguments":{}}}`
	for n, g := range []*gateway{a, b, c, a} {
		at(g).mustHave(t, count, fmt.Sprintf(`"text":"%d"`, n+1))
		if status, text, err := plain(g.url, first.id, bob).post(count); status != http.StatusNotFound {
			t.Errorf("another token: %d %s %v", status, text, err)
		}
	}
	// A name that a client gives itself is not believed.
	liar, err := http.NewRequest("POST", c.url, strings.NewReader(count))
	if err != nil {
		t.Fatal(err)
	}
	liar.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {first.id},
		"Outlive-Caller": {`{"subject":"bearer:0000000000000000"}`}, "Authorization": {"Bearer " + bob}}
	resp, err := http.DefaultClient.Do(liar)
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("a caller that names itself: %v %v", resp, err)
	}
	if err == nil {
		resp.Body.Close()
	}
	// The answer of a call whose gateway is killed on the way, and not the session's, is at another one.
	slow := at(a).events(t, "POST", slowLine(6, "elsewhere", 3000)) // it has its stream after a second
	slow.until(t, "id: ")
	a.killed(t)
	at(c).events(t, "GET", "", "Last-Event-ID", slow.lastID).until(t, "slow elsewhere")
	// The session's own is stopped as it should be, while a call is on its way.
	stream := at(c).events(t, "GET", "")
	slow = at(c).events(t, "POST", slowLine(7, "lost", 60_000))
	slow.until(t, "id: ")
	b.stop2(t)
	slow.until(t, `"id":7,"error":`)
	for stream.Scan() { // it ends
	}
	at(c).mustHave(t, count, `"text":"1"`) // in the memory of another process
	at(c).events(t, "GET", "").until(t, "what servers had in memory for it is lost")
	if status, text, err := plain(c.url, first.id, bob).post(count); status != http.StatusNotFound {
		t.Errorf("another token, at the gateway that goes on: %d %s %v", status, text, err)
	}
	e.stopAll(t)
}

// TestEqualGatewaysRestarted: calls of some seconds come by two gateways to a third one, which is killed, or ended as it should be, and started
// again at once. A client hears of one call at most that its outcome is not known, and of none that it makes when the gateway is there again;
// no call is carried out twice.
func TestEqualGatewaysRestarted(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(*gateway, *testing.T){"SIGKILL": (*gateway).killed, "SIGTERM": (*gateway).stop2} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			const clients, calls = 6, 4
			e := startEquals(t, 3, true, nil, backend{name: "s", server: servers()["go-legacy"]})
			value := func(client, call int) string { return fmt.Sprintf("%d-%d", client, call) }
			var again atomic.Bool // the gateway is there again
			var answered [clients][calls]bool
			var calling sync.WaitGroup
			defer calling.Wait() // also when the test is given up
			for n := range clients {
				s := plain(e.all[0].url, "")
				s.mustHave(t, helloLine, `"protocolVersion"`)
				s.mustHave(t, initializedLine, "") // so it is of the first one
				s.url = e.all[1+n%2].url
				calling.Go(func() {
					failed := 0
					for k := range calls {
						after := again.Load()
						status, text, err := s.post(slowLine(k+1, value(n, k), 2000))
						if answered[n][k] = strings.Contains(text, "slow "+value(n, k)); answered[n][k] {
							continue
						}
						if failed++; failed > 1 || after || err != nil || status != http.StatusOK {
							t.Errorf("%s: call %s, the failed one number %d, begun after the restart: %t: %d %.300s %v", how, value(n, k), failed, after, status, text, err)
						}
					}
				})
			}
			for n := range clients {
				e.awaitTrace(t, "slow "+value(n, 0), 1)
			}
			end(e.all[0], t)
			e.all[0] = e.all[0].listenAgain(t)
			again.Store(true)
			calling.Wait()
			for n := range clients {
				for k := range calls {
					if times := e.count("slow " + value(n, k)); times > 1 || answered[n][k] && times != 1 {
						t.Errorf("%s: call %s was carried out %d times, answered: %t", how, value(n, k), times, answered[n][k])
					}
				}
			}
			e.stopAll(t)
		})
	}
}

// TestEqualGatewaysModern: clients of 2026-07-28 have no sessions. Each request may come to another gateway, also the next round of a call
// whose server asks something; this needs no fleet.
func TestEqualGatewaysModern(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"go", "go-legacy"} { // the other one is translated: its call waits in one process
		for _, name := range []string{"go", "ts2-modern", "py-modern"} {
			t.Run(server+"/"+name, func(t *testing.T) {
				onePerKind(t, name == "go")
				t.Parallel()
				e := startEquals(t, 3, false, nil, backend{name: "s", server: servers()[server]})
				s := e.join(t, gatewayClients()[name], inFront(t, e.all, nil))
				if !s.modern() {
					t.Fatal("the client is not of the modern era")
				}
				s.toolNames(t)
				for n := range 6 {
					question := fmt.Sprint("question ", n)
					if text := s.call(t, "elicit", map[string]any{"question": question}).text(); text != "elicited yes" {
						t.Errorf("%s: %q", question, text)
					}
					if n := e.count("elicit " + question); n != 1 && server == "go" {
						t.Errorf("%s was answered %d times", question, n)
					}
				}
				_, ch := s.begin(step{"op": "close"})
				s.await(t, "close", ch)
				e.stopAll(t)
			})
		}
	}
}

// TestEqualGatewaysStreams: a client of each SDK keeps its session, its subscription and the questions of its server while each of three
// gateways in turn is stopped and started again.
func TestEqualGatewaysStreams(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ts1", "go-legacy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startEquals(t, 3, true, nil, backend{name: "s", server: servers()["go-legacy"]})
			s := e.join(t, gatewayClients()[name], inFront(t, e.all, nil))
			s.toolNames(t)
			s.do(t, step{"op": "subscribe", "uri": item})
			for n := range e.all {
				e.all[n].stop2(t)
				e.all[n] = e.all[n].listenAgain(t)
				if !eventually(func() bool {
					from := s.mark()
					_, ch := s.begin(step{"op": "call", "tool": "touch", "args": map[string]any{"uri": item}})
					s.await(t, "touch", ch)
					return within(500*time.Millisecond, func() bool {
						return slices.ContainsFunc(s.seen(from), notification("notifications/resources/updated", item))
					})
				}) {
					t.Errorf("after the end of gateway %d: subscribed and not told; it saw %v", n, s.seen(0))
				}
				from := s.mark()
				if text := s.call(t, "elicit", map[string]any{"question": "go on?"}).text(); text != "elicited yes" {
					t.Errorf("a question after the end of gateway %d: %q", n, text)
				}
				s.awaitEvent(t, from, "the question", asked("elicitation/create"))
			}
			_, ch := s.begin(step{"op": "close"})
			s.await(t, "close", ch)
			e.stopAll(t)
		})
	}
}

// bumper is one client with a session, whose calls its server counts in a file. It has one call at a time.
type bumper struct {
	*rawSession
	name  string
	calls int
	pid   string          // the process that has answered last
	past  map[string]bool // those before it

	outcomes map[string]bool // by what was called: it was answered
	failed   []string        // what the others got
	took     []time.Duration // until it was answered
}

var bumped = regexp.MustCompile(`"text":"bump (\S+) (\d+)"`)

// call has the server count once. An error says that something is wrong; that a call has failed, or its outcome is unknown, is none.
func (c *bumper) call() error {
	c.calls++
	value := fmt.Sprintf("%s-%d", c.name, c.calls)
	begun := time.Now()
	status, text, err := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"bump","arguments":{"value":%q}}}`, c.calls, value))
	m := bumped.FindStringSubmatch(text)
	c.outcomes[value] = m != nil
	switch {
	case status == http.StatusNotFound:
		return fmt.Errorf("%s: its session is lost: %s", value, text)
	case m == nil:
		c.failed = append(c.failed, fmt.Sprintf("%s %s, after %v: %d %.200s %v", time.Now().Format("05.000"), value, time.Since(begun), status, text, err))
		return nil
	case m[1] != value:
		return fmt.Errorf("%s: it has the answer %s", value, text)
	case c.past[m[2]]:
		return fmt.Errorf("%s: an answer of process %s, although %s has answered since then", value, m[2], c.pid)
	}
	if c.pid != m[2] {
		c.past[c.pid], c.pid = true, m[2]
	}
	c.took = append(c.took, time.Since(begun))
	return nil
}

// bumpers are clients that call at the same time.
type bumpers []*bumper

// openBumpers opens sessions, each of which has called once.
func openBumpers(t *testing.T, many int, url string) (all bumpers) {
	t.Helper()
	for n := range many {
		c := &bumper{rawSession: plain(url, "", tokenOfGateways), name: fmt.Sprint("c", n), past: map[string]bool{}, outcomes: map[string]bool{}}
		c.client.Timeout = time.Minute // as SDKs have it
		c.mustHave(t, helloLine, `"protocolVersion"`)
		c.mustHave(t, initializedLine, "")
		all = append(all, c)
	}
	all.while(t, "at the beginning", 0, 1, func() {})
	return all
}

// while has all of them call, at least so often, and something happen meanwhile. At most fails calls of each may fail.
func (all bumpers) while(t *testing.T, what string, fails, calls int, happens func()) {
	t.Helper()
	over, begun := make(chan struct{}), time.Now()
	go func() {
		defer close(over)
		happens()
	}()
	failed := all.until(t, over, what, fails, calls)
	<-over
	t.Logf("%s: %d of all calls failed, in %v", what, failed, time.Since(begun).Round(time.Millisecond))
	if t.Failed() {
		t.FailNow()
	}
}

// until has all of them call until over is closed, and at least so often. It returns how many calls have failed: of each client at most fails
// may.
func (all bumpers) until(t *testing.T, over <-chan struct{}, what string, fails, calls int) (failed int) {
	t.Helper()
	before := map[*bumper]int{}
	for _, c := range all {
		before[c] = len(c.failed)
	}
	var calling sync.WaitGroup
	for _, c := range all {
		calling.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					if n >= calls {
						return
					}
				default:
				}
				if err := c.call(); err != nil {
					t.Errorf("%s: %v", what, err)
					return
				}
				time.Sleep(100 * time.Millisecond) // at most 10 calls a second of each client: they share two cores with all servers
			}
		})
	}
	calling.Wait()
	for _, c := range all {
		n := len(c.failed) - before[c]
		if failed += n; n > fails {
			t.Errorf("%s: a client saw %d failed calls: %q", what, n, c.failed[before[c]:])
		}
	}
	return failed
}

// moved is how often a session went on in another process.
func (all bumpers) moved() (n int) {
	for _, c := range all {
		n += len(c.past)
	}
	return n
}

// made is how many calls there were.
func (all bumpers) made() (n int) {
	for _, c := range all {
		n += c.calls
	}
	return n
}

// counted compares what was answered with what servers have written: no call was carried out twice, and what was answered once.
func (all bumpers) counted(t *testing.T, where ...*workspace) {
	t.Helper()
	times := map[string]int{}
	for _, w := range where {
		for _, line := range w.traces() {
			if value, ok := strings.CutPrefix(line, "bump "); ok {
				times[value]++
			}
		}
	}
	unanswered, carriedOut := 0, 0
	for _, c := range all {
		for value, answered := range c.outcomes {
			switch n := times[value]; {
			case answered && n != 1:
				t.Errorf("%s was answered, and carried out %d times", value, n)
			case n > 1:
				t.Errorf("%s was carried out %d times", value, n)
			case !answered:
				unanswered++
				carriedOut += n
			}
		}
	}
	t.Logf("%d calls, none carried out twice; %d had no answer, of which %d were carried out", all.made(), unanswered, carriedOut)
}

// times are how long the calls since the last time have taken, the shortest first.
func (all bumpers) times() (took []time.Duration) {
	for _, c := range all {
		took = append(took, c.took...)
		c.took = nil
	}
	slices.Sort(took)
	return took
}

// percentiles are those of such times.
func percentiles(took []time.Duration) string {
	if len(took) == 0 {
		return "no calls"
	}
	return fmt.Sprintf("p50 %v, p99 %v of %d calls", took[len(took)/2].Round(10*time.Microsecond), took[len(took)*99/100].Round(10*time.Microsecond), len(took))
}

// TestEqualGatewaysBehindBalancers: sessions whose calls are counted in a file, behind nginx and HAProxy, in turn and by session. A gateway is
// killed, stopped for longer than its lease, and ended as it should be: each call is carried out once, or its client hears that it may have
// been; nobody hears of a former owner, and no client sees more than one failed call at each of these.
func TestEqualGatewaysBehindBalancers(t *testing.T) {
	needFull(t, "a lease of 20 s has to run out again and again, under load; internal/fleet/sessions and internal/gateway/streamhttp have what is decided")
	for _, b := range balancers() {
		t.Run(b.name+"/"+b.how, func(t *testing.T) {
			sessions := 40
			if b.name == "haproxy" && b.how == "round robin" {
				sessions = 200
			}
			e := startEquals(t, 3, true, []string{"auth: {bearer: [" + tokenOfGateways + "]}", "limits: {sessions: 1000, processes: 1000}"}, backend{name: "s", server: servers()["go-legacy"]})
			all := openBumpers(t, sessions, b.start(t, e.all))
			all.times()
			all.while(t, "nothing happens", 0, 10, func() {})
			t.Logf("through three: %s", percentiles(all.times()))

			all.while(t, "a gateway is killed", 1, 4, func() { e.all[0].killed(t) })
			e.all[0] = e.all[0].listenAgain(t)
			all.while(t, "a gateway is killed and starts again", 1, 4, func() {
				e.all[1].killed(t)
				e.all[1] = e.all[1].listenAgain(t)
			})
			all.while(t, "a gateway is stopped for longer than its lease", 1, 4, func() {
				signal := func(s syscall.Signal) {
					if err := e.all[2].cmd.Process.Signal(s); err != nil {
						t.Error(err)
					}
				}
				signal(syscall.SIGSTOP)
				time.Sleep(leaseOver + 5*time.Second) // what is tried: it does nothing for so long
				signal(syscall.SIGCONT)
			})
			all.while(t, "a gateway gets SIGTERM", 1, 4, func() { e.all[0].stop2(t) })
			e.all[0] = e.all[0].listenAgain(t)
			all.while(t, "afterwards", 0, 4, func() {})
			all.counted(t, e.workspace)
			e.stopAll(t)
		})
	}
}

// TestEqualGatewaysBesideOne: what three gateways cost in turn beside one, without anything that happens.
func TestEqualGatewaysBesideOne(t *testing.T) {
	needFull(t, "it measures how long calls take")
	for _, many := range []int{1, 3} {
		e := startEquals(t, many, true, []string{"auth: {bearer: [" + tokenOfGateways + "]}"}, backend{name: "s", server: servers()["go-legacy"]})
		all := openBumpers(t, 20, balancers()[0].start(t, e.all))
		all.times()
		all.while(t, fmt.Sprint(many, " behind HAProxy"), 0, 100, func() {})
		t.Logf("%d gateways behind HAProxy: %s", many, percentiles(all.times()))
		all.counted(t, e.workspace)
		e.stopAll(t)
	}
}

// TestGatewaysWithoutTheirFleet: the hub is away for longer than leases last. Sessions cannot be had meanwhile, clients of 2026-07-28 are
// served all the time, and no call is carried out twice; when the hub is back all sessions go on.
func TestGatewaysWithoutTheirFleet(t *testing.T) {
	needFull(t, "a lease of 20 s has to run out")
	t.Parallel()
	e := startEquals(t, 2, true, nil, backend{name: "s", server: servers()["go"]})
	a, b := plain(e.all[0].url, ""), plain(e.all[1].url, "")
	count := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"count","arguments":{}}}`
	for _, s := range []*rawSession{a, b} {
		s.mustHave(t, helloLine, `"protocolVersion"`)
		s.mustHave(t, count, `"text":"1"`)
	}
	modern := e.join(t, gatewayClients()["go"], e.all[0].url)
	ended(e.fleet.running)
	begun := time.Now()
	a.mustHave(t, count, `"text":"2"`) // its lease goes on for a while
	slow := make(chan string, 1)
	go func() {
		status, text, err := plain(e.all[0].url, a.id).post(slowLine(7, "on its way", 60_000))
		slow <- fmt.Sprint(status, " ", text, " ", err)
	}()
	e.awaitTrace(t, "slow on its way", 1)
	if text := <-slow; !strings.Contains(text, `"id":7,"error":`) || !strings.Contains(text, "outcome unknown") {
		t.Errorf("on its way when the lease has ended: %s", text)
	}
	if took := time.Since(begun); took > leaseOver {
		t.Errorf("the lease has ended after %v", took)
	}
	for _, s := range []*rawSession{a, b} {
		if !eventually(func() bool { status, _, _ := s.post(count); return status == http.StatusServiceUnavailable }) {
			t.Error("a session is served without its lease")
		}
	}
	stream := plain(e.all[1].url, b.id).events(t, "GET", "") // it is held open
	if text := modern.call(t, "echo", map[string]any{"text": "still here"}).text(); text != "still here" {
		t.Errorf("a client without a session: %q", text)
	}
	if !strings.Contains(e.status(), "no sessions can be had here: ") {
		t.Errorf("the status says\n%s", e.status())
	}
	e.fleet.open(t, e.fleet.address)
	for stream.Scan() { // it ends, and its client opens it again
	}
	for _, s := range []*rawSession{a, b} {
		if !eventually(func() bool {
			status, text, _ := s.post(count)
			return status == http.StatusOK && strings.Contains(text, `"text":"`)
		}) {
			t.Error("a session does not go on")
		}
	}
	if n := e.count("slow on its way"); n != 1 {
		t.Errorf("a call whose outcome was unknown was carried out %d times", n)
	}
	modern.depart(t)
	e.stopAll(t)
}

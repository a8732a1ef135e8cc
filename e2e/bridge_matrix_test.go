package e2e

import (
	"bufio"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// outcome is what came of one cell, as the document tells it.
type outcome struct {
	era, version string          // the client's side of the conversation; "" if it never came about
	passed       map[string]bool // by the trial's name
}

// bridged says whether the two sides spoke different eras.
func (o outcome) bridged(c cell) bool { return c.server.era != "dual" && c.server.era != o.era }

// board collects the outcomes of all cells.
type board struct {
	mu    sync.Mutex
	cells map[string]outcome
	slow  []cell // connected too late while others ran too
}

func (b *board) put(c cell, o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cells[c.name()] = o
}

// late notes a cell whose connection is to be timed once more, alone.
func (b *board) late(c cell) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow = append(b.slow, c)
}

// connectLimit is the longest time that a client may wait for its handshake: the shortest patience of a real client,
// with room for two starts of a server that dies of a probe.
const connectLimit = 3 * time.Second

// TestBridge: every client with every server, over `outlive run` and over the gateway's HTTP, and again after kills of
// the server. What comes of it must be what docs/COMPATIBILITY.md says. The door makes some of the trials with each of them
// (testdata/door-cells.txt), and does not judge how soon they are connected.
//
//	OUTLIVE_TIER=full E2E_WRITE_COMPATIBILITY=1 e2e/run.sh -run TestBridge    writes the document
func TestBridge(t *testing.T) {
	besideOthers(t)
	b := &board{cells: map[string]outcome{}}
	for _, lane := range lanes {
		t.Run(lane.key, func(t *testing.T) {
			for _, c := range cells(t) {
				if c.lane != lane.key {
					continue
				}
				t.Run(c.client.key+"×"+c.server.key, func(t *testing.T) {
					t.Parallel()
					b.play(t, c)
				})
			}
		})
	}
	for _, c := range b.slow {
		t.Run("alone/"+c.name(), c.connectsInTime)
	}
	t.Run("document", func(t *testing.T) {
		needOutlive(t)
		if full() {
			b.document(t)
		} else {
			b.notContradicted(t)
		}
	})
}

// play connects one client to one server and makes every trial on that one connection.
func (b *board) play(t *testing.T, c cell) {
	began := time.Now()
	o := outcome{passed: map[string]bool{}}
	defer func() { b.put(c, o) }()
	s, g := c.open(t)
	o.era, o.version = s.hello.Era, s.hello.Version
	if c.client.era != "dual" && o.era != c.client.era {
		t.Errorf("connected as %s (%s) although it speaks %s only", o.era, o.version, c.client.era)
	}
	for _, trial := range c.chosen(t, trialsOf(c, g)) {
		s.run(t, trial.name, func(t *testing.T) {
			trial.run(t, s)
			o.passed[trial.name] = !t.Failed() // not reached after a fatal failure
		})
	}
	if full() && s.hello.MS >= int(connectLimit.Milliseconds()) {
		b.late(c)
	}
	t.Logf("%s %s, connected in %d ms, all of it in %d ms", o.era, o.version, s.hello.MS, time.Since(began).Milliseconds())
}

// connectsInTime connects again, with nothing else of the matrix running. On a machine so busy that the server alone
// needs long to start, the limit is two such starts (a probe may cost one) and a second.
func (c cell) connectsInTime(t *testing.T) {
	limit := max(connectLimit, 2*c.server.start(t)+time.Second)
	s, g := c.open(t)
	if took := time.Duration(s.hello.MS) * time.Millisecond; took >= limit {
		t.Errorf("connected after %v, want less than %v", took, limit)
	}
	s.depart(t)
	if g != nil {
		g.stop(t)
	}
}

// start is how long the server needs from its start to its first answer, without outlive.
func (p part) start(t *testing.T) time.Duration {
	t.Helper()
	srv, w := castServer(p.key), newWorkspace(t)
	foreignIn(t, srv.argv...)
	cmd := exec.Command(srv.argv[0], srv.argv[1:]...)
	cmd.Env, cmd.Dir = w.env(), w.dir
	stdin, err := cmd.StdinPipe() // kept open: some servers end before they answer when it ends
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},`+
		`"clientInfo":{"name":"e2e","version":"1"}}}`+"\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("%s answers nothing: %v", p.key, err)
	}
	took := time.Since(began)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	return took
}

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sharedRun is a client's command line for a server that it shares with others.
func sharedRun(srv server, flags ...string) []string {
	argv := append([]string{"env", "OUTLIVE_SHARED_IDLE=2s", tools.outlive, "run", "--shared"}, flags...)
	return append(append(argv, "--"), srv.argv...)
}

// daemons are the daemons of shared servers of this workspace.
func (w *workspace) daemons() (pids []int) {
	for pid, line := range w.processes("shared-daemon") {
		if strings.Contains(line, "shared-daemon --idle") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestSharedRun: two clients of one SDK behind one server process. What belongs to one never reaches the other, before and after the server and
// the daemon are killed.
func TestSharedRun(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, c := range []struct {
		client, server string
	}{
		{"ts1", "py"}, {"py-legacy", "ts"}, {"go-legacy", "go-legacy"}, {"ts2-modern", "py"},
	} {
		t.Run(c.client+" "+c.server, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t)
			srv := servers()[c.server]
			p := couple{shared: true}
			for i := range p.s {
				p.s[i] = w.join(t, clients()[c.client], sharedRun(srv)...)
				p.s[i].server = srv
			}
			if n := len(w.serverPIDs(srv)); n != 1 {
				t.Errorf("%d server processes for two clients", n)
			}
			for _, s := range p.s { // once the server has asked for them, each client is asked for its own
				s.call(t, "roots", nil)
			}
			p.asking().alone(t)
			p.together(t)
			p.inTurn(t)
			p.subscribed(t)
			for _, pid := range w.serverPIDs(srv) {
				killed(t, pid)
			}
			p.asking().alone(t)
			p.told(t)
			before := p.s[0].mark()
			daemons := w.daemons()
			for _, pid := range daemons {
				killed(t, pid)
			}
			t.Logf("daemons %v are killed; there are %v", daemons, w.processes("")) // a call was once written to a pipe that nobody should have had
			for _, s := range p.s {
				s.call(t, "roots", nil)
			}
			if p.s[0].modern() { // its stream is open again a second later, and what it may have missed is announced
				p.s[0].awaitEvent(t, before, "change that may have been missed", notification("notifications/resources/updated", item))
			}
			p.asking().alone(t)
			p.told(t)
			p.inTurn(t)
			if n := len(w.serverPIDs(srv)); n != 1 {
				t.Errorf("%d server processes for two clients after the daemon was killed", n)
			}
			p.s[0].do(t, step{"op": "unsubscribe", "uri": item})
			p.s[0].depart(t)
			if r := p.s[1].call(t, "echo", map[string]any{"text": "who stays"}); r.text() != "who stays" {
				t.Errorf("after the other has left: %s", r)
			}
			p.s[1].depart(t)
			if !eventually(func() bool { return len(w.daemons()) == 0 }) {
				t.Error("the daemon goes on without clients")
			}
			w.noneLeft(t)
		})
	}
}

// asking is the couple with a server that may ask.
func (p couple) asking() couple {
	p.asks = true
	return p
}

// inTurn has both clients call at once what asks: each is asked its own, one after the other.
func (p couple) inTurn(t *testing.T) {
	t.Helper()
	var running [2]<-chan reply
	var marks [2]int
	mine := func(i int) func(event) bool {
		return func(e event) bool { return e.Event == "asked" && e.Message == "for "+string(rune('a'+i)) }
	}
	for i, s := range p.s {
		marks[i] = s.mark()
		_, running[i] = s.begin(step{"op": "call", "tool": "elicit", "args": map[string]any{"question": "for " + string(rune('a'+i))}})
	}
	for i, s := range p.s {
		s.awaitEvent(t, marks[i], "its question", mine(i))
		if r := s.await(t, "elicit", running[i]); r.text() != "elicited yes" {
			t.Errorf("%s: elicit: %s", s.client, r)
		}
		if slices.ContainsFunc(s.seen(marks[i]), mine(1-i)) {
			t.Errorf("%s was asked what belongs to the other", s.client)
		}
	}
}

// intruder connects to a socket, asks for a server and prints what it gets.
const intruder = `
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    s.sendall(b'POST /v1/seat HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n\r\n{"command":["id"]}')
    print("got", s.recv(1000))
except OSError as e:
    print("refused", type(e).__name__)
`

// TestSharedOtherUser: another user of the machine gets nothing at the daemon's socket, whatever the modes of it and its folders are.
func TestSharedOtherUser(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	if os.Getuid() != 0 {
		t.Skip("not root: connecting as another user (65534) needs that")
	}
	w := newWorkspace(t)
	srv := servers()["go-legacy"]
	s := w.join(t, clients()["go-legacy"], sharedRun(srv)...)
	s.server = srv
	socket := w.path("state/outlive/shared/socket")
	asNobody := func() string {
		cmd := exec.Command("/usr/bin/env", "python3", "-c", intruder, socket)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		cmd.Dir = "/"
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := asNobody(); got != "refused PermissionError" {
		t.Errorf("with its own modes: %s", got)
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(socket); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := asNobody(); got != "got b''" && got != "refused ConnectionResetError" && got != "refused BrokenPipeError" {
		t.Errorf("with modes for everybody: %s", got)
	}
	if r := s.call(t, "echo", map[string]any{"text": "mine"}); r.text() != "mine" {
		t.Errorf("the user's own session: %s", r)
	}
	s.depart(t)
}

// sharedPatience is how long a call of TestSharedStorm may be without an answer. Other storms have [stuckAfter], 10 s, for one start of a server in
// Go. Here a call may see two starts in Python, since one kill of the daemon and one of the server can hit it, but no second one of either: the
// next kill of the daemon waits for three answers of each caller, and that of the server for [killAgain]. Each start competes with six clients
// and two guests for the processor. It is longer than the 25 s after which outlive gives a call up that has no server: that error, which says
// why, is to come first.
const sharedPatience = 3 * stuckAfter

// TestSharedStorm: clients of three SDKs and both eras on one server while its processes and its daemon are killed again and again, and other
// clients come, call and are killed in the middle of a call. Each answer has the text of its call, nothing runs twice, and no client sees an
// error but the unknown outcome of a call that was running.
func TestSharedStorm(t *testing.T) {
	needFull(t, "a storm: kills by chance")
	needOutlive(t)
	lasts := stormTime(t)
	w := newWorkspace(t)
	srv := servers()["py"]
	var callers []*caller
	for i, name := range []string{"ts1", "py-legacy", "go-legacy", "ts2-modern", "ts1", "go-legacy"} {
		s := w.join(t, clients()[name], sharedRun(srv, "--name", fmt.Sprint("storm", i))...)
		s.toolNames(t) // from here on outlive knows what may be repeated
		callers = append(callers, &caller{session: s, number: i, backends: 1, patience: sharedPatience})
	}
	over := make(chan struct{})
	var guests []*guest
	var visits sync.WaitGroup
	for i := range 2 {
		g := &guest{w: w, srv: srv, name: fmt.Sprint("guest", i), chance: seeded(t, fmt.Sprint("guest ", i))}
		guests = append(guests, g)
		visits.Go(func() { g.comeAndGo(over) })
	}
	kills, wait, answers, chance := 0, 4, make([]int64, len(callers)), seeded(t, "kills")
	gaps := storm(t, callers, lasts, func(int, int) string { return "all" }, func() {
		// A call that may be repeated is, twice at most: so the next daemon is killed only when everybody has had answers of this one.
		wait--
		for i, c := range callers {
			if wait > 0 || c.answers.Load() < answers[i]+3 {
				return
			}
		}
		for _, pid := range w.daemons() {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				kills++
			}
		}
		for i, c := range callers {
			answers[i] = c.answers.Load()
		}
		wait = 5 + chance.IntN(8)
	})
	close(over)
	visits.Wait()
	t.Logf("the daemon was killed %d times", kills)
	if kills < int(lasts/(45*time.Second)) || kills == 0 {
		t.Errorf("the daemon was killed %d times only", kills)
	}
	reportStorm(t, w, callers, gaps, kills)
	for _, g := range guests {
		g.report(t)
	}
	for _, c := range callers {
		c.depart(t)
	}
	if !eventually(func() bool { return len(w.daemons()) == 0 }) {
		t.Error("the daemon goes on without clients")
	}
	w.noneLeft(t)
}

// guest is a client that shares the server for some calls, and whose outlive is killed during the next one.
type guest struct {
	w        *workspace
	srv      server
	name     string
	chance   *rand.Rand // of its goroutine
	visits   int
	bumped   []string // calls with an effect
	problems []string
}

// comeAndGo visits until the channel is closed.
func (g *guest) comeAndGo(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		default:
		}
		g.visits++
		s := &session{workspace: g.w, client: g.name, server: g.srv}
		var hello reply
		if s.driver, hello = clients()["go-legacy"].start(s, sharedRun(g.srv, "--name", g.name)); hello.Error != nil {
			g.problems = append(g.problems, fmt.Sprintf("visit %d: %s", g.visits, hello))
			continue
		}
		_, tools := s.begin(step{"op": "list"}) // from here on outlive knows what may be repeated
		if r := <-tools; r.Error != nil {
			g.problems = append(g.problems, fmt.Sprintf("tools of visit %d: %s", g.visits, r))
		}
		for n := range g.chance.IntN(60) {
			text := fmt.Sprintf("%s visit %d call %d", g.name, g.visits, n)
			_, ch := s.begin(step{"op": "call", "tool": "echo", "args": map[string]any{"text": text}})
			if r := <-ch; r.text() != text {
				g.problems = append(g.problems, fmt.Sprintf("echo: %s, want %q", r, text))
			}
		}
		value := fmt.Sprintf("%s/%d", g.name, g.visits)
		g.bumped = append(g.bumped, value)
		_, last := s.begin(step{"op": "call", "tool": "bump", "args": map[string]any{"value": value, "ms": 50}})
		time.Sleep(time.Duration(g.chance.Int64N(int64(60 * time.Millisecond)))) // it is killed before, during or after the call
		for pid := range g.w.processes("--shared --name " + g.name + " ") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-last
	}
}

// report judges what the guest saw.
func (g *guest) report(t *testing.T) {
	t.Helper()
	ran := map[string]int{}
	for _, line := range g.w.traces() {
		ran[line]++
	}
	for _, value := range g.bumped {
		if n := ran["bump "+value]; n > 1 {
			t.Errorf("%s: call %s ran %d times", g.name, value, n)
		}
	}
	for _, p := range g.problems {
		t.Errorf("%s: %s", g.name, p)
	}
	t.Logf("%s came %d times", g.name, g.visits)
}

package e2e

import (
	"fmt"
	"slices"
	"strings"
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
			for _, pid := range w.daemons() {
				killed(t, pid)
			}
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

// TestSharedStorm: clients of three SDKs and both eras on one server while its daemon is killed again and again. Each answer has the text of
// its call, nothing runs twice, and no client sees an error but the unknown outcome of a call that was running.
func TestSharedStorm(t *testing.T) {
	needOutlive(t)
	lasts := stormTime(t)
	w := newWorkspace(t)
	srv := servers()["py"]
	var callers []*caller
	for i, name := range []string{"ts1", "py-legacy", "go-legacy", "ts2-modern", "ts1", "go-legacy"} {
		s := w.join(t, clients()[name], sharedRun(srv, "--name", fmt.Sprint("storm", i))...)
		s.toolNames(t) // from here on outlive knows what may be repeated
		callers = append(callers, &caller{session: s, number: i, backends: 1})
	}
	seconds, kills := 0, 0
	gaps := storm(t, callers, lasts, func(int, int) string { return "all" }, func() {
		if seconds++; seconds%9 != 3 { // a call that may be repeated is, twice at most
			return
		}
		for _, pid := range w.daemons() {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				kills++
			}
		}
	})
	t.Logf("the daemon was killed %d times", kills)
	if kills < int(lasts/(15*time.Second)) {
		t.Errorf("the daemon was killed %d times only", kills)
	}
	reportStorm(t, w, callers, gaps)
	for _, c := range callers {
		c.depart(t)
	}
	if !eventually(func() bool { return len(w.daemons()) == 0 }) {
		t.Error("the daemon goes on without clients")
	}
	w.noneLeft(t)
}

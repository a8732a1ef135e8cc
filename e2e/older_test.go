package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// olderCommit is the release that users upgrade from. install.sh reads this line, and builds it.
const olderCommit = "2ef4627"

// older is the outlive of that release, with its outlive-fleet beside it.
func older(t *testing.T) string {
	t.Helper()
	needOutlive(t)
	needFull(t, "the release before is built out of the history of the checkout")
	return olderFile(t, "outlive")
}

// olderFile is a file that install.sh takes from that release.
func olderFile(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(tools.root, ".work", "older", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: install.sh makes it of the commit %s, which the history of this checkout has to have: git fetch --unshallow", err, olderCommit)
	}
	return path
}

// install has outlive in this workspace be a program from now on, by a link as installers make it, and returns its path.
func (w *workspace) install(t *testing.T, program string) string {
	t.Helper()
	path := w.path("outlive")
	if err := errors.Join(os.Symlink(program, path+".next"), os.Rename(path+".next", path)); err != nil {
		t.Fatal(err)
	}
	return path
}

// becomes has a running outlive become what is installed, by the newer command line, and returns what that says and its exit status.
func (w *workspace) becomes(name string, flags ...string) (text string, code int) {
	cmd := exec.Command(tools.outlive, append([]string{"upgrade", name}, flags...)...)
	cmd.Env, cmd.Dir = w.env(), w.dir
	out, _ := cmd.CombinedOutput() // its exit status says how it went
	return string(out), cmd.ProcessState.ExitCode()
}

// upgrades is how often outlive in front of a server has become another version, as status has it.
func (w *workspace) upgrades(t *testing.T, name string) int {
	t.Helper()
	cmd := exec.Command(tools.outlive, "status", "--json")
	cmd.Env, cmd.Dir = w.env(), w.dir
	out, err := cmd.Output()
	var all []struct {
		Name     string
		Upgrades int
	}
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		t.Fatalf("status: %v %s", err, out)
	}
	for _, one := range all {
		if one.Name == name {
			return one.Upgrades
		}
	}
	t.Fatalf("status does not know %s: %s", name, out)
	return 0
}

// hearsUpdates fails the test unless the client's subscription holds.
func (s *session) hearsUpdates(t *testing.T, tool, when string) {
	t.Helper()
	from := s.mark()
	if !eventually(func() bool { // a new process acknowledges a listen to outlive only, so the first update may come too early
		s.call(t, tool, map[string]any{"uri": item})
		return within(500*time.Millisecond, func() bool {
			return slices.ContainsFunc(s.seen(from), notification("notifications/resources/updated", item))
		})
	}) {
		t.Fatalf("%s: subscribed and not told; the client saw %v", when, s.seen(from))
	}
}

// TestOlderRunIsUpgraded: a run of the release before becomes this one in place, for a client and a server of each era, and for both pairs that need
// a bridge. While a question of the server is open that is refused, and everything goes on, unless the question was the end of a request. Each
// call runs once.
func TestOlderRunIsUpgraded(t *testing.T) {
	before := older(t)
	t.Parallel()
	for _, p := range []struct {
		client, server string
		asking         bool // it is possible while the client is asked something
	}{
		{"ts1", "py", false}, {"ts2-modern", "py", true}, {"ts1", "ts2-modern", false}, {"ts2-modern", "go-legacy", false},
	} {
		t.Run(p.client+" "+p.server, func(t *testing.T) {
			t.Parallel()
			w, srv := newWorkspace(t), servers()[p.server]
			program := w.install(t, before)
			s := w.join(t, clients()[p.client], append([]string{program, "run", "--name", "one", "--audit", w.path("audit.log"), "--restart-delay", "0", "--max-restarts", "0", "--"}, srv.argv...)...)
			s.server = srv
			s.toolNames(t)
			s.do(t, step{"op": "subscribe", "uri": item})
			s.hearsUpdates(t, "touch", "before the upgrade")
			s.call(t, "elicit", map[string]any{"question": "first"})
			w.install(t, tools.outlive)

			from := s.mark()
			s.do(t, step{"op": "hold"})
			_, held := s.begin(step{"op": "call", "tool": "elicit", "args": map[string]any{"question": "held"}})
			s.awaitEvent(t, from, "the question", asked("elicitation/create"))
			var flags []string
			if !p.asking {
				flags = []string{"--timeout", "1s"}
			}
			text, code := w.becomes("one", flags...)
			if done := code == 0; done != p.asking || !done && !strings.Contains(text, "nothing has changed") {
				t.Errorf("an upgrade while the client is asked: exit status %d, %s", code, text)
			}
			s.do(t, step{"op": "release"})
			if r := s.await(t, "elicit", held); r.text() != "elicited yes" {
				t.Errorf("the answer to the question: %s", r)
			}

			_, running := s.begin(step{"op": "call", "tool": "bump", "args": map[string]any{"value": "across", "ms": 1500}})
			s.awaitTrace(t, "bump across", 1)
			if text, code := w.becomes("one"); code != 0 {
				t.Fatalf("an upgrade while a call runs: exit status %d, %s", code, text)
			}
			if r := s.await(t, "bump", running); !strings.HasPrefix(r.text(), "bump across") {
				t.Errorf("the call that ran: %s", r)
			}
			want := 1
			if p.asking {
				want = 2
			}
			if got := w.upgrades(t, "one"); got != want {
				t.Errorf("upgraded %d times, want %d", got, want)
			}
			if got := s.call(t, "echo", map[string]any{"text": "after"}).text(); got != "after" {
				t.Errorf("after the upgrade: %q", got)
			}
			s.hearsUpdates(t, "touch", "after the upgrade")
			for _, pid := range w.serverPIDs(srv) {
				killed(t, pid)
			}
			if got := s.call(t, "elicit", map[string]any{"question": "last"}).text(); got != "elicited yes" {
				t.Errorf("after a kill of the server: %q", got)
			}
			for _, line := range []string{"elicit first", "elicit held", "bump across", "elicit last"} {
				if n := w.count(line); n != 1 {
					t.Errorf("%s: ran %d times", line, n)
				}
			}
			s.do(t, step{"op": "unsubscribe", "uri": item})
			s.depart(t)
			w.noneLeft(t)
		})
	}
}

// TestOlderRunIsKilled: what a run of the release before leaves when it is killed in the middle of a call is in nobody's way. Its server ends, and
// a run of this release with its name is the only one that is shown.
func TestOlderRunIsKilled(t *testing.T) {
	before := older(t)
	t.Parallel()
	w, srv := newWorkspace(t), servers()["go-legacy"]
	run := func(program string) *raw {
		return connectRaw(t, w, append([]string{program, "run", "--name", "one", "--"}, srv.argv...))
	}
	was := run(before)
	was.begin("bump", map[string]any{"value": "cut", "ms": 60000})
	w.awaitTrace(t, "bump cut", 1)
	_ = was.cmd.Process.Kill()
	<-was.ended
	w.noneLeft(t)

	now := run(tools.outlive)
	now.call(t, "bump", map[string]any{"value": "again"})
	shown := map[string]string{}
	for _, verb := range []string{"status", "logs one", "metrics", "wait one", "restart one"} {
		cmd := exec.Command(tools.outlive, strings.Fields(verb)...)
		cmd.Env, cmd.Dir = w.env(), w.dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("outlive %s: %v %s", verb, err, out)
		}
		shown[verb] = string(out)
	}
	if n := len(regexp.MustCompile(`(?m)^one\b`).FindAllString(shown["status"], -1)); n != 1 {
		t.Errorf("%d runs are shown:\n%s", n, shown["status"])
	}
	now.call(t, "bump", map[string]any{"value": "last"})
	for _, line := range []string{"bump cut", "bump again", "bump last"} {
		if n := w.count(line); n != 1 {
			t.Errorf("%s: ran %d times", line, n)
		}
	}
	now.leave(t)
}

// TestOlderRunShares: runs of both releases share one server by one daemon, of either release, and go on when that is killed. The commands of this
// release see all of it, and restart it.
func TestOlderRunShares(t *testing.T) {
	before := older(t)
	t.Parallel()
	for name, programs := range map[string][2]string{"the daemon is older": {before, tools.outlive}, "a run is older": {tools.outlive, before}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, srv := newWorkspace(t), servers()["go-legacy"]
			var all []*session
			for i, program := range programs {
				argv := append([]string{"env", "OUTLIVE_SHARED_IDLE=2s", program, "run", "--shared", "--name", fmt.Sprint("run", i), "--"}, srv.argv...)
				s := w.join(t, clients()["go-legacy"], argv...)
				s.server = srv
				s.toolNames(t)
				all = append(all, s)
			}
			together := func(when string) {
				t.Helper()
				for i, s := range all {
					value := fmt.Sprintf("%s/%d", when, i)
					if got := s.call(t, "bump", map[string]any{"value": value}).text(); !strings.HasPrefix(got, "bump "+value) {
						t.Errorf("%s, run %d: %q", when, i, got)
					}
					if n := w.count("bump " + value); n != 1 {
						t.Errorf("%s, run %d: the call ran %d times", when, i, n)
					}
				}
				if !eventually(func() bool { return len(w.serverPIDs(srv)) == 1 }) {
					t.Errorf("%s: %d processes of the server, want one", when, len(w.serverPIDs(srv)))
				}
			}
			together("at first")
			was := all[0].serverPID(t)
			cmd := exec.Command(tools.outlive, "restart", "run0")
			cmd.Env, cmd.Dir = w.env(), w.dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("restart: %v %s", err, out)
			}
			if now := all[1].serverPID(t); now == was {
				t.Error("the server was not restarted for the other run")
			}
			if text, code := w.becomes("run0"); code != 1 || !strings.Contains(text, "--shared") {
				t.Errorf("an upgrade of a run that shares: exit status %d, %s", code, text)
			}
			for _, pid := range w.daemons() {
				killed(t, pid)
			}
			together("with another daemon")
			for _, s := range all {
				s.depart(t)
			}
			if !eventually(func() bool { return len(w.daemons()) == 0 }) {
				t.Error("the daemon goes on without clients")
			}
			w.noneLeft(t)
		})
	}
}

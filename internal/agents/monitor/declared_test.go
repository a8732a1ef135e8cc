package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// A declared agent that crashes is resumed with its session, then restarted, at most as often as its budget allows; then a
// human is told, once.
func TestADeclaredAgentCrashes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts+"budget: {per_class: {crashed: 3/1h}}\n"))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	if len(w.started)+len(w.said) != 0 {
		t.Fatalf("started %v, said %v", w.started, w.said)
	}
	for range 16 {
		clear(w.living)
		w.pass(time.Minute)
		w.cycle()
	}
	if d := cmp.Diff([]string{"resume", "new", "new"}, w.rungs()); d != "" {
		t.Errorf("started: %s", d)
	}
	if l := w.started[0]; l.Command[2] != "s-shop" || l.Dir != w.dir("shop") || !strings.Contains(l.Command[3], "Nobody is at the keyboard") {
		t.Errorf("resumed with %q in %s", l.Command, l.Dir)
	}
	if len(w.said) != 1 || !strings.Contains(w.said[0], "3 of 3 starts are used") || strings.Contains(w.said[0], "heartbeat") { // it never had to beat
		t.Errorf("said %q", w.said)
	}
	if len(w.said) == 1 && !strings.Contains(w.said[0], "Starts: 3 of 3 in 1h, for this problem") {
		t.Errorf("the starts do not say what they count: %q", w.said[0])
	}
	if n := w.interventions(); n != 4 {
		t.Errorf("%d interventions in the log:\n%s", n, w.read("improvement-log.md"))
	}
}

// A start is not a recovery: only what the agent shows itself is one, and then everybody who was told hears of it.
func TestARecoveryIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts+"policy: {crashed: [restart, escalate]}\n"))
	w.claude("shop", 1001).prompt()
	w.cycle()
	clear(w.living)
	w.pass(time.Minute)
	w.cycle() // restarted, and dead again
	clear(w.living)
	w.spends(3*time.Minute, time.Minute)
	if len(w.started) != 1 || len(w.said) != 1 {
		t.Fatalf("started %v, said %q", w.started, w.said)
	}
	w.process(5009, w.dir("shop"), 0) // somebody starts it by hand: it lives, which shows nothing
	w.args[5009] = []string{"claude"}
	w.spends(time.Minute, 30*time.Second)
	if len(w.said) != 1 || strings.Contains(w.shown[0].Text.Body, "works again") {
		t.Fatalf("said %q", w.said)
	}
	w.claude("shop", 5009).prompt()
	w.spends(time.Minute, 30*time.Second)
	if len(w.said) != 2 || !strings.Contains(w.said[1], "shop works again") {
		t.Errorf("said %q", w.said)
	}
	if len(w.started) != 1 || len(w.stopped) != 0 {
		t.Errorf("started %v, stopped %v", w.started, w.stopped)
	}
}

// An owner who wants no two starts within a minute gets that, whoever needs one; the budget of all is as persistent as any other.
func TestOneStartAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var agents []string
	for _, name := range []string{"a", "b"} {
		agents = append(agents, w.agent(name, "kind: command\n"+starts+"match: {pidfile: pid}\n"))
	}
	w.declare("defaults: {budget: {global: 1/60s}}\n", agents...)
	for i, name := range []string{"a", "b"} {
		w.process(1001+i, w.dir(name), 0)
		w.write("projects/"+name+"/pid", fmt.Sprint(1001+i))
	}
	w.cycle()
	clear(w.living)
	w.spends(5*time.Second, 5*time.Second)
	if len(w.started) != 1 {
		t.Fatalf("started %v", w.started)
	}
	w.spends(50*time.Second, 5*time.Second)
	if len(w.started) != 1 {
		t.Errorf("%d starts within a minute", len(w.started))
	}
	w.spends(10*time.Second, 5*time.Second)
	if len(w.started) != 2 || w.started[0].Dir == w.started[1].Dir {
		t.Errorf("started %v", w.started)
	}
}

// Many that fail together are one cause: one message, one of them is tried, and when it works the others follow.
func TestManyFailTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := []string{"a", "b", "c", "d", "e"}
	var agents []string
	for _, name := range names {
		agents = append(agents, w.agent(name, "kind: claude\n"+starts))
	}
	w.declare("", agents...)
	for i, name := range names {
		w.claude(name, 1001+i).prompt()
	}
	w.cycle()
	clear(w.living)
	w.spends(5*time.Minute, 5*time.Second)
	if len(w.said) != 1 || !strings.Contains(w.said[0], "a, b, c, d, e") {
		t.Fatalf("said %q", w.said)
	}
	if len(w.started) != 1 {
		t.Fatalf("started %d: only one is tried first", len(w.started))
	}
	first := w.started[0].Dir[len(w.started[0].Dir)-1:]
	w.claude(first, 5001).prompt()
	w.spends(5*time.Minute, 5*time.Second)
	dirs := map[string]int{}
	for _, l := range w.started {
		dirs[l.Dir]++
	}
	if len(w.started) != 5 || len(dirs) != 5 {
		t.Errorf("started %v", dirs)
	}
	if len(w.said) != 2 {
		t.Errorf("said %q", w.said)
	}
}

// What nobody misses: an agent that was never seen, one at its prompt for days, and one that ended there.
func TestNobodyIsWoken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("never", "kind: claude\n"+starts), w.agent("idle", "kind: claude\n"+starts), w.agent("over", "kind: claude\n"), w.agent("paused", "kind: claude\npaused: true\n"+starts))
	w.claude("idle", 1001).ends("All done.")
	w.claude("over", 1002).ends("All done.")
	w.claude("paused", 1003).prompt()
	w.spends(time.Minute, 5*time.Second)
	delete(w.living, 1002)
	delete(w.living, 1003)
	w.spends(72*time.Hour, time.Hour)
	if len(w.started)+len(w.stopped)+len(w.said)+w.interventions() != 0 {
		t.Errorf("started %v, stopped %v, said %q", w.started, w.stopped, w.said)
	}
}

// A command that exits 0 is done, such as a backup, unless its owner says otherwise. An agent of another kind is not.
func TestAnEndInPeace(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		kind, expect string
		starts       int
	}{
		"a command":             {"command", "", 0},
		"declared":              {"command", "expect: {done: {exit: 0}}\n", 0},
		"not meant to end":      {"command", "expect: {done: {exit: never}}\n", 1},
		"not its status":        {"command", "expect: {done: {exit: 3}}\n", 1},
		"the manifest says":     {"command", "expect: {done: {manifest: complete}}\n", 1},
		"another kind of agent": {"acp", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: "+want.kind+"\n"+starts+want.expect))
			w.process(1001, w.dir("shop"), time.Minute)
			w.process(1000, w.dir("shop"), time.Minute)
			w.reports("shop", 1001, nil)
			w.cycle()
			w.pass(time.Minute)
			w.reports("shop", 1001, &agentrun.Exit{At: w.wall})
			clear(w.living)
			w.spends(2*time.Minute, 30*time.Second)
			if len(w.started) != want.starts || len(w.said) != 0 {
				t.Errorf("started %v, said %q", w.started, w.said)
			}
			if want.starts > 0 && !strings.Contains(w.read("improvement-log.md"), "R3 exited_unfinished") {
				t.Errorf("log: %s", w.read("improvement-log.md"))
			}
		})
	}
}

// A start by a person ends the stop before it, also if the agent ends at once.
func TestAStartByAPersonEndsAStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	w.claude("shop", 1001).prompt()
	w.cycle()
	w.userRequest("shop", "stop")
	w.cycle()
	w.spends(10*time.Minute, time.Minute)
	if len(w.stopped) != 1 || len(w.started) != 0 {
		t.Fatalf("after a stop: ended %v, started %v", w.stopped, w.rungs())
	}
	w.opts.checkpoint = func(step string) {
		if step == "spawned" {
			clear(w.living) // before anybody has looked at it
		}
	}
	w.userRequest("shop", "start")
	w.cycle()
	w.opts.checkpoint = nil
	w.spends(5*time.Minute, time.Minute)
	if len(w.started) < 2 {
		t.Errorf("nothing was done about one that ended at once: started %v, said %q", w.rungs(), w.said)
	}
}

// The report of a wrapper is that of one run: after a start of ours the old one says nothing any more.
func TestAnOldReportIsOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\n"+starts))
	w.process(1001, w.dir("shop"), time.Minute)
	w.reports("shop", 1001, nil)
	w.cycle()
	w.reports("shop", 1001, &agentrun.Exit{Code: 1, At: w.wall})
	clear(w.living)
	w.spends(time.Minute, time.Minute)
	if len(w.started) != 1 {
		t.Fatalf("started %v", w.started)
	}
	w.spends(20*time.Minute, 30*time.Second)
	if len(w.started) != 1 || len(w.said) != 0 {
		t.Errorf("it lives, and was judged by the old report: started %d, said %q", len(w.started), w.said)
	}
	delete(w.living, 5001) // before the wrapper has written anything
	w.spends(time.Minute, 30*time.Second)
	if len(w.started) != 2 {
		t.Errorf("its end was not seen: started %d", len(w.started))
	}
}

// The machine was asleep: nobody is silent for it.
func TestADeclaredAgentAfterASleep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	w.sleep(8 * time.Hour)
	w.spends(7*time.Minute, 30*time.Second)
	if len(w.said)+len(w.started)+len(w.interrupted) != 0 {
		t.Fatalf("after a sleep: said %q, started %v", w.said, w.started)
	}
	w.spends(4*time.Minute, 30*time.Second) // and now it is
	if d := cmp.Diff([]string{"resume"}, w.rungs()); d != "" {
		t.Error(d)
	}
}

// A model that is silent: observed, then resumed; then a human. A SIGINT would end the session (Claude Code), so it is not
// interrupted.
func TestTheLadderOfASilentModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	w.claude("shop", 1001).headless().prompt()
	w.cycle()
	w.spends(9*time.Minute, 30*time.Second)
	if len(w.interrupted)+len(w.started) != 0 {
		t.Fatal("something was done before it was observed")
	}
	w.spends(time.Minute, 30*time.Second)
	if d := cmp.Diff([]string{"resume"}, w.rungs()); d != "" || !slices.Equal(w.stopped, []int{1001}) || len(w.interrupted) != 0 {
		t.Errorf("%s, stopped %v, interrupted %v", d, w.stopped, w.interrupted)
	}
}

// A number that is another's now is nobody's life, and nobody ends the other.
func TestANumberThatIsAnothers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\nmatch: {pidfile: pid}\n"+starts))
	w.process(1001, w.dir("shop"), time.Minute)
	w.write("projects/shop/pid", "1001\n")
	if err := os.Chtimes(filepath.Join(w.dir("shop"), "pid"), w.wall, w.wall); err != nil {
		t.Fatal(err)
	}
	w.cycle()
	w.pass(time.Hour)
	w.process(1001, w.dir("shop"), time.Second)
	p := w.living[1001]
	p.Start++
	w.living[1001] = p
	w.spends(30*time.Second, 5*time.Second)
	if len(w.stopped) != 0 || len(w.started) != 1 {
		t.Errorf("stopped %v, started %v", w.stopped, w.started)
	}
}

// What an agent says by sd_notify is a beat of its own: it is well while it comes, and needs a human when it calls itself stuck.
func TestANoticeIsABeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\n"))
	w.process(1001, w.dir("shop"), time.Hour)
	says := func(more string) {
		t.Helper()
		w.reports("shop", 1001, nil)
		path := agentrun.Path(w.home, "shop")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		notice := fmt.Sprintf(`,"notice":{"status":"step 3","at":%q%s}}`, w.wall.UTC().Format(time.RFC3339Nano), more)
		if err := os.WriteFile(path, []byte(strings.TrimSuffix(string(text), "}")+notice), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says("")
	w.cycle()
	w.pass(time.Minute)
	view, err := Inspect(t.Context(), w.opts)
	if err != nil || len(view.Findings) != 1 {
		t.Fatal(view, err)
	}
	if f := view.Findings[0]; f.Diagnosis.Class != diagnose.Healthy || f.Evidence.Beat.Note != "step 3" || f.Evidence.Beat.Age != diagnose.Span(time.Minute) {
		t.Errorf("%+v, beat %+v", f.Diagnosis, f.Evidence.Beat)
	}
	says(`,"stuck":true`)
	w.spends(time.Minute, 10*time.Second)
	if len(w.said) != 1 || !strings.Contains(w.said[0], "shop waits for you at its terminal") {
		t.Errorf("said %q", w.said)
	}
}

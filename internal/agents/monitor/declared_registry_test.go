package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// A registry of version 2 is its owner's: broken, it is left as it is, the last good copy is used, and a human hears of it
// once, and of its end.
func TestABrokenRegistryOfDeclaredAgents(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]string{
		"no YAML": "version: 2\nagents: [", "empty": "", "a mistake": "version: 2\nagents: {shop: {kind: clode}}\n", "binary": "\x00\x01", "no agents, nor their key": "version: 2\n",
		"a secret in it": "version: 2\nchannels: {me: \"ntfy://u:hunter2x@h/t\", [}\nagents: {}\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts))
			good := w.read("registry.yaml")
			w.claude("shop", 1001).prompt()
			w.cycle()
			w.write("registry.yaml", broken)
			w.spends(2*time.Minute, time.Minute)
			if len(w.said) != 1 || len(w.started)+len(w.stopped) != 0 || w.read("registry.yaml") != broken {
				t.Fatalf("said %q, started %v, the file is %q", w.said, w.started, w.read("registry.yaml"))
			}
			if others, _ := filepath.Glob(filepath.Join(w.home, "registry.yaml*")); len(others) != 1 {
				t.Errorf("there are %v", others)
			}
			if strings.Contains(w.said[0]+w.read("improvement-log.md"), "hunter2x") {
				t.Errorf("a secret is told: %q", w.said)
			}
			clear(w.living) // the last good copy knows what to do
			w.spends(time.Minute, time.Minute)
			if len(w.started) != 1 {
				t.Errorf("started %v", w.started)
			}
			w.write("registry.yaml", good)
			w.spends(time.Minute, time.Minute)
			if len(w.said) != 2 || !strings.Contains(w.said[1], "works again") {
				t.Errorf("said %q", w.said)
			}
		})
	}
}

// After an upgrade the registry of the release before goes on being used, and a warning says what to write. So does one with a
// value that is a mistake now, until it is changed: then the copy of it is used.
func TestARegistryOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	for keys, warning := range map[string]string{
		"policy: {monitor_blind: [escalate]}": "has no effect", "budget: {kill_grace: 2m}": "counts as 1m", "escalate: {quiet: \"08:00-08:00\"}": "has no length",
		"policy: {a_class_of_then: [escalate]}": "is not a class of stalls",
	} {
		t.Run(keys, func(t *testing.T) {
			w := newWorld(t)
			var log strings.Builder
			w.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			w.declare("", w.agent("shop", "kind: claude\n"+keys+"\n"+starts))
			text := w.read("registry.yaml")
			opts := w.opts.withDefaults()
			s, err := openStore(t.Context(), opts.Database())
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(setFact(t.Context(), s.db, "registry", goodCopy{opts.Registry, text}), s.close()); err != nil {
				t.Fatal(err)
			}
			w.claude("shop", 1001).prompt()
			w.cycle()
			if !strings.Contains(log.String(), warning) {
				t.Errorf("no warning: %s", log.String())
			}
			isMistake := strings.Contains(keys, "a_class_of_then")
			if isMistake {
				w.write("registry.yaml", text+"x-note: changed\n")
			}
			clear(w.living)
			w.spends(time.Minute, time.Minute)
			if len(w.started) != 1 || (len(w.said) == 1) != isMistake {
				t.Errorf("started %v, said %q", w.started, w.said)
			}
		})
	}
}

// The next monitor ends a restart that an earlier one began. It does not where the owner has paused, removed or started the
// agent meanwhile.
func TestARestartThatTheOwnerHasOvertaken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meanwhile func(w *world)
		starts    int
	}{
		"nothing has happened": {func(*world) {}, 1},
		"removed":              {func(w *world) { w.declare("", w.agent("other", "kind: command\n")) }, 0},
		"paused":               {func(w *world) { w.declare("", w.agent("shop", "kind: claude\npaused: true\n"+starts)) }, 0},
		"started by hand":      {func(w *world) { w.claude("shop", 2001).prompt() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts))
			w.claude("shop", 1001).prompt()
			w.cycle()
			clear(w.living)
			w.pass(time.Minute)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			w.onStop, w.stopErr = end, context.Canceled
			m, err := Open(ctx, w.opts)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = m.Once(ctx) // it is ended while it waits for the old process
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if ctx.Err() == nil || len(w.started) != 0 {
				t.Fatalf("no restart was interrupted: started %v", w.rungs())
			}
			w.onStop, w.stopErr = nil, nil
			tt.meanwhile(w)
			w.spends(2*time.Minute, time.Minute)
			if len(w.started) != tt.starts || len(w.stopped) != 0 {
				t.Errorf("started %v, stopped %v", w.rungs(), w.stopped)
			}
		})
	}
}

// Who is taken out of the registry, or paused, is not told of any more; nobody hears of that either.
func TestAnAgentThatNobodyWants(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(w *world) string{
		"removed": func(w *world) string { return w.agent("other", "kind: command\n") },
		"paused":  func(w *world) string { return w.agent("shop", "kind: claude\npaused: true\n") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\npolicy: {crashed: [escalate]}\nescalate: {repeat: 10m}\n"+starts))
			w.claude("shop", 1001).prompt()
			w.cycle()
			clear(w.living)
			w.spends(15*time.Minute, time.Minute)
			if len(w.said) != 2 { // and a reminder
				t.Fatalf("said %q", w.said)
			}
			w.declare("", after(w))
			w.spends(6*time.Hour, 10*time.Minute)
			if len(w.said) != 2 || !strings.Contains(w.shown[0].Text.Body, "resolved") {
				t.Errorf("said %q, and the message is %q", w.said[1:], w.shown[0].Text.Body)
			}
			if len(w.started) != 0 {
				t.Errorf("started %v", w.started)
			}
		})
	}
}

// Half a heartbeat says nothing, neither that it lives nor that it does not: the last whole one counts.
func TestAHeartbeatThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\nexpect: {beat: 1m, stale: 5m}\nmatch: {pidfile: pid}\n"+starts))
	w.process(1001, w.dir("shop"), time.Minute)
	w.write("projects/shop/pid", "1001\n")
	w.beats("shop", heartbeat.Working)
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	look := func(times int) {
		t.Helper()
		for range times {
			w.pass(30 * time.Second)
			if _, err := m.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	look(2)
	w.write("hb/shop.json", `{"v":1,"t":"2026-`)
	look(60)
	if len(w.started)+len(w.stopped)+len(w.interrupted) != 0 {
		t.Errorf("started %v, stopped %v", w.started, w.stopped)
	}
	w.beats("shop", heartbeat.Working)
	look(2)
	look(14) // and now it is silent
	if len(w.stopped) != 1 || len(w.started) != 1 {
		t.Errorf("stopped %v, started %v, said %q", w.stopped, w.started, w.said)
	}
}

// What a session's file says counts only while the very process that wrote it lives.
func TestASessionOfADeadProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"))
	c := w.claude("shop", 1001)
	c.is("waiting", "permission prompt")
	delete(w.living, 1001)
	w.process(1001, "/elsewhere", 0) // its number is another's
	p := w.living[1001]
	p.Start++
	w.living[1001] = p
	w.spends(10*time.Minute, time.Minute)
	if len(w.said) != 0 {
		t.Errorf("said %q", w.said)
	}
}

// A table of processes that nobody could read, and a process that nobody may look at, are not deaths.
func TestATableThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(w *world){
		"an empty table": func(w *world) { w.blind = true },
		"not permitted":  func(w *world) { w.blind, w.living[1001] = true, process.Process{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts))
			w.claude("shop", 1001).prompt()
			w.cycle()
			after(w)
			w.spends(5*time.Minute, time.Minute)
			if len(w.started)+len(w.stopped) != 0 {
				t.Errorf("started %v, stopped %v", w.started, w.stopped)
			}
		})
	}
}

// A transcript of yesterday is not the work of an agent that was never seen.
func TestATranscriptOfYesterday(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	delete(w.living, 1001)
	if err := os.RemoveAll(filepath.Join(w.opts.Places[agentcli.Claude], "sessions")); err != nil {
		t.Fatal(err)
	}
	w.spends(24*time.Hour, time.Hour)
	if len(w.said)+len(w.started) != 0 {
		t.Errorf("said %q, started %v", w.said, w.started)
	}
}

// Whatever secret an agent runs or says, nobody is told and nothing keeps it.
func TestSecretsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	w := newWorld(t)
	w.opts.Record = filepath.Join(w.home, "record.jsonl")
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	c.tool("Bash", fmt.Sprintf(`"command":"mysql --password=%s shop"`, secret))
	c.is("waiting", "permission prompt")
	w.spends(2*time.Minute, 30*time.Second)
	c.ends("I used the password: " + secret + " and now, shall I go on?")
	w.spends(20*time.Minute, time.Minute)
	c.writes(fmt.Sprintf(`"type":"assistant","isApiErrorMessage":true,"error":"unknown","message":{"role":"assistant","content":[{"type":"text","text":"API Error: 400 password=%s is bad"}]}`, secret))
	w.spends(20*time.Minute, time.Minute)
	if len(w.said) < 2 {
		t.Fatalf("said %q: the test tests nothing", w.said)
	}
	w.opts.processes = w
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil { // what is in the log of the database is in the file then
		t.Fatal(err)
	}
	for _, m := range w.shown {
		if strings.Contains(m.Text.Body, secret) {
			t.Errorf("told: %q", m.Text.Body)
		}
	}
	kept := 0
	err = filepath.WalkDir(w.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == "claude" {
				return filepath.SkipDir
			}
			return err
		}
		kept++
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), secret) {
			t.Errorf("%s has it", path)
		}
		return err
	})
	if err != nil || kept < 4 || w.read("record.jsonl") == "" {
		t.Errorf("%d files, %v", kept, err)
	}
}

// The digest comes once a day, at its hour, and only when there is something to tell.
func TestTheDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hour := w.wall.Add(6 * time.Hour).Local().Format("15:04")
	w.declare("digest: {at: \""+hour+"\"}\n", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	clear(w.living)
	w.spends(time.Minute, time.Minute)
	if len(w.started) != 1 {
		t.Fatalf("started %v", w.started)
	}
	c = w.claude("shop", 5001)
	c.ends("Done.")
	w.spends(5*time.Hour, 10*time.Minute)
	if len(w.said) != 0 {
		t.Fatalf("before its hour: %q", w.said)
	}
	w.spends(2*time.Hour, 10*time.Minute)
	if len(w.said) != 1 || !strings.Contains(w.said[0], "shop") {
		t.Fatalf("at its hour: %q", w.said)
	}
	w.spends(48*time.Hour, time.Hour)
	if len(w.said) != 1 {
		t.Errorf("on the days after, on which nothing was: %q", w.said[1:])
	}
}

// refusing is a channel that lets nothing through, and says so.
type refusing struct{}

func (refusing) Send(_ context.Context, _ notify.Message) (string, error) {
	return "", &notify.SendError{Failure: notify.Refused, Err: errors.New("blocked by the user")}
}

// The first tier cannot be reached: the next one is told at once, not after its time, and that the first is not. The same
// goes for a channel that could not even be opened.
func TestTheNextTierIsTold(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func() (notify.Channel, error){
		"refused":    func() (notify.Channel, error) { return refusing{}, nil },
		"not opened": func() (notify.Channel, error) { return nil, errors.New("no token") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Channels = nil
			w.opts.OpenChannel = func(c registry.Channel) (notify.Channel, error) {
				if c.Name == "first" {
					return first()
				}
				return w, nil
			}
			w.declare("channels: {first: 'exec:a', second: 'exec:b'}\n", w.agent("shop", "kind: claude\npolicy: {crashed: [escalate]}\nescalate: {to: [first], next: [second]}\n"+starts))
			w.claude("shop", 1001).prompt()
			w.cycle()
			clear(w.living)
			w.spends(20*time.Second, 5*time.Second)
			said := strings.Join(w.said, "\n")
			if len(w.said) != 2 || !strings.Contains(said, "No message can be sent by first") || !strings.Contains(said, "shop has crashed") {
				t.Errorf("said %q", w.said)
			}
		})
	}
}

// News that join a message in the queue do not hide that this one was refused: the next tier is told.
func TestNewsDoNotHideAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.Channels = nil
	w.opts.OpenChannel = func(c registry.Channel) (notify.Channel, error) {
		if c.Name == "first" {
			return refusing{}, nil
		}
		return w, nil
	}
	w.declare("channels: {first: 'exec:a', second: 'exec:b'}\n", w.agent("shop", "kind: claude\npolicy: {crashed: [escalate]}\nescalate: {to: [first], next: [second]}\n"+starts))
	w.claude("shop", 1001).prompt()
	w.cycle()
	clear(w.living)
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	var open []incident.Incident
	look := func() {
		w.pass(5 * time.Second)
		_, failed := m.look(t.Context())
		sending, cancel := context.WithTimeout(t.Context(), drainTime)
		defer cancel()
		m.notifiers.outbox.Drain(sending)
		list, unread := m.store.incidentsSince(t.Context(), w.wall.Add(-incidentsKept))
		if err := errors.Join(failed, unread); err != nil {
			t.Fatal(err)
		}
		open = list
	}
	for n := 0; n < 4 && len(open) == 0; n++ {
		look()
	}
	if len(open) != 1 || strings.Contains(strings.Join(w.said, "\n"), "shop has crashed") { // that first refuses may have been told
		t.Fatalf("%d incidents, said %q", len(open), w.said)
	}
	err = m.store.do(t.Context(), func(tx *sql.Tx) error {
		return m.put(t.Context(), tx, []string{"first"}, notify.Message{
			Key: "incident/" + open[0].ID + "/news", Thread: open[0].ID, Text: notify.Text{Body: "shop has crashed again"},
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	look()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(w.said, "\n"); !strings.Contains(said, "shop has crashed") {
		t.Errorf("said %q", w.said)
	}
}

// An agent that names no channels has all that are declared, but for those that are told next, and the bot of the environment, once.
func TestWhoIsToldWithoutTo(t *testing.T) {
	t.Parallel()
	own := map[string]notify.Channel{"telegram": refusing{}}
	for name, c := range map[string]struct {
		declared, next, want string
		channels             map[string]notify.Channel
	}{
		"nothing":                   {},
		"the bot":                   {channels: own, want: "telegram"},
		"a command":                 {declared: "me=exec:tell", want: "me"},
		"a command, beside the bot": {declared: "me=exec:tell", channels: own, want: "me telegram"},
		"the bot by another name":   {declared: "me=telegram", channels: own, want: "me"},
		"the bot by its own name":   {declared: "telegram=exec:tell", channels: own, want: "telegram"},
		"one that is told next":     {declared: "me=exec:tell night=exec:wake", next: "night", want: "me, then night"},
		"the bot, and another next": {declared: "night=exec:wake", next: "night", channels: own, want: "telegram, then night"},
	} {
		t.Run(name, func(t *testing.T) {
			var all registry.Registry
			for _, text := range strings.Fields(c.declared) {
				name, address, _ := strings.Cut(text, "=")
				all.Channels = append(all.Channels, registry.Channel{Name: name, Address: address})
			}
			var got []string
			for _, tier := range policyOf(registry.Agent{Escalate: registry.Escalate{Next: strings.Fields(c.next)}}, &all, Options{Channels: c.channels}).Tiers {
				got = append(got, strings.Join(tier, " "))
			}
			if text := strings.Join(got, ", then "); text != c.want {
				t.Errorf("told %q, want %q", text, c.want)
			}
		})
	}
}

// A tool that is behind a shell and uses no processor is ended by itself; what the agent had before stays.
func TestAToolThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nexpect: {tool: 10m}\n"+starts))
	w.process(1000, w.dir("shop"), 0) // sh -c claude
	w.parents[1001] = 1000
	c := w.claude("shop", 1001).headless()
	c.prompt()
	w.process(1002, w.dir("shop"), 0) // an MCP server
	w.parents[1002] = 1001
	w.cycle()
	w.pass(time.Minute)
	c.tool("Bash", `"command":"sleep 1d"`)
	w.process(1003, w.dir("shop"), 0)
	w.process(1004, w.dir("shop"), 0)
	w.parents[1003], w.parents[1004] = 1001, 1003
	w.spends(12*time.Minute, 30*time.Second)
	if len(w.stopped) != 1 || w.stopped[0] != 1003 || len(w.started) != 0 {
		t.Errorf("stopped %v, started %v, said %q", w.stopped, w.started, w.said)
	}
}

// A build whose compilers come and go is work, even if at no look anybody has used much.
func TestABuildOfManyProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nexpect: {tool: 10m}\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	c.tool("Bash", `"command":"make"`)
	w.process(1003, w.dir("shop"), 0)
	w.parents[1003] = 1001
	for n := range 60 {
		delete(w.living, 2000+n-1)
		w.process(2000+n, w.dir("shop"), 0)
		w.parents[2000+n] = 1003
		w.used[2000+n] = time.Second
		w.pass(30 * time.Second)
		w.cycle()
	}
	if len(w.stopped)+len(w.started) != 0 {
		t.Errorf("stopped %v", w.stopped)
	}
}

// An exit that a ping has reported belongs to the run that was then, not to one that began later.
func TestAReportOfTheRunBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\nexpect: {stale: 25h}\nmatch: {pidfile: pid}\n"+starts))
	w.process(1001, w.dir("shop"), 0)
	w.write("projects/shop/pid", "1001\n")
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	zero := 0
	ping := heartbeat.Observation{Agent: "shop", Kind: heartbeat.Success, Wall: w.wall.Add(-time.Hour), Exit: &zero}
	if err := errors.Join(m.store.setPing(t.Context(), ping), m.Close()); err != nil {
		t.Fatal(err)
	}
	w.spends(10*time.Minute, time.Minute)
	if len(w.said)+len(w.started) != 0 {
		t.Errorf("said %q, started %v", w.said, w.started)
	}
}

// A ping of /fail is a failure, as one with an exit status is.
func TestAPingOfFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: command\nexpect: {stale: 25h}\n"))
	m, err := Open(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	ping := heartbeat.Observation{Agent: "shop", Kind: heartbeat.Failure, Wall: w.wall.Add(-time.Minute)}
	if err := errors.Join(m.store.setPing(t.Context(), ping), m.Close()); err != nil {
		t.Fatal(err)
	}
	w.spends(10*time.Minute, time.Minute)
	if len(w.said) == 0 {
		t.Error("nobody was told")
	}
}

// A wrapper that was killed leaves its agent behind; that alone is not trouble.
func TestAnOrphanAtWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	w.reports("shop", 1001, nil)
	c.prompt()
	for range 20 {
		w.spends(time.Minute, time.Minute)
		c.prompt()
	}
	if len(w.said)+len(w.started)+len(w.stopped) != 0 {
		t.Errorf("said %q", w.said)
	}
	w.reports("shop", 1001, &agentrun.Exit{Signal: "killed", Code: 137, At: w.wall})
	clear(w.living)
	w.spends(time.Minute, time.Minute)
	if len(w.started) != 1 || !strings.Contains(w.read("improvement-log.md"), "killed") {
		t.Errorf("started %v: %s", w.started, w.read("improvement-log.md"))
	}
}

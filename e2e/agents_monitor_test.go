package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/faketelegram"
	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// agentName is what the agent is called in the registry.
const agentName = "shop"

// The human's chat, which is also the human's number, as in every private chat.
const (
	chatName = "42"
	chatUser = 42
)

// agents is the monitor's home.
func (a *agent) agents() string { return a.w.path("agents") }

// declaration is an agent in the registry: JSON is YAML.
type declaration map[string]any

// watcher is `outlive monitor` in a home with one agent in its registry, and a Telegram to tell.
type watcher struct {
	t     *testing.T
	a     *agent
	phone *faketelegram.Server
	dir   string              // its home
	flags []string            // of `outlive monitor`
	env   []string            // more of its environment
	pings string              // host:port that takes pings; "": none does
	user  *syscall.Credential // as whom it runs; nil: as the test
	cmd   *exec.Cmd
	over  chan struct{}
	read  int // of the record of evidence, in bytes
}

// startWatched starts a monitor and then the agent that it watches.
func startWatched(t *testing.T, kind string, mode mockmodel.Mode, setup agentSetup, d declaration, hooks []string, flags ...string) (*agent, *watcher) {
	t.Helper()
	m := newWatcher(t)
	return m.startAgent(kind, mode, setup, d, hooks, flags...), m
}

// startAgent starts the monitor with these flags, and then the agent that it watches, which is declared with what is
// more in d. hooks are the flags of `outlive hooks install`; nil: it is not run.
func (m *watcher) startAgent(kind string, mode mockmodel.Mode, setup agentSetup, d declaration, hooks []string, flags ...string) *agent {
	m.t.Helper()
	first := setup.prepare
	setup.prepare = func(a *agent) {
		if first != nil {
			first(a)
		}
		m.watches(a, flags...)
		m.declare(d)
		if hooks != nil {
			m.outlive(append([]string{"hooks", "install", kind, "--home", a.agents()}, hooks...)...)
		}
		m.start()
	}
	return startAgent(m.t, kind, mode, setup)
}

// watches makes the home of the agent the one that is watched.
func (m *watcher) watches(a *agent, flags ...string) {
	m.a, m.dir, m.flags = a, a.agents(), append([]string{"--home", a.agents()}, flags...)
}

func newWatcher(t *testing.T) *watcher {
	t.Helper()
	needOutlive(t)
	watched(t)
	m := &watcher{t: t, phone: faketelegram.New("7:secret")}
	m.phone.Limits = true
	t.Cleanup(m.phone.Close)
	return m
}

// declare writes the registry with one agent.
func (m *watcher) declare(d declaration) {
	m.t.Helper()
	entry := declaration{"kind": m.a.kind, "path": m.a.project}
	maps.Copy(entry, d)
	m.register(map[string]declaration{agentName: entry})
}

// register writes the registry.
func (m *watcher) register(agents map[string]declaration) {
	m.t.Helper()
	var text strings.Builder
	text.WriteString("version: 2\n")
	if m.pings != "" {
		text.WriteString("listen: " + m.pings + "\n")
	}
	text.WriteString("agents:\n")
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		entry, err := json.Marshal(agents[name])
		if err != nil {
			m.t.Fatal(err)
		}
		fmt.Fprintf(&text, "  %s: %s\n", name, entry)
	}
	m.a.write(filepath.Join(m.dir, "registry.yaml"), text.String())
}

// environ is what the monitor and the other verbs get: they find the agent's files and commands as its user's would.
func (m *watcher) environ() []string {
	bin := filepath.Join(tools.root, "node_modules", ".bin") + ":" + filepath.Join(tools.root, "clis", "node_modules", ".bin")
	telegram := []string{"TELEGRAM_BOT_TOKEN=" + m.phone.Token, "TELEGRAM_CHAT_ID=" + chatName, "TELEGRAM_API_URL=" + m.phone.URL()}
	return slices.Concat(m.a.cmd.Env, []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, telegram, m.env)
}

// outlive runs a verb and returns what it prints.
func (m *watcher) outlive(args ...string) string {
	m.t.Helper()
	cmd := exec.Command(timed(), args...)
	cmd.Dir, cmd.Env = m.a.project, m.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("outlive %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// start starts the monitor, also again, and waits until it has looked once.
func (m *watcher) start() {
	m.t.Helper()
	log, err := os.OpenFile(m.a.w.path("monitor.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	before := m.cycles()
	m.cmd = exec.Command(timed(), append([]string{"monitor", "--log-level", "debug"}, m.flags...)...)
	m.cmd.Dir, m.cmd.Env, m.cmd.Stdout, m.cmd.Stderr = m.a.w.dir, m.environ(), log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: m.user}
	err = m.cmd.Start()
	log.Close()
	if err != nil {
		m.t.Fatal(err)
	}
	if m.over == nil {
		m.t.Cleanup(m.explain)
	}
	over, cmd := make(chan struct{}), m.cmd
	m.over = over
	go func() {
		defer close(over)
		_ = cmd.Wait() // how it ended is in ProcessState
	}()
	m.await("its first cycle", func() bool { return m.cycles() > before })
}

func (m *watcher) cycles() int {
	log, _ := os.ReadFile(m.a.w.path("monitor.log"))
	return bytes.Count(log, []byte("Monitor cycle complete"))
}

// kill ends the monitor as a crash of the machine would.
func (m *watcher) kill() {
	_ = m.cmd.Process.Kill()
	<-m.over
}

// explain ends the monitor, which would start agents anew that the test ends, and shows what it said.
func (m *watcher) explain() {
	ended := "it ran"
	select {
	case <-m.over:
		ended = "it had ended before: " + m.cmd.ProcessState.String()
	default:
	}
	m.kill()
	if !m.t.Failed() {
		return
	}
	evidence, _ := os.ReadFile(filepath.Join(m.dir, "evidence.jsonl"))
	log, _ := os.ReadFile(m.a.w.path("monitor.log"))
	m.t.Logf("monitor (%s):\n%s\nverdicts:\n%s\nevidence:\n%s\nheartbeats:\n%s\nimprovement log:\n%s\nmessages: %+v\n%v", ended, ends(log, 6000),
		m.verdicts(), evidence[max(0, len(evidence)-4000):], m.heartbeats(), m.journal(), m.phone.Messages(), m.phone.Requests())
}

// ends are the beginning and the end of a text, at most so many bytes of each: a panic begins with its reason.
func ends(text []byte, most int) []byte {
	if len(text) <= 2*most {
		return text
	}
	return slices.Concat(text[:most], []byte("\n…\n"), text[len(text)-most:])
}

// verdicts are all of them, each with its time since the workspace began.
func (m *watcher) verdicts() string {
	var list strings.Builder
	all, _ := m.judgements(0)
	for _, j := range all {
		fmt.Fprintf(&list, "%6d ms %s %s: %s\n", j.At.Sub(m.a.w.began).Milliseconds(), j.Verdict.Rule, j.Verdict.Class, j.Verdict.Details)
	}
	return list.String()
}

// heartbeats are the files that agents have left, as they are now.
func (m *watcher) heartbeats() string {
	names, _ := filepath.Glob(filepath.Join(m.dir, "hb", "*"))
	var list strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(&list, "%s: %s\n", filepath.Base(name), bytes.TrimSpace(text))
	}
	return list.String()
}

// journal is the improvement log.
func (m *watcher) journal() string {
	text, _ := os.ReadFile(filepath.Join(m.dir, "improvement-log.md")) // it comes with the first entry
	return string(text)
}

// await waits for what the monitor must come to.
func (m *watcher) await(what string, ok func() bool) {
	m.t.Helper()
	if !within(longPatience, ok) {
		m.t.Fatalf("%s in mode %s: %s never came\n%s", m.a.kind, m.a.mode, what, m.a.screen())
	}
}

// judged is a line of the record of evidence.
type judged struct {
	At      time.Time
	Agent   string
	Verdict struct{ Rule, Class, Stall, Confidence, Details string }
}

// judgements are the whole lines of the record from the given byte on.
func (m *watcher) judgements(from int) (all []judged, ends []int) {
	data, _ := os.ReadFile(filepath.Join(m.dir, "evidence.jsonl"))
	for line := range bytes.Lines(data[min(from, len(data)):]) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		from += len(line)
		var j judged
		if err := json.Unmarshal(line, &j); err != nil {
			m.t.Fatalf("the record of evidence: %v", err)
		}
		all, ends = append(all, j), append(ends, from)
	}
	return all, ends
}

// judges waits until the agent is judged to be of the class, after what was waited for before.
func (m *watcher) judges(class string) judged {
	m.t.Helper()
	var found judged
	m.await("the verdict "+class, func() bool {
		all, ends := m.judgements(m.read)
		for i, j := range all {
			if j.Verdict.Class == class {
				found, m.read = j, ends[i]
				return true
			}
		}
		return false
	})
	shows(m.t, class)
	return found
}

// never fails the test when the agent was ever judged so.
func (m *watcher) never(classes ...string) {
	m.t.Helper()
	all, _ := m.judgements(0)
	for _, j := range all {
		if slices.Contains(classes, j.Verdict.Class) {
			m.t.Errorf("it was judged %s: %s", j.Verdict.Class, j.Verdict.Details)
		}
	}
}

// tells waits for the n-th message, from 1, that shows what is wanted, and returns it.
func (m *watcher) tells(n int, wanted func(faketelegram.Message) bool) faketelegram.Message {
	m.t.Helper()
	var found faketelegram.Message
	if !m.phone.Wait(longPatience, func() bool {
		list := m.phone.Messages()
		if len(list) < n || !wanted(list[n-1]) {
			return false
		}
		found = list[n-1]
		return true
	}) {
		m.t.Fatalf("message %d is not as wanted: %+v\n%s", n, m.phone.Messages(), m.a.screen())
	}
	return found
}

// says is a wish for a message with these words.
func says(words ...string) func(faketelegram.Message) bool {
	return func(msg faketelegram.Message) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(msg.Text, word) })
	}
}

// tellsNobody fails the test when anything was told.
func (m *watcher) tellsNobody() {
	m.t.Helper()
	for _, msg := range m.phone.Messages() {
		m.t.Errorf("told in vain: %s", msg.Text)
	}
}

// press presses the button of a message that begins so, and waits for what is answered.
func (m *watcher) press(msg faketelegram.Message, label string) string {
	m.t.Helper()
	return m.answered(m.push(msg, label))
}

// push presses a button without waiting.
func (m *watcher) push(msg faketelegram.Message, label string) (call string) {
	m.t.Helper()
	return m.phone.Press(chatUser, msg.ID, button(m.t, msg, label).Data)
}

func (m *watcher) answered(call string) string {
	m.t.Helper()
	if !m.phone.Wait(patience, func() bool { return len(m.phone.Answers(call)) > 0 }) {
		m.t.Fatal("the press was never answered")
	}
	return strings.Join(m.phone.Answers(call), "; ")
}

// promised reports measured times and fails the test when the worst breaks the promise, which the door does not judge.
func promised(t *testing.T, what string, limit time.Duration, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	worst := took[len(took)-1]
	report := fmt.Sprintf("%s: p50 %v, worst %v of %d", what, took[len(took)/2].Round(time.Millisecond), worst.Round(time.Millisecond), len(took))
	if full() && worst > limit {
		t.Errorf("%s: more than %v", report, limit)
		return
	}
	t.Log(report)
}

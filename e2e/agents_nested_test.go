package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// nestedPrompt is what a CLI is told to do that an agent runs.
const nestedPrompt = "Review the diff"

// nestedScript runs a CLI for an agent once the test wants it: `sh nested.sh FILE [SECONDS]`. The file is one that nests has written, and
// the seconds are those for which the script goes on afterwards. Some versions of Claude Code refuse to start within another.
const nestedScript = `unset CLAUDECODE
until [ -e "$E2E_DIR/go" ]; do sleep 0.2; done
sh "$E2E_DIR/$1" </dev/null >>"$E2E_DIR/nested.log" 2>&1
echo "it ended with $?" >>"$E2E_DIR/nested.log"
touch "$E2E_DIR/$1.over"
if [ -n "$2" ]; then exec sh check.sh "$2"; fi
`

// nestedEnds are how such a CLI ends.
var nestedEnds = []struct {
	name string
	mode mockmodel.Mode // of its model
}{
	{"question", mockmodel.Ask},
	{"401", mockmodel.Auth},
	{"429", mockmodel.RateLimit},
	{"529", mockmodel.Overload},
	{"context", mockmodel.Context},
	{"killed", mockmodel.Tool}, // in the middle of a command
}

// nesting is how an agent runs another CLI.
type nesting struct {
	name   string
	behind bool   // in the background: the agent's turn has ended before
	sleeps string // s for which the agent's command goes on after the CLI's end
	class  string // the agent's when all is over
}

var nestings = []nesting{
	{name: "foreground", class: "idle"},
	{name: "asleep", sleeps: "60", class: "working"},
	{name: "background", behind: true, class: "idle"},
}

// command is what the agent's model asks for, and how. Codex has no background of its own.
func (n nesting) command(host string) (mockmodel.Mode, string) {
	command := strings.TrimSpace("sh nested.sh nested " + n.sleeps)
	switch {
	case !n.behind:
		return mockmodel.Tool, command
	case host == "codex":
		return mockmodel.Tool, "setsid -f " + command + " </dev/null >/dev/null 2>&1"
	}
	return mockmodel.Background, command
}

// beside writes what a CLI needs in the home of the agent, of the same kind or another. It returns the command line and the environment
// with which it works on a prompt, which is still to come, and asks a model of its own.
func (a *agent) beside(kind string, model *mockmodel.Server) (argv, env []string) {
	b := *a
	b.kind = kind
	argv, env = agentCLIs[kind].settings(&b, agentSetup{headless: true}) // of one kind both have the same settings
	if kind == "codex" {
		return append(argv, "-c", fmt.Sprintf("model_providers.mock.base_url=%q", model.URL+"/v1")), env
	}
	return argv, append(env, "ANTHROPIC_BASE_URL="+model.URL)
}

// nests writes nested.sh into a directory, and a file for it that runs a CLI. That gives its model up after one more attempt.
func (a *agent) nests(kind string, mode mockmodel.Mode, file, dir string) *mockmodel.Server {
	a.t.Helper()
	model := agentCLIs[kind].model(a.t, mode, mockmodel.Script{Command: slowCheck})
	argv, env := a.beside(kind, model)
	if kind == "codex" {
		argv = append(argv, fewRetries...)
	} else {
		env = append(env, once...)
	}
	foreignIn(a.t, argv...)
	line := "exec env"
	for _, word := range slices.Concat(env, argv, []string{nestedPrompt}) {
		line += " " + shellWord(word)
	}
	a.write(a.w.path(file), line+"\n")
	a.write(filepath.Join(dir, "nested.sh"), nestedScript)
	return model
}

// killsNested kills the CLI that the agent runs, in the middle of a command of its own. The monitor has seen it by then.
func (m *watcher) killsNested(session any) {
	m.t.Helper()
	m.a.await("the command of the nested CLI", func() bool {
		return slices.ContainsFunc(records(m.a.w.file("hooks.jsonl")()), func(hook map[string]any) bool {
			return hook["hook_event_name"] == "PreToolUse" && hook["session_id"] != session
		})
	})
	m.a.lives(m.t, waits(6*time.Second)) // one look at least: of a declared agent the monitor writes down what changes, not each look
	running := m.a.w.processes(nestedPrompt)
	if len(running) == 0 {
		m.t.Error("the nested CLI does not run any more")
	}
	for pid := range running {
		_ = syscall.Kill(pid, syscall.SIGKILL) // Codex are two, of which one may end with the other
	}
}

// TestNestedCLIs: what a CLI comes to that an agent has run is not what the agent comes to. Nothing is told of it and nothing done, while
// it lives and after that; an agent that is killed then goes on with its own session. Each pair has one of the ends, in the
// foreground, before the agent's command ends, or in the background; the hunt has each pair with each end and each shape.
func TestNestedCLIs(t *testing.T) {
	t.Parallel()
	turn := 0
	for _, host := range kinds {
		for _, nested := range kinds {
			for i, end := range nestedEnds {
				for j, shape := range nestings {
					if tierOf() != "hunt" && (i%3 != (turn+1)%3 || i/3 != turn%2 || j != (turn+1+i/3)%len(nestings)) {
						continue
					}
					t.Run(strings.Join([]string{host, nested, end.name, shape.name}, "/"), func(t *testing.T) {
						onePerKind(t, host == "claude" && nested == "claude" && end.name == "401" && shape.name == "asleep")
						t.Parallel()
						shape.isOfNoConcern(t, host, nested, end.mode)
					})
				}
			}
			turn++
		}
	}
}

func (n nesting) isOfNoConcern(t *testing.T, host, nested string, end mockmodel.Mode) {
	mode, command := n.command(host)
	var model *mockmodel.Server
	setup := agentSetup{script: mockmodel.Script{Command: command}, prepare: func(a *agent) { model = a.nests(nested, end, "nested", a.project) }}
	d := declaration{
		"start":  declaration{"cmd": []string{"false"}, "resume": resume(host)},
		"expect": declaration{"attended": "1s", "waiting": "2s", "done": declaration{"exit": 0}},
	}
	a, m := startWatched(t, host, mode, setup, d, []string{}, "--answers", "off")
	t.Cleanup(func() {
		if t.Failed() {
			said, _ := os.ReadFile(a.w.path("nested.log"))
			t.Logf("the nested CLI, whose model was asked %d times, has said:\n%s", model.Turns(), ends(said, 3000))
		}
	})
	session := a.awaitHook("PreToolUse")["session_id"]
	if n.behind {
		a.awaitRecord(a.w.file("hooks.jsonl"), map[string]any{"hook_event_name": "Stop", "session_id": session})
		a.model.SetMode(mockmodel.Answer) // Claude Code has a turn when its task has ended
	} else {
		m.awaitTool()
	}
	a.write(a.w.path("go"), "")
	if end == mockmodel.Tool {
		m.killsNested(session)
	}
	a.await("the end of the nested CLI", func() bool {
		_, err := os.Stat(a.w.path("nested.over"))
		return err == nil
	})
	if model.Turns() == 0 {
		t.Error("the nested CLI has not asked its model")
	}
	a.lives(t, waits(12*time.Second)) // two looks: nothing announces that nothing will come, and Codex leaves a command after 30 s
	m.isQuiet(n.class)
	if n.sleeps != "" {
		m.resumesItself()
	}
}

// resumesItself kills the agent in the middle of its command. It goes on with its own session, and with no other.
func (m *watcher) resumesItself() {
	m.t.Helper()
	m.a.model.SetMode(mockmodel.Answer)
	m.a.signal(syscall.SIGKILL)
	m.judges("crashed")
	m.a.resumed()
	m.judges("done")
	m.tellsNobody()
	if m.a.isTold(nestedPrompt) {
		m.t.Error("it has gone on with the conversation of the CLI that it had run")
	}
}

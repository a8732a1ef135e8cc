package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// longPatience is how long a test waits for an agent: a CLI takes seconds of a processor until it shows its prompt, and several
// start side by side.
var longPatience = inFull(80 * time.Second)

// agentPrompt is what the agent is told to do. The mock model does what its mode says, whatever the prompt.
const agentPrompt = "Check the shop"

// What the model runs in the modes tool and loop: a command that takes its time, one that ends soon, one that ends at
// once.
const (
	slowCheck  = "sh check.sh 60"
	shortCheck = "sh check.sh 4"
	quickCheck = "sh check.sh 0"
)

// checkScript is a script, because Claude refuses to run a long sleep. With "busy" behind the seconds it works all the
// time, a few hundredths of a processor, and tells. With "says" and a state it first leaves a heartbeat of the agent.
const checkScript = `if [ "$2" = says ]; then
	"$E2E_OUTLIVE" heartbeat shop --home "$E2E_DIR/agents" --state "$3" --note "the till is locked" 2>>"$E2E_DIR/stderr.log" || {
		echo "check.sh: the heartbeat ended with $?" >>"$E2E_DIR/stderr.log"
		exit 1
	}
fi
if [ "$2" != busy ]; then sleep "$1"; fi
end=$(($(date +%s) + $1))
while [ "$2" = busy ] && [ "$(date +%s)" -lt $end ]; do
	i=0
	while [ $i -lt 20000 ]; do i=$((i + 1)); done
	echo checking
	sleep 0.2
done
echo checked
`

// agentSetup is what a test wants of an agent. The zero value is an interactive one on a terminal, past every startup
// dialog, whose hooks write down what they get.
type agentSetup struct {
	headless  bool             // claude -p, codex exec, gemini -p, opencode run, copilot -p, qwen -p: pipes instead of a terminal
	fresh     bool             // the directory was never trusted, nor, of Codex, its hooks
	noHooks   bool             // no hooks in its settings
	script    mockmodel.Script // what the model says and runs
	args      []string         // more arguments, before the prompt
	env       []string
	model     string            // of Codex. "": codexModel
	server    []string          // the command line of its one MCP server, whose tools it may call, or its URL
	token     string            // that it sends there, from its environment; "": none
	forServer map[string]string // more environment that its settings give to the server

	offer          bool // Claude proposes its automatic mode after the first turn
	newModel       bool // Codex proposes a newer model at its start
	untrustedHooks bool // Codex asks at its start whether it may run the hooks

	prepare func(a *agent) // called when everything is written, before the agent is started
	wrapped bool           // run by outlive agent run
}

// elsewhere reports whether its server is reached by HTTP.
func (s agentSetup) elsewhere() bool {
	return len(s.server) > 0 && strings.HasPrefix(s.server[0], "http")
}

// agentCLI is what tests must know of an agent CLI to start it.
type agentCLI struct {
	model    func(testing.TB, mockmodel.Mode, mockmodel.Script) *mockmodel.Server
	settings func(*agent, agentSetup) (argv, env []string) // writes its settings
	resume   []string                                      // goes on with a session without a terminal
}

var agentCLIs = map[string]agentCLI{
	"claude":   {mockmodel.Anthropic, (*agent).claude, []string{"claude", "-p", "--resume", "{session}", "{preamble}"}},
	"codex":    {mockmodel.OpenAI, (*agent).codex, []string{"codex", "exec", "--skip-git-repo-check", "resume", "{session}", "{preamble}"}},
	"gemini":   {mockmodel.Gemini, (*agent).gemini, []string{"gemini", "-m", geminiModel, "--approval-mode", "yolo", "--resume", "{session}", "-p", "{preamble}"}},
	"opencode": {mockmodel.OpenAI, (*agent).opencode, []string{"opencode", "run", "--session", "{session}", "{preamble}"}},
	"copilot":  {mockmodel.OpenAI, (*agent).copilot, nil},
	"qwen":     {mockmodel.OpenAI, (*agent).qwen, nil},
}

// agent is one real agent CLI against a mock model.
type agent struct {
	t          *testing.T
	w          *workspace
	kind       string // of agentCLIs
	mode       mockmodel.Mode
	model      *mockmodel.Server
	home       string // its HOME
	config     string // where its CLI has its settings, or its sessions: CLAUDE_CONFIG_DIR, CODEX_HOME
	project    string // its working directory
	stdoutName string // of the workspace's files, the one that has its stdout
	cmd        *exec.Cmd
	term       *terminal // nil when headless
	started    time.Time
	rec        *recorder
	done       chan struct{} // closed when the process is gone
}

// newAgent makes the command that starts a CLI, of agentCLIs, in a throw-away home and project, against a model in the given mode. Its
// settings are written. The agent and everything it starts is gone at the end of the test.
func newAgent(t *testing.T, kind string, mode mockmodel.Mode, setup agentSetup) *agent {
	t.Helper()
	cli, known := agentCLIs[kind]
	if !known {
		t.Fatalf("no agent %q", kind)
	}
	w := newWorkspace(t)
	a := &agent{t: t, w: w, kind: kind, mode: mode, home: w.path("home"), project: w.path("shop"), stdoutName: "stdout"}
	for _, dir := range []string{a.home, a.project} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a.write(filepath.Join(a.project, "check.sh"), checkScript)
	setup.script.Command = cmp.Or(setup.script.Command, slowCheck)
	a.model = cli.model(t, mode, setup.script)
	argv, env := cli.settings(a, setup)
	argv = slices.Concat(argv, setup.args, []string{agentPrompt})
	if setup.wrapped {
		argv = slices.Concat([]string{timed(), "agent", "run", "--home", a.agents(), agentName, "--"}, argv)
	}
	foreignIn(t, append(argv, setup.server...)...)
	a.cmd = exec.Command(argv[0], argv[1:]...)
	a.cmd.Dir = a.project
	// Nothing but the model server may be reached: a proxy that nobody serves refuses everything else at once.
	a.cmd.Env = append(w.env(), "HOME="+a.home, "PWD="+a.project, "TERM=xterm-256color", "HTTPS_PROXY=http://127.0.0.1:9",
		"HTTP_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost", "E2E_HOOKS="+w.path("hooks.jsonl"), "E2E_OUTLIVE="+timed())
	a.cmd.Env = append(append(a.cmd.Env, env...), setup.env...)
	a.rec = newRecorder(a)
	t.Cleanup(a.explain)
	t.Cleanup(a.stop)
	return a
}

// startAgent makes an agent and starts it.
func startAgent(t *testing.T, kind string, mode mockmodel.Mode, setup agentSetup) *agent {
	t.Helper()
	a := newAgent(t, kind, mode, setup)
	if setup.prepare != nil {
		setup.prepare(a)
	}
	a.started = time.Now()
	if setup.headless {
		a.startHeadless()
	} else {
		a.term = startTerminal(t, a.cmd, func(title string) { a.rec.add("title", title) })
		a.done = a.term.exited
	}
	go a.rec.run()
	return a
}

// another starts one more agent with the same command line and environment but another prompt, on pipes.
func (a *agent) another(prompt string) *agent {
	a.t.Helper()
	b := &agent{t: a.t, w: a.w, kind: a.kind, mode: a.mode, model: a.model, home: a.home, config: a.config, project: a.project, stdoutName: a.stdoutName + "2"}
	argv := append(slices.Clone(a.cmd.Args[:len(a.cmd.Args)-1]), prompt)
	b.cmd = exec.Command(argv[0], argv[1:]...)
	b.cmd.Dir, b.cmd.Env = a.cmd.Dir, a.cmd.Env
	b.rec = newRecorder(b)
	a.t.Cleanup(b.stop)
	b.started = time.Now()
	b.startHeadless()
	go b.rec.run()
	return b
}

// startHeadless runs the agent on pipes. Its stdin is empty: both CLIs read a stdin that is not a terminal to its end.
func (a *agent) startHeadless() {
	out, err := os.Create(a.w.path(a.stdoutName))
	if err != nil {
		a.t.Fatal(err)
	}
	errs, err := os.OpenFile(a.w.path("stderr.log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		a.t.Fatal(err)
	}
	a.cmd.Stdout, a.cmd.Stderr = out, errs
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.done = make(chan struct{})
	go func() {
		defer close(a.done)
		_ = a.cmd.Wait() // how it ended is in ProcessState
		out.Close()
		errs.Close()
	}()
}

// pid is the process that was started. Codex' is a Node program that starts the native one.
func (a *agent) pid() int { return a.cmd.Process.Pid }

// signal sends sig to the agent itself.
func (a *agent) signal(sig syscall.Signal) {
	a.t.Helper()
	if err := syscall.Kill(a.pid(), sig); err != nil {
		a.t.Fatalf("send %v to the agent: %v", sig, err)
	}
}

// ended waits until the agent is gone and returns how it ended.
func (a *agent) ended() *os.ProcessState {
	a.t.Helper()
	select {
	case <-a.done:
		return a.cmd.ProcessState
	case <-time.After(longPatience):
		a.t.Fatalf("%s in mode %s has not ended\n%s", a.kind, a.mode, a.screen())
		return nil
	}
}

// stop ends the agent, whatever it started, and the recording.
func (a *agent) stop() {
	if a.done == nil {
		return // it never started
	}
	running := a.w.processes("")
	for pid := range running {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if a.t.Failed() && len(running) > 0 { // a test may have ended it before
		a.rec.add("processes", slices.Sorted(maps.Values(running)))
	}
	<-a.done
	a.rec.stop()
}

// screen is what can be shown of the agent when a test fails.
func (a *agent) screen() string {
	text := ""
	if a.term != nil {
		text = a.term.text()
	} else {
		text = a.stdout()
	}
	return strings.ToValidUTF8(text[max(0, len(text)-3000):], "")
}

// await waits for a condition the agent must come to.
func (a *agent) await(what string, ok func() bool) {
	a.t.Helper()
	if !within(longPatience, ok) {
		a.t.Fatalf("%s in mode %s: %s never came\n%s", a.kind, a.mode, what, a.screen())
	}
}

// serverName is what agents call their MCP server.
const serverName = "shop"

// serverEnv is the environment that the agent's settings give to its MCP server: Codex hands on nothing else of its own.
func (a *agent) serverEnv(setup agentSetup) map[string]string {
	env := map[string]string{"E2E_DIR": a.w.dir, "XDG_STATE_HOME": a.w.path("state"), "XDG_RUNTIME_DIR": a.w.path("run")}
	maps.Copy(env, setup.forServer)
	return env
}

// serverEntry is its MCP server's entry in the form that most CLIs share.
func (a *agent) serverEntry(setup agentSetup) map[string]any {
	return map[string]any{"command": setup.server[0], "args": setup.server[1:], "env": a.serverEnv(setup)}
}

// claude writes Claude Code's settings and returns its command line and environment.
func (a *agent) claude(setup agentSetup) (argv, env []string) {
	a.config = filepath.Join(a.home, ".claude")
	const key = "sk-ant-mock-0000000000000000000000000000"
	// Its automatic mode decides for the human, except where a rule says that the human is asked.
	permissions := map[string]any{"allow": []string{"Bash(sh check.sh:*)", "Bash(sh nested.sh:*)", "Bash(git:*)", "mcp__" + serverName}, "ask": []string{"Bash(touch:*)"}}
	if setup.offer {
		permissions["defaultMode"] = "default"
	}
	settings := map[string]any{"permissions": permissions}
	if !setup.noHooks {
		settings["hooks"] = a.hooks(claudeEvents)
	}
	a.writeJSON(filepath.Join(a.config, "settings.json"), settings)
	// Its onboarding is never shown: it asks the provider's own host whether it can be reached.
	state := map[string]any{
		"hasCompletedOnboarding": true, "lastOnboardingVersion": "99.0.0", "theme": "dark", "numStartups": 9,
		"customApiKeyResponses": map[string]any{"approved": []string{key[len(key)-20:]}, "rejected": []string{}},
	}
	if !setup.fresh {
		state["projects"] = map[string]any{a.project: map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}}
	}
	if setup.server != nil {
		entry := a.serverEntry(setup)
		if setup.elsewhere() {
			entry = map[string]any{"type": "http", "url": setup.server[0]}
			if setup.token != "" {
				entry["headers"] = map[string]any{"Authorization": "Bearer ${OUTLIVE_TOKEN}"}
			}
		}
		state["mcpServers"] = map[string]any{serverName: entry}
	}
	a.writeJSON(filepath.Join(a.config, ".claude.json"), state)
	env = []string{
		"CLAUDE_CONFIG_DIR=" + a.config, "ANTHROPIC_BASE_URL=" + a.model.URL, "ANTHROPIC_API_KEY=" + key,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
	}
	argv = []string{filepath.Join(tools.root, "node_modules", ".bin", "claude")}
	if setup.headless {
		argv = append(argv, "-p", "--output-format", "stream-json", "--verbose")
	}
	return argv, env
}

// codex writes Codex' settings and returns its command line and environment.
func (a *agent) codex(setup agentSetup) (argv, env []string) {
	a.config = filepath.Join(a.home, ".codex")
	settings := fmt.Sprintf(`model = %q
model_provider = "mock"
check_for_update_on_startup = false

[model_providers.mock]
name = "mock"
base_url = "%s/v1"
wire_api = "responses"
env_key = "MOCK_API_KEY"

[analytics]
enabled = false
`, cmp.Or(setup.model, codexModel), a.model.URL)
	if a.mode == mockmodel.Question {
		settings += "\n[features]\ndefault_mode_request_user_input = true\n"
	}
	if !setup.fresh {
		// A policy in the settings stands for the answer to the question whether the directory is trusted.
		approval, sandbox := "never", "danger-full-access"
		if a.mode == mockmodel.Permission {
			approval, sandbox = "on-request", "read-only"
		}
		settings = fmt.Sprintf("approval_policy = %q\nsandbox_mode = %q\n", approval, sandbox) + settings
		settings += fmt.Sprintf("\n[projects.%q]\ntrust_level = \"trusted\"\n", a.project)
	}
	if !setup.fresh && !setup.newModel {
		settings += fmt.Sprintf("\n[notice.model_migrations]\n%q = %q\n", codexClassic, codexModel)
	}
	switch {
	case setup.elsewhere():
		settings += fmt.Sprintf("\n[mcp_servers.%s]\nurl = %q\n", serverName, setup.server[0])
		if setup.token != "" {
			settings += "bearer_token_env_var = \"OUTLIVE_TOKEN\"\n"
		}
	case setup.server != nil:
		settings += fmt.Sprintf("\n[mcp_servers.%s]\ncommand = %q\nargs = [%s]\n", serverName, setup.server[0], tomlList(setup.server[1:]))
		settings += fmt.Sprintf("\n[mcp_servers.%s.env]\n", serverName)
		for name, value := range a.serverEnv(setup) {
			settings += fmt.Sprintf("%s = %q\n", name, value)
		}
	}
	a.write(filepath.Join(a.config, "config.toml"), settings)
	argv = []string{filepath.Join(tools.root, "node_modules", ".bin", "codex")}
	if setup.headless {
		argv = append(argv, "exec", "--json", "--skip-git-repo-check")
	}
	if !setup.noHooks {
		a.writeJSON(filepath.Join(a.config, "hooks.json"), map[string]any{"hooks": a.hooks(codexEvents)})
		if !setup.fresh && !setup.untrustedHooks {
			// Hooks are trusted in a dialog otherwise, and a test has nobody to answer it.
			argv = append(argv, "--dangerously-bypass-hook-trust")
		}
	}
	return argv, []string{"CODEX_HOME=" + a.config, "MOCK_API_KEY=mock"}
}

// tomlList is the inside of a list of words in TOML.
func tomlList(words []string) string {
	var list []string
	for _, word := range words {
		list = append(list, strconv.Quote(word))
	}
	return strings.Join(list, ", ")
}

// The models Codex believes to talk to, which decide over the tools it offers and so over the shape of its rollout.
const (
	codexModel   = "gpt-6-sol" // the newest: one tool, programs in JavaScript; no dialog proposes another model
	codexClassic = "gpt-5.5"   // each tool a function
)

var (
	claudeEvents = []string{
		"SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure",
		"PermissionDenied", "Notification", "Stop", "StopFailure", "SessionEnd",
	}
	codexEvents = []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop"}
)

// hooks are settings under which every event's payload is appended to the workspace's hooks.jsonl.
func (a *agent) hooks(events []string) map[string]any {
	script := filepath.Join(a.home, "hook.sh")
	a.write(script, "#!/bin/sh\nbody=$(tr -d '\\n')\nprintf '%s\\n' \"$body\" >>\"$E2E_HOOKS\"\n")
	all := map[string]any{}
	for _, event := range events {
		all[event] = []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": "sh " + script}}}}
	}
	return all
}

func (a *agent) write(name, text string) {
	a.t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) writeJSON(name string, v any) {
	a.t.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name, string(data)+"\n")
}

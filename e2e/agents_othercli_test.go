package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// geminiModel is a model that Gemini CLI knows, and for which it takes no other.
const geminiModel = "gemini-2.5-pro"

// gemini writes Gemini CLI's settings and returns its command line, without room for more arguments, and its environment.
func (a *agent) gemini(setup agentSetup) (argv, env []string) {
	a.config = filepath.Join(a.home, ".gemini")
	settings := map[string]any{
		"security":  map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}, "folderTrust": map[string]any{"enabled": false}},
		"general":   map[string]any{"enableAutoUpdate": false, "maxAttempts": 2},
		"privacy":   map[string]any{"usageStatisticsEnabled": false},
		"telemetry": map[string]any{"enabled": false},
		"ui":        map[string]any{"dynamicWindowTitle": true},
	}
	if setup.server != nil {
		settings["mcpServers"] = map[string]any{serverName: a.serverEntry(setup)}
	}
	a.writeJSON(filepath.Join(a.config, "settings.json"), settings)
	approval, prompt := "yolo", []string{"-i"}
	if a.mode == mockmodel.Permission {
		approval = "default"
	}
	if setup.headless {
		prompt = []string{"--output-format", "stream-json", "-p"}
	}
	argv = []string{filepath.Join(tools.root, "clis", "node_modules", ".bin", "gemini"), "-m", geminiModel, "--approval-mode", approval}
	return append(argv, prompt...), []string{
		"GEMINI_API_KEY=mock", "GOOGLE_GEMINI_BASE_URL=" + a.model.URL, "GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_TELEMETRY_ENABLED=false",
		"CI=", "GITHUB_ACTIONS=", // with them it takes no terminal for one
	}
}

// opencode writes the settings of OpenCode 1 and returns its command line and environment.
func (a *agent) opencode(setup agentSetup) (argv, env []string) {
	a.config = filepath.Join(a.home, ".local", "share", "opencode")
	settings := map[string]any{
		"autoupdate": false, "share": "disabled", "model": "mock/gpt-mock", "small_model": "mock/gpt-mock",
		"provider": map[string]any{"mock": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "name": "Mock", "options": map[string]any{"baseURL": a.model.URL + "/v1", "apiKey": "mock"},
			"models": map[string]any{"gpt-mock": map[string]any{"name": "Mock", "tool_call": true, "limit": map[string]any{"context": 128000, "output": 8192}}},
		}},
		"permission": map[string]any{"bash": map[string]any{"*": "allow", "touch *": "ask"}},
		"compaction": map[string]any{"auto": false},
	}
	if setup.server != nil {
		settings["mcp"] = map[string]any{serverName: map[string]any{
			"type": "local", "command": setup.server, "environment": a.serverEnv(setup), "enabled": true,
		}}
	}
	a.writeJSON(a.w.path(filepath.Join("config", "opencode", "opencode.json")), settings)
	argv = []string{filepath.Join(tools.root, "clis", "node_modules", ".bin", "opencode")}
	if setup.headless {
		argv = append(argv, "run", "--format", "json")
	} else {
		argv = append(argv, "--prompt")
	}
	return argv, []string{
		"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
	}
}

// copilot writes the settings of GitHub's Copilot CLI and returns its command line and environment. It is only headless.
func (a *agent) copilot(setup agentSetup) (argv, env []string) {
	a.config = filepath.Join(a.home, ".copilot")
	if setup.server != nil {
		entry := a.serverEntry(setup)
		entry["type"], entry["tools"] = "local", []string{"*"}
		a.writeJSON(filepath.Join(a.config, "mcp-config.json"), map[string]any{"mcpServers": map[string]any{serverName: entry}})
	}
	return []string{filepath.Join(tools.root, "clis", "node_modules", ".bin", "copilot"), "--allow-all-tools", "-p"}, []string{
		"COPILOT_HOME=" + a.config, "COPILOT_OFFLINE=true", "COPILOT_MODEL=gpt-mock", "COPILOT_PROVIDER_TYPE=openai",
		"COPILOT_PROVIDER_BASE_URL=" + a.model.URL + "/v1", "COPILOT_PROVIDER_API_KEY=mock",
		"COPILOT_PROVIDER_MAX_PROMPT_TOKENS=128000", "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS=8192", // it does not know the model
	}
}

// qwen writes Qwen Code's settings and returns its command line and environment. It is only headless.
func (a *agent) qwen(setup agentSetup) (argv, env []string) {
	a.config = filepath.Join(a.home, ".qwen")
	settings := map[string]any{
		"security":  map[string]any{"auth": map[string]any{"selectedType": "openai"}},
		"general":   map[string]any{"enableAutoUpdate": false, "disableAutoUpdate": true}, // the second was its name before
		"privacy":   map[string]any{"usageStatisticsEnabled": false},
		"telemetry": map[string]any{"enabled": false},
		// The test calls the same tool again and again, and has no answer to who speaks next.
		"model": map[string]any{"name": "gpt-mock", "skipLoopDetection": true, "skipNextSpeakerCheck": true},
	}
	if setup.server != nil {
		settings["mcpServers"] = map[string]any{serverName: a.serverEntry(setup)}
	}
	a.writeJSON(filepath.Join(a.config, "settings.json"), settings)
	return []string{filepath.Join(tools.root, "clis", "node_modules", ".bin", "qwen"), "-y", "-p"}, []string{
		"OPENAI_API_KEY=mock", "OPENAI_BASE_URL=" + a.model.URL + "/v1", "OPENAI_MODEL=gpt-mock",
		"HTTPS_PROXY=", "HTTP_PROXY=", "https_proxy=", "http_proxy=", // it would look for the model behind the proxy, whatever NO_PROXY says
	}
}

// longCheck takes longer than a test waits for a verdict.
const longCheck = "sh check.sh 100"

// secondCommand is a command that is run by the second call of a turn: Gemini's mock model says something with the first only.
func secondCommand(command string) mockmodel.Script {
	return mockmodel.Script{Command: "test -d once && " + command + "; mkdir -p once", Rounds: 2}
}

// inCommand waits until the agent's command runs, and the monitor calls the agent working for it.
func inCommand(a *agent, m *watcher) {
	commandRuns(a)
	m.seesCommand()
}

// seesCommand waits until a look shows that a command runs, and the monitor's last verdict is that the agent works.
func (m *watcher) seesCommand() {
	m.t.Helper()
	m.await("a look that shows its command", func() bool {
		return strings.Contains(m.outlive("agent", "explain", agentName, "--home", m.dir), " session runs ")
	})
	m.rests("working")
}

// commandRuns waits until the agent's command runs.
func commandRuns(a *agent) {
	a.await("its command", func() bool {
		for _, line := range a.w.processes("check.sh") {
			if strings.HasPrefix(line, "sh check.sh") {
				return true
			}
		}
		return false
	})
}

// inUnseenCommand waits until the monitor calls the agent idle while its command runs.
func inUnseenCommand(a *agent, m *watcher) {
	commandRuns(a)
	m.rests("idle")
}

// inQuietCommand waits until Gemini CLI takes a command for one that waits for its input. It has written something, and then nothing for
// half a minute, as a build may do.
func inQuietCommand(a *agent, m *watcher) {
	a.awaitTitle("Action Required")
	a.lives(a.t, waits(10*time.Second)) // two looks
	m.seesCommand()
}

// inUnseenDialog waits until OpenCode asks for a permission, which only its screen shows.
func inUnseenDialog(a *agent, m *watcher) {
	a.await("its dialog", func() bool { return strings.Contains(a.term.text(), "Permission required") })
	m.seesCommand()
}

// endsAs waits until the agent's end was looked at, and its last verdict is this one.
func endsAs(class string) func(a *agent, m *watcher) {
	return func(a *agent, m *watcher) {
		a.ended()
		m.await("a look at its end", func() bool {
			return strings.Contains(m.outlive("agent", "explain", agentName, "--home", m.dir), " has ended")
		})
		m.rests(class)
	}
}

// impatient is a limit of silence that a test can wait for.
var impatient = declaration{"expect": declaration{"model_silent": "3s"}}

// Servers that have an error of their own.
var (
	gemini500 = mockmodel.Script{Refusal: mockmodel.Refusal{Status: 500, Body: map[string]any{"error": map[string]any{
		"code": 500, "status": "INTERNAL", "message": "An internal error has occurred. Please retry.",
	}}}}
	opencode500 = openaiRefusal(500, map[string]any{"type": "server_error", "message": "The server had an error while processing your request."})
)

// otherStates are states of other CLIs, as their own files or the titles of their terminals show them. Both ask a model that is limited or
// has an error again and again, and write nothing meanwhile: that is silence.
var otherStates = map[string][]detection{
	"gemini": {
		{"working", mockmodel.Loop, agentSetup{script: secondCommand(longCheck)}, nil, "working", inCommand},
		{"command-after-text", mockmodel.Tool, agentSetup{script: mockmodel.Script{Command: longCheck}}, nil, "idle", inUnseenCommand}, // its calls are written when they have ended
		{"working-print", mockmodel.Loop, agentSetup{headless: true, script: secondCommand(longCheck)}, nil, "working", inCommand},
		{"working-quiet", mockmodel.Loop, agentSetup{wrapped: true, script: secondCommand("echo building && " + longCheck)}, nil, "working", inQuietCommand},
		{"idle", mockmodel.Answer, agentSetup{}, nil, "idle", nil},
		{"done", mockmodel.Answer, agentSetup{headless: true, wrapped: true}, nil, "done", nil},
		{"hang", mockmodel.Hang, agentSetup{}, impatient, "model_silent", nil},
		{"500", mockmodel.Refuse, agentSetup{script: gemini500}, impatient, "model_silent", nil},
		{"429", mockmodel.RateLimit, agentSetup{}, impatient, "model_silent", nil},
		{"500-ended", mockmodel.Refuse, agentSetup{headless: true, wrapped: true, script: gemini500}, nil, "api_failed", nil}, // its output says so
		{"429-ended", mockmodel.RateLimit, agentSetup{headless: true, wrapped: true}, nil, "rate_limited", nil},
		{"key", mockmodel.Auth, agentSetup{}, nil, "auth_expired", nil},
		{"key-ended", mockmodel.Auth, agentSetup{headless: true, wrapped: true}, nil, "auth_expired", nil},
		{"400", mockmodel.Invalid, agentSetup{}, nil, "execution_error", nil},
		{"context", mockmodel.Context, agentSetup{}, nil, "context_exhausted", nil},
		{"question", mockmodel.Question, agentSetup{wrapped: true}, nil, "waiting_permission", nil}, // the title is that of a permission
		{"permission", mockmodel.Permission, agentSetup{wrapped: true}, nil, "waiting_permission", nil},
	},
	"opencode": {
		{"working", mockmodel.Tool, agentSetup{script: mockmodel.Script{Command: longCheck}}, nil, "working", inCommand},
		{"working-run", mockmodel.Tool, agentSetup{headless: true, script: mockmodel.Script{Command: longCheck}}, nil, "working", inCommand},
		{"idle", mockmodel.Answer, agentSetup{}, nil, "idle", nil},
		{"done", mockmodel.Answer, agentSetup{headless: true, wrapped: true}, nil, "done", nil},
		{"hang", mockmodel.Hang, agentSetup{headless: true}, impatient, "model_silent", nil},
		{"500", mockmodel.Refuse, agentSetup{headless: true, script: opencode500}, impatient, "model_silent", nil},
		{"429", mockmodel.RateLimit, agentSetup{headless: true}, impatient, "model_silent", nil},
		{"401", mockmodel.Auth, agentSetup{}, nil, "auth_expired", nil},
		{"401-ended", mockmodel.Auth, agentSetup{headless: true, wrapped: true}, nil, "auth_expired", endsAs("auth_expired")},
		{"400", mockmodel.Invalid, agentSetup{}, nil, "execution_error", nil},
		{"context", mockmodel.Context, agentSetup{}, nil, "context_exhausted", nil},
		{"context-ended", mockmodel.Context, agentSetup{headless: true, wrapped: true}, nil, "context_exhausted", endsAs("context_exhausted")},
		{"question", mockmodel.Question, agentSetup{}, nil, "waiting_question", nil},
		{"permission", mockmodel.Permission, agentSetup{}, nil, "working", inUnseenDialog},
	},
}

// otherStatesInFull are those that the full run has, too: none takes long. A terminal of OpenCode takes half a minute to show its prompt.
var otherStatesInFull = map[string][]string{
	"gemini":   {"working-print", "permission", "key"},
	"opencode": {"working-run", "401-ended"},
}

// TestMonitorDetectsOtherCLIs: what the monitor calls the states of the real Gemini CLI and OpenCode, as [TestMonitorDetects] does.
func TestMonitorDetectsOtherCLIs(t *testing.T) {
	needFull(t, "the states of two more CLIs")
	t.Parallel()
	for kind, states := range otherStates {
		for _, d := range states {
			if tierOf() != "hunt" && !slices.Contains(otherStatesInFull[kind], d.name) {
				continue
			}
			t.Run(kind+"/"+d.name, func(t *testing.T) {
				t.Parallel()
				d.isSeen(t, kind)
			})
		}
	}
}

// TestMonitorResumesOtherCLIs: killed in the middle of a command, they go on with the very session they had, as [TestMonitorResumes].
func TestMonitorResumesOtherCLIs(t *testing.T) {
	needHunt(t, "TestMonitorResumes has two other CLIs, which start in a tenth of the time")
	t.Parallel()
	for kind := range otherStates {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := declaration{"start": declaration{"resume": resume(kind)}, "expect": done["expect"]}
			a, m := startWatched(t, kind, mockmodel.Loop, agentSetup{headless: true, script: secondCommand(longCheck)}, d, nil)
			inCommand(a, m)
			a.model.SetMode(mockmodel.Answer)
			for pid := range a.w.processes("node_modules") { // Gemini CLI are two
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			m.judges("crashed")
			a.resumed()
			m.judges("done")
			m.tellsNobody()
			if n := strings.Count(m.journal(), "- **Action:**"); n != 1 {
				t.Errorf("%d entries of one recovery:\n%s", n, m.journal())
			}
		})
	}
}

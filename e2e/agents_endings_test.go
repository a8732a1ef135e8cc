package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// oneRetry makes Claude Code give up after one retry, in seconds instead of minutes.
const oneRetry = "CLAUDE_CODE_MAX_RETRIES=1"

// resetAt is when the limits of the recordings are lifted: five hours after they are made.
var resetAt = time.Now().Add(5 * time.Hour).Truncate(time.Hour)

// nowhere is a port on which nobody listens, and noHost a host that no resolver knows.
const (
	nowhere = "http://127.0.0.1:9"
	noHost  = "http://shop.invalid:9"
)

func anthropicRefusal(status int, kind, message string) mockmodel.Script {
	return mockmodel.Script{Refusal: mockmodel.Refusal{Status: status, Body: map[string]any{
		"type": "error", "error": map[string]any{"type": kind, "message": message}, "request_id": "req_mock",
	}}}
}

func openaiRefusal(status int, refusal map[string]any) mockmodel.Script {
	return mockmodel.Script{Refusal: mockmodel.Refusal{Status: status, Body: map[string]any{"error": refusal}}}
}

// claudeEndings are endings of Claude Code beyond those of [claudeScenarios].
var claudeEndings = []agentScenario{
	{"gave-up-529", mockmodel.Overload, agentSetup{env: []string{oneRetry}}, (*agent).claudeGivesUp},
	{"gave-up-429", mockmodel.RateLimit, agentSetup{env: []string{oneRetry}}, (*agent).claudeGivesUp},
	{"gave-up-401", mockmodel.Auth, agentSetup{env: []string{oneRetry}}, (*agent).claudeGivesUp},
	{"gave-up-500", mockmodel.Refuse, agentSetup{env: []string{oneRetry}, script: anthropicRefusal(500, "api_error", "Internal server error")}, (*agent).claudeGivesUp},
	{"403", mockmodel.Refuse, agentSetup{env: []string{oneRetry}, script: anthropicRefusal(403, "permission_error", "Your API key does not have permission to use the specified resource.")}, (*agent).claudeGivesUp},
	{"credit", mockmodel.Refuse, agentSetup{env: []string{oneRetry}, script: anthropicRefusal(400, "invalid_request_error",
		"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.")}, (*agent).claudeGivesUp},
	{"cut", mockmodel.Cut, agentSetup{env: []string{oneRetry}}, (*agent).claudeGivesUp},
	{"refused", mockmodel.Answer, agentSetup{env: []string{oneRetry, "ANTHROPIC_BASE_URL=" + nowhere}}, (*agent).claudeGivesUp},
	{"dns", mockmodel.Answer, agentSetup{env: []string{oneRetry, "ANTHROPIC_BASE_URL=" + noHost, "NO_PROXY=127.0.0.1,shop.invalid"}}, (*agent).claudeGivesUp},
	{"usage-limit", mockmodel.Refuse, agentSetup{env: []string{oneRetry, "ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-mock"}, script: claudeLimit()}, (*agent).claudeGivesUp},
	{"escape", mockmodel.Hang, agentSetup{}, func(a *agent) {
		a.awaitRequest()
		a.awaitStatus("busy", "")
		a.escape()
	}},
	{"escape-tool", mockmodel.Tool, agentSetup{}, func(a *agent) {
		a.awaitHook("PreToolUse")
		a.awaitStatus("busy", "")
		a.escape()
	}},
	{"exit", mockmodel.Answer, agentSetup{}, func(a *agent) {
		a.turnEnds()
		a.types("/exit")
		a.ended()
	}},
	{"plan", mockmodel.Use, agentSetup{args: []string{"--permission-mode", "plan"}, script: mockmodel.Script{
		Tool: "ExitPlanMode", Input: map[string]any{"plan": "1. Sell the shop"}}}, func(a *agent) {
		a.awaitStatus("waiting", "")
		a.hold(3 * time.Second)
	}},
	{"background", mockmodel.Use, agentSetup{args: []string{"--permission-mode", "acceptEdits"}, script: mockmodel.Script{
		Tool: "Bash", Input: map[string]any{"command": slowCheck, "description": "Check", "run_in_background": true}}}, func(a *agent) {
		a.awaitTranscript("system/turn_duration")
		a.hold(8 * time.Second)
	}},
	{"subagent", mockmodel.Use, agentSetup{args: []string{"--permission-mode", "acceptEdits"}, script: mockmodel.Script{Tool: "Agent", Input: map[string]any{
		"description": "Check the shop", "prompt": "Run the checks of the shop", "subagent_type": "general-purpose"}}}, func(a *agent) {
		a.await("the subagent's command", func() bool { return a.model.Turns() >= 2 })
		a.hold(10 * time.Second)
	}},
	{"compact", mockmodel.Answer, agentSetup{}, func(a *agent) {
		a.turnEnds()
		a.types("/compact")
		a.awaitTranscript("system/compact_boundary")
		a.awaitStatus("idle", "")
		a.hold(3 * time.Second)
	}},
	{"clear", mockmodel.Answer, agentSetup{}, func(a *agent) {
		a.turnEnds()
		before, _ := os.ReadFile(a.sessionFiles()[0])
		a.types("/clear")
		a.await("another session at its prompt", func() bool {
			now, _ := os.ReadFile(a.sessionFiles()[0])
			return sessionID(now) != sessionID(before) && strings.Contains(string(now), `"status":"idle"`)
		})
		a.hold(3 * time.Second)
	}},
	{"slash-hang", mockmodel.Answer, agentSetup{prepare: func(a *agent) {
		a.write(filepath.Join(a.project, ".claude", "commands", "review.md"), "Review the shop.\n")
	}}, func(a *agent) {
		a.turnEnds()
		a.model.SetMode(mockmodel.Hang)
		turns := a.model.Turns()
		a.types("/review")
		a.await("another request", func() bool { return a.model.Turns() > turns })
		a.awaitStatus("busy", "")
		a.hold(5 * time.Second)
	}},
	{"print-ask", mockmodel.Ask, agentSetup{headless: true}, (*agent).succeeds},
	{"print-tool-killed", mockmodel.Tool, agentSetup{headless: true}, (*agent).killedInTool},
	{"print-tool-interrupted", mockmodel.Tool, agentSetup{headless: true}, func(a *agent) {
		a.awaitHook("PreToolUse")
		a.hold(2 * time.Second)
		a.signal(syscall.SIGINT)
		a.ended()
	}},
	{"print-gave-up-529", mockmodel.Overload, agentSetup{headless: true, env: []string{oneRetry}}, (*agent).fails},
	{"print-gave-up-429", mockmodel.RateLimit, agentSetup{headless: true, env: []string{oneRetry}}, (*agent).fails},
	{"print-gave-up-401", mockmodel.Auth, agentSetup{headless: true, env: []string{oneRetry}}, (*agent).fails},
	{"print-credit", mockmodel.Refuse, agentSetup{headless: true, env: []string{oneRetry}, script: anthropicRefusal(400, "invalid_request_error",
		"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.")}, (*agent).fails},
	{"print-refused", mockmodel.Answer, agentSetup{headless: true, env: []string{oneRetry, "ANTHROPIC_BASE_URL=" + nowhere}}, (*agent).fails},
}

// codexEndings are the same of Codex.
var codexEndings = []agentScenario{
	{"usage-limit", mockmodel.Refuse, agentSetup{script: codexLimit()}, (*agent).turnEnds},
	{"quota", mockmodel.Refuse, agentSetup{script: codexQuota()}, (*agent).turnEnds},
	{"500", mockmodel.Refuse, agentSetup{script: openaiRefusal(500, map[string]any{"type": "server_error", "message": "The server had an error while processing your request."})}, (*agent).turnEnds},
	{"403", mockmodel.Refuse, agentSetup{script: openaiRefusal(403, map[string]any{"type": "forbidden", "message": "Country, region, or territory not supported"})}, (*agent).turnEnds},
	{"cut", mockmodel.Cut, agentSetup{}, (*agent).turnEnds},
	{"refused", mockmodel.Answer, agentSetup{prepare: codexReaches(nowhere)}, (*agent).codexTriesAgain},
	{"dns", mockmodel.Answer, agentSetup{prepare: codexReaches(noHost), env: []string{"NO_PROXY=127.0.0.1,shop.invalid"}}, (*agent).codexTriesAgain},
	{"escape", mockmodel.Hang, agentSetup{}, func(a *agent) {
		a.awaitRequest()
		a.awaitTranscript("event_msg/task_started")
		a.escape()
	}},
	{"escape-tool", mockmodel.Tool, agentSetup{}, func(a *agent) {
		a.awaitHook("PreToolUse")
		a.escape()
	}},
	{"exit", mockmodel.Answer, agentSetup{}, func(a *agent) {
		a.turnEnds()
		a.types("/quit")
		a.ended()
	}},
	{"compact", mockmodel.Answer, agentSetup{}, func(a *agent) {
		a.turnEnds()
		a.types("/compact")
		a.awaitTranscript("compacted")
		a.hold(3 * time.Second)
	}},
	{"exec-ask", mockmodel.Ask, agentSetup{headless: true}, (*agent).succeeds},
	{"exec-context", mockmodel.Context, agentSetup{headless: true}, (*agent).fails},
	{"exec-usage-limit", mockmodel.Refuse, agentSetup{headless: true, script: codexLimit()}, (*agent).fails},
	{"exec-quota", mockmodel.Refuse, agentSetup{headless: true, script: codexQuota()}, (*agent).fails},
	{"exec-cut", mockmodel.Cut, agentSetup{headless: true}, (*agent).fails},
	{"exec-refused", mockmodel.Answer, agentSetup{headless: true, prepare: codexReaches(nowhere)}, (*agent).codexTriesAgain},
	{"exec-tool-interrupted", mockmodel.Tool, agentSetup{headless: true}, func(a *agent) {
		a.awaitHook("PreToolUse")
		a.hold(2 * time.Second)
		a.signal(syscall.SIGINT)
		a.ended()
	}},
}

// claudeLimit is the limit of a subscription: the headers say which one and when it is lifted.
func claudeLimit() mockmodel.Script {
	s := anthropicRefusal(429, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later.")
	epoch := strconv.FormatInt(resetAt.Unix(), 10)
	s.Refusal.Header = map[string]string{
		"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-representative-claim": "five_hour",
		"anthropic-ratelimit-unified-reset": epoch, "anthropic-ratelimit-unified-5h-status": "rejected", "anthropic-ratelimit-unified-5h-reset": epoch,
		"x-should-retry": "false",
	}
	return s
}

func codexLimit() mockmodel.Script {
	return openaiRefusal(429, map[string]any{
		"type": "usage_limit_reached", "message": "The usage limit has been reached", "plan_type": "plus", "resets_at": resetAt.Unix(),
	})
}

func codexQuota() mockmodel.Script {
	return openaiRefusal(429, map[string]any{"type": "insufficient_quota", "code": "insufficient_quota",
		"message": "You exceeded your current quota, please check your plan and billing details."})
}

// codexReaches lets Codex ask a model elsewhere than at the mock.
func codexReaches(url string) func(*agent) {
	return func(a *agent) {
		path := filepath.Join(a.config, "config.toml")
		text, err := os.ReadFile(path)
		if err != nil {
			a.t.Fatal(err)
		}
		a.write(path, strings.ReplaceAll(string(text), a.model.URL, url))
	}
}

// TestAgentEndings brings the CLIs to endings that `outlive monitor` must tell from each other, as [TestAgentSigns] does.
func TestAgentEndings(t *testing.T) {
	needFull(t, "it holds all recordings against the CLIs, minutes of two cores")
	t.Parallel()
	for kind, scenarios := range map[string][]agentScenario{"claude": claudeEndings, "codex": codexEndings} {
		for i, sc := range scenarios {
			if !oneOfThree(i) && recordings() == "" {
				continue
			}
			t.Run(kind+"/"+sc.name, func(t *testing.T) {
				t.Parallel()
				a := startAgent(t, kind, sc.mode, sc.setup)
				sc.drive(a)
				a.stop()
				a.save(sc.name)
			})
		}
	}
}

// claudeGivesUp waits for the error that stands in the model's place.
func (a *agent) claudeGivesUp() {
	a.t.Helper()
	a.awaitTranscript("assistant")
	a.hold(4 * time.Second)
}

// escape interrupts the turn, as a person does.
func (a *agent) escape() {
	a.t.Helper()
	a.hold(3 * time.Second)
	a.await("the end of the interrupted turn", func() bool {
		if a.transcriptHas("event_msg/turn_aborted") {
			return true
		}
		if status, _ := a.session(); a.kind == "claude" && status == "idle" {
			return true
		}
		a.term.send("\x1b")
		time.Sleep(time.Second)
		return false
	})
	a.hold(2 * time.Second)
}

// types types a command of the CLI and confirms it until it is gone from the screen's prompt: a menu of commands may open first.
func (a *agent) types(command string) {
	a.term.send(command)
	time.Sleep(time.Second) // a key that follows at once counts as a part of a pasted text
	a.term.send("\r")
}

func (a *agent) killedInTool() {
	a.awaitHook("PreToolUse")
	a.hold(2 * time.Second)
	a.signal(syscall.SIGKILL)
	a.ended()
}

// codexTriesAgain: a host that cannot be reached is asked again for more than five minutes, and nothing is written meanwhile.
func (a *agent) codexTriesAgain() {
	a.t.Helper()
	a.awaitTranscript("event_msg/task_started")
	a.hold(30 * time.Second)
}

// sessionID is the id of Claude's state file.
func sessionID(state []byte) string {
	var s struct {
		ID string `json:"sessionId"`
	}
	_ = json.Unmarshal(state, &s) // a file that is just being written has none
	return s.ID
}

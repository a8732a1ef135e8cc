package monitor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
)

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// line is a record of a transcript.
type line = map[string]any

// recordings are the lines of real sessions that the scripts write again, with other texts and times: the first of each type.
var recordings = sync.OnceValue(func() map[string][]byte {
	all := map[string][]byte{}
	for _, name := range []string{"claude/tool", "claude/question", "claude/print-529", "codex/tool", "codex/permission", "codex/question", "codex/classic-tool"} {
		text, err := os.ReadFile(filepath.Join("../agentcli/testdata", name, "transcript.jsonl"))
		if err != nil {
			panic(err)
		}
		for record := range strings.Lines(string(text)) {
			var r struct {
				Type, Subtype string
				Payload       struct{ Type, Role string }
				Message       struct {
					Content json.RawMessage
				}
			}
			var blocks []struct{ Type string }
			if json.Unmarshal([]byte(record), &r) != nil {
				panic("a recording that is not JSON: " + record)
			}
			vendor, _, _ := strings.Cut(name, "/")
			key := strings.Join(append([]string{vendor}, strings.Fields(strings.Join([]string{r.Type, r.Subtype, r.Payload.Type, r.Payload.Role}, " "))...), " ")
			if json.Unmarshal(r.Message.Content, &blocks) == nil && len(blocks) > 0 {
				key += " " + blocks[0].Type
			}
			if all[key] == nil {
				all[key] = []byte(record)
			}
		}
	}
	return all
})

// recording is one such line, to be changed.
func recording(key string) line {
	var r line
	if err := json.Unmarshal(recordings()[key], &r); err != nil {
		panic(key + ": " + err.Error())
	}
	return r
}

// claudeWork is Claude Code at work, as its files show it.
type claudeWork struct {
	*worker
	session string
	hooks   bool // they are installed
	wrapped bool // outlive agent run is around it
	print   bool // claude -p: one prompt, and no terminal
	count   int  // of sessions and calls
	shells  []int
}

// claudeAtTerminal is a session that a person works with, for hours.
func claudeAtTerminal(hooked, wrapped bool) func(*worker) {
	return func(a *worker) {
		c := &claudeWork{worker: a, hooks: hooked, wrapped: wrapped}
		c.begins("claude")
		for n := 2 + a.random.IntN(12); n > 0; n-- {
			c.rests()
			c.turn()
		}
		c.rests()
		c.quits()
		a.waits(time.Second, 10*time.Minute)
	}
}

// claudePrint is claude -p, which somebody starts again and again with the next prompt.
func claudePrint(a *worker) {
	c := &claudeWork{worker: a, wrapped: true, print: true}
	c.begins("claude", "-p", "go on")
	a.waits(500*time.Millisecond, 3*time.Second)
	c.turn()
	a.waits(10*time.Millisecond, 2*time.Second)
	c.ends()
	a.waits(time.Second, 20*time.Minute)
}

func (c *claudeWork) begins(args ...string) {
	c.starts(args...)
	c.clear()
	if c.wrapped {
		c.report()
	}
	c.waits(300*time.Millisecond, 3*time.Second)
	c.hooked(hooks.Event{Name: "SessionStart", Reason: "startup"})
	c.is("idle", "")
}

// clear begins another conversation.
func (c *claudeWork) clear() {
	c.session = fmt.Sprintf("%s-%d-%d", c.name, c.pid, c.count)
	c.count++
}

func (c *claudeWork) report() {
	if !c.wrapped {
		return
	}
	c.reports(func(r *agentrun.Report) { r.Headless = c.print })
}

func (c *claudeWork) quits() {
	if c.chance(50) {
		c.hooked(hooks.Event{Name: "SessionEnd", Reason: "prompt_input_exit"})
	}
	c.ends()
}

func (c *claudeWork) ends() {
	_ = os.Remove(filepath.Join(c.opts.Places[agentcli.Claude], "sessions", strconv.Itoa(c.pid)+".json"))
	if !c.wrapped {
		c.end(c.pid)
		return
	}
	c.endsWrapped(c.print)
}

func (c *claudeWork) hooked(e hooks.Event) {
	if c.hooks {
		c.hook("claude", c.session, e)
	}
}

// is writes what the session does.
func (c *claudeWork) is(status, waitingFor string) {
	id := c.living[c.pid].Identity
	file := line{
		"pid": id.PID, "sessionId": c.session, "cwd": c.dir(c.name), "procStart": strconv.FormatUint(id.Start, 10), "version": "2.1.330", "kind": "interactive",
		"entrypoint": map[bool]string{true: "sdk-cli", false: "cli"}[c.print], "status": status, "statusUpdatedAt": c.wall.UnixMilli(), "updatedAt": c.wall.UnixMilli(),
	}
	if waitingFor != "" {
		file["waitingFor"] = waitingFor
	}
	c.puts(filepath.Join(c.opts.Places[agentcli.Claude], "sessions", strconv.Itoa(c.pid)+".json"), os.O_TRUNC, mustJSON(file))
}

// writes appends a record to the transcript.
func (c *claudeWork) writes(r line) {
	if _, dated := r["timestamp"]; dated {
		r["timestamp"] = c.wall.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	if _, placed := r["cwd"]; placed {
		r["cwd"] = c.dir(c.name)
	}
	r["sessionId"] = c.session
	c.puts(filepath.Join(c.opts.Places[agentcli.Claude], "projects", noWord.ReplaceAllString(c.dir(c.name), "-"), c.session+".jsonl"), os.O_APPEND, append(mustJSON(r), '\n'))
}

// chatter is what stands between the records that mean something.
func (c *claudeWork) chatter() {
	for _, key := range []string{"claude last-prompt", "claude mode", "claude permission-mode", "claude file-history-snapshot"} {
		c.writes(recording(key))
	}
}

func (c *claudeWork) prompt(text string) {
	c.hooked(hooks.Event{Name: "UserPromptSubmit"})
	r := recording("claude user")
	r["message"] = line{"role": "user", "content": text}
	c.writes(r)
	c.is("busy", "")
	c.report()
}

// thinks is a call of the model until its answer comes.
func (c *claudeWork) thinks() {
	c.writes(recording("claude api-request"))
	switch n := c.random.IntN(100); {
	case n < 70:
		c.waits(time.Second, 40*time.Second)
	case n < 95:
		c.waits(40*time.Second, 4*time.Minute)
	default: // long thinking: after 361 seconds without a byte Claude Code asks again by itself
		long := time.Duration(c.random.Int64N(int64(3*time.Minute))) + 4*time.Minute + 30*time.Second
		if long > 361*time.Second {
			c.waits(361*time.Second, 361*time.Second)
			c.writes(recording("claude api-request"))
			long -= 361 * time.Second
		}
		c.waits(long, long)
	}
}

func (c *claudeWork) answer(stop string, content line) {
	c.count++
	c.block(stop, content)
}

// block is a part of the present answer. Each has a record of its own with the answer's id, as recorded.
func (c *claudeWork) block(stop string, content line) {
	r := recording("claude assistant text")
	message := r["message"].(line)
	message["id"], message["stop_reason"], message["content"] = fmt.Sprintf("msg_%d", c.count), stop, []any{content}
	c.writes(r)
}

// call is a call of a tool; the answer is its id.
func (c *claudeWork) call(tool string, input line) string {
	c.count++
	id := fmt.Sprintf("toolu_%d", c.count)
	c.answer("tool_use", line{"type": "tool_use", "id": id, "name": tool, "input": input})
	c.hooked(hooks.Event{Name: "PreToolUse", Tool: tool})
	return id
}

func (c *claudeWork) result(id, text string, failed bool) {
	r := recording("claude user tool_result")
	r["message"] = line{"role": "user", "content": []any{line{"tool_use_id": id, "type": "tool_result", "content": text, "is_error": failed}}}
	c.chatter()
	c.writes(r)
	c.hooked(hooks.Event{Name: "PostToolUse"})
	c.report()
}

// turn is a prompt and everything until its end.
func (c *claudeWork) turn() {
	polls := c.chance(8)
	switch {
	case polls:
		c.prompt("Check the deployment every 2 minutes until it is done, then tell me.")
	case !c.print && c.chance(15):
		c.slash()
	default:
		c.prompt(c.oneOf("Add the second table", "Mend the failing test", "Why is the build slow?", "Go on with phase 3"))
	}
	if polls {
		c.asIsOrdered()
	}
	for n := 1 + c.random.IntN(7); n > 0; n-- {
		c.thinks()
		if !c.print && c.chance(4) { // Esc
			c.interrupted()
			return
		}
		c.step()
	}
	c.thinks()
	text := c.oneOf("Done: all tests pass.", "Phase 2 is merged. I have stopped before the migration.", "The build is slow because it links twice.")
	asks := !c.print && c.chance(15)
	if asks {
		text = "I have added the table. Shall I also write the migration?"
	}
	c.answer("end_turn", line{"type": "text", "text": text})
	c.chatter()
	c.writes(recording("claude system stop_hook_summary"))
	c.writes(recording("claude system turn_duration"))
	c.hooked(hooks.Event{Name: "Stop"})
	c.is("idle", "")
	c.report()
	if asks {
		c.question("an answer, in plain text")
		c.prompt("No, leave it.")
		c.thinks()
		c.answer("end_turn", line{"type": "text", "text": "Good, I leave it."})
		c.writes(recording("claude system turn_duration"))
		c.hooked(hooks.Event{Name: "Stop"})
		c.is("idle", "")
	}
}

// slash is a turn that a command of the CLI begins.
func (c *claudeWork) slash() {
	r := recording("claude user")
	r["message"] = line{"role": "user", "content": "<command-message>review</command-message>\n<command-name>/review</command-name>"}
	c.writes(r)
	c.is("busy", "")
}

func (c *claudeWork) interrupted() {
	r := recording("claude user")
	r["message"] = line{"role": "user", "content": []any{line{"type": "text", "text": "[Request interrupted by user]"}}}
	c.writes(r)
	c.is("idle", "")
}

// asIsOrdered makes the same call again and again, with the same result.
func (c *claudeWork) asIsOrdered() {
	for n := 3 + c.random.IntN(8); n > 0; n-- {
		c.thinks()
		id := c.call("Bash", line{"command": "curl -s https://ci.example/status"})
		c.waits(time.Second, 3*time.Second)
		c.result(id, "pending", false)
		id = c.call("Bash", line{"command": "sleep 120"})
		c.waits(2*time.Minute, 2*time.Minute)
		c.result(id, "", false)
	}
}

// step is one thing that an agent does within a turn.
func (c *claudeWork) step() {
	steps := []func(){c.quick, c.quick, c.edit, c.edit, c.test, c.build, c.quietTool, c.subagents, c.together, c.retries, c.compacts, c.background, c.poll, c.reviews}
	if !c.print {
		steps = append(steps, c.asksQuestion, c.asksPermission, c.queued)
	}
	steps[c.random.IntN(len(steps))]()
}

func (c *claudeWork) quick() {
	id := c.call(c.oneOf("Bash", "Read", "Grep"), line{"command": fmt.Sprintf("git log -%d", c.random.IntN(1000))})
	c.waits(50*time.Millisecond, 50*time.Second)
	c.result(id, fmt.Sprint("ok ", c.random.IntN(1000)), false)
}

func (c *claudeWork) edit() {
	id := c.call("Edit", line{"file_path": "main.go", "old_string": "a", "new_string": strconv.Itoa(c.random.IntN(1 << 20))})
	c.waits(10*time.Millisecond, time.Second)
	c.result(id, "The file has been updated.", false)
}

// test fails with the same words until an edit has mended it.
func (c *claudeWork) test() {
	for n := c.random.IntN(6); n >= 0; n-- {
		id := c.call("Bash", line{"command": "npm test"})
		c.waits(5*time.Second, 3*time.Minute)
		c.result(id, map[bool]string{true: "1 failed: expected 3, got 4", false: "all passed"}[n > 0], n > 0)
		if n > 0 {
			c.thinks()
			c.edit()
			c.thinks()
		}
	}
}

// build is long, and what it starts uses the processor.
func (c *claudeWork) build() {
	id := c.call("Bash", line{"command": "make all"})
	c.waits(100*time.Millisecond, time.Second)
	shell := c.child(c.pid, 0)
	end := c.mono + 2*time.Minute + time.Duration(c.random.Int64N(int64(43*time.Minute)))
	for c.mono < end {
		compiler := c.child(shell, 0.2+c.random.Float64())
		c.waits(5*time.Second, 4*time.Minute)
		c.end(compiler)
		if c.chance(20) {
			c.waits(time.Second, 20*time.Second) // it links, or waits for the disk
		}
	}
	c.end(shell)
	c.result(id, "built", false)
}

// quietTool runs for long and uses nothing, as a test that waits for a remote machine.
func (c *claudeWork) quietTool() {
	id := c.call("Bash", line{"command": "./integration.sh"})
	shell := c.child(c.pid, 0)
	c.waits(time.Minute, 25*time.Minute)
	c.end(shell)
	c.result(id, "passed", false)
}

// subagents work for long, and write to their own transcripts now and then.
func (c *claudeWork) subagents() {
	tool := c.oneOf("Task", "Agent", "Workflow", "Skill")
	id := c.call(tool, line{"description": "look at it", "prompt": "Look at all of it."})
	folder := filepath.Join(c.opts.Places[agentcli.Claude], "projects", noWord.ReplaceAllString(c.dir(c.name), "-"), c.session, "subagents")
	for n := 2 + c.random.IntN(12); n > 0; n-- {
		c.waits(10*time.Second, 7*time.Minute)
		r := recording("claude assistant text")
		r["isSidechain"], r["sessionId"], r["timestamp"] = true, c.session, c.wall.UTC().Format(time.RFC3339Nano)
		c.puts(filepath.Join(folder, fmt.Sprintf("agent-%d.jsonl", n%3)), os.O_APPEND, append(mustJSON(r), '\n'))
	}
	c.result(id, "It is fine.", false)
}

// together are two calls at once.
func (c *claudeWork) together() {
	first := c.call("Bash", line{"command": "go vet ./..."})
	second := first + "_2"
	c.block("tool_use", line{"type": "tool_use", "id": second, "name": "Read", "input": line{"file_path": fmt.Sprint(c.random.IntN(1000))}})
	c.hooked(hooks.Event{Name: "PreToolUse", Tool: "Read"})
	c.waits(time.Second, time.Minute)
	c.result(second, "text", false)
	c.waits(time.Second, 10*time.Minute)
	c.result(first, "ok", false)
}

// retries are refusals of the model's server that pass before the CLI gives up: claude -p says so, a terminal only asks again.
func (c *claudeWork) retries() {
	delay := 500 * time.Millisecond
	for n := 1; n <= 3+c.random.IntN(6); n++ {
		c.writes(recording("claude api-request"))
		c.waits(200*time.Millisecond, 20*time.Second)
		if c.print {
			r := recording("claude system api_error")
			r["retryAttempt"], r["retryInMs"] = n, delay.Milliseconds()
			if c.count%2 == 0 {
				r["error"] = line{"status": 429, "message": "429 rate_limit_error: This request would exceed your rate limit", "formatted": "429 rate limited"}
			}
			c.writes(r)
		}
		c.waits(delay, delay+delay/4)
		delay = min(2*delay, 32*time.Second)
	}
	c.thinks()
	c.quick()
}

func (c *claudeWork) compacts() {
	c.quick()
	c.waits(20*time.Second, 3*time.Minute)
	c.writes(line{"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "timestamp": "", "cwd": "", "compactMetadata": line{"trigger": "auto", "preTokens": 155_000}})
	r := recording("claude user")
	r["isCompactSummary"], r["message"] = true, line{"role": "user", "content": "This session is being continued from a previous conversation that ran out of context."}
	c.writes(r)
}

// background is a shell that goes on beside the turn, and after it.
func (c *claudeWork) background() {
	id := c.call("Bash", line{"command": "npm run dev", "run_in_background": true})
	c.shells = append(c.shells, c.child(c.pid, 0.05))
	c.waits(time.Second, 3*time.Second)
	c.result(id, "Command running in background with ID: bash_1", false)
	if len(c.shells) > 2 {
		c.end(c.shells[0])
		c.shells = c.shells[1:]
	}
}

// poll asks how a run elsewhere is doing.
func (c *claudeWork) poll() {
	for end := c.mono + 30*time.Minute; c.mono < end && !c.chance(10); {
		id := c.call("Bash", line{"command": "gh run view 123"})
		c.waits(time.Second, 4*time.Second)
		c.result(id, "in progress", false)
		c.thinks()
	}
	id := c.call("Bash", line{"command": "gh run view 123"})
	c.waits(time.Second, 4*time.Second)
	c.result(id, fmt.Sprint("completed: ", c.count), false)
}

func (c *claudeWork) asksQuestion() {
	tool, input := "AskUserQuestion", line{"questions": []any{line{"question": "Which of the two databases?"}}}
	if c.chance(40) {
		tool, input = "ExitPlanMode", line{"plan": "First the table, then the migration."}
	}
	c.begs("an answer")
	id := c.call(tool, input)
	c.waits(50*time.Millisecond, 500*time.Millisecond)
	c.hooked(hooks.Event{Name: "PermissionRequest", Tool: tool})
	c.is("waiting", "input needed")
	c.question("an answer")
	c.result(id, "Your questions have been answered.", false)
	c.is("busy", "")
}

func (c *claudeWork) asksPermission() {
	c.begs("a permission")
	id := c.call("Bash", line{"command": "rm -rf build"})
	c.waits(50*time.Millisecond, 500*time.Millisecond)
	c.hooked(hooks.Event{Name: "PermissionRequest", Tool: "Bash", Input: "rm -rf build"})
	c.is("waiting", "permission prompt")
	c.hooked(hooks.Event{Name: "Notification", Text: "Claude needs your permission"})
	c.question("a permission")
	c.is("busy", "")
	c.waits(100*time.Millisecond, 5*time.Minute) // it runs now
	c.result(id, "(Bash completed with no output)", false)
}

// queued is a prompt that a person types while the agent works.
func (c *claudeWork) queued() {
	id := c.call("Bash", line{"command": "make lint"})
	c.waits(time.Second, time.Minute)
	c.hooked(hooks.Event{Name: "UserPromptSubmit"})
	c.writes(line{"type": "queue-operation", "operation": "enqueue", "timestamp": "", "content": "And the other one, too."})
	c.waits(time.Second, time.Minute)
	c.result(id, "ok", false)
	r := recording("claude user")
	r["message"] = line{"role": "user", "content": "And the other one, too."}
	c.writes(r)
}

// rests is the time at the prompt, with what a person does there that is not a turn.
func (c *claudeWork) rests() {
	if c.print {
		return
	}
	c.waits(time.Second, 4*time.Minute)
	if c.chance(25) {
		c.waits(5*time.Minute, time.Hour)
	}
	if c.chance(20) {
		c.clear()
		c.is("idle", "")
		r := recording("claude user")
		r["message"] = line{"role": "user", "content": "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"}
		c.writes(r)
	}
	if c.chance(20) {
		r := recording("claude user")
		r["message"] = line{"role": "user", "content": "<bash-input>ls</bash-input>"}
		c.writes(r)
	}
	c.waits(time.Second, time.Minute)
}

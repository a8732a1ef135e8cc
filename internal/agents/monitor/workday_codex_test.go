package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
)

// codexWork is Codex at work, as its rollout shows it.
type codexWork struct {
	*worker
	rollout  string
	session  string
	exec     bool // codex exec: one prompt, and no terminal
	asksLeft bool // its person is asked for more rights
	count    int
}

// codexAtTerminal is a session that a person works with, for hours.
func codexAtTerminal(a *worker) {
	c := &codexWork{worker: a, asksLeft: true}
	c.begins("codex")
	for n := 2 + a.random.IntN(12); n > 0; n-- {
		a.waits(time.Second, 3*time.Minute)
		if a.chance(25) {
			a.waits(5*time.Minute, time.Hour)
		}
		if a.chance(15) {
			c.another()
		}
		c.turn()
	}
	a.waits(5*time.Second, 10*time.Minute)
	c.ends()
	a.waits(time.Second, 10*time.Minute)
}

// codexExec is codex exec, which somebody starts again and again with the next prompt.
func codexExec(a *worker) {
	c := &codexWork{worker: a, exec: true}
	c.begins("codex", "exec", "go on")
	a.waits(100*time.Millisecond, time.Second)
	c.turn()
	a.waits(5*time.Millisecond, time.Second)
	c.ends()
	a.waits(time.Second, 20*time.Minute)
}

func (c *codexWork) begins(args ...string) {
	c.starts(args...)
	c.report()
	c.waits(300*time.Millisecond, 3*time.Second)
	c.another()
}

func (c *codexWork) report() {
	c.reports(func(r *agentrun.Report) { r.Headless = c.exec })
}

func (c *codexWork) ends() {
	c.endsWrapped(c.exec)
}

// another begins a session. Its file comes with its first prompt, and stays open.
func (c *codexWork) another() {
	c.count++
	c.session = fmt.Sprintf("%08d-%04d-7000-8000-000000000000", c.pid, c.count)
	c.rollout = filepath.Join(c.opts.Places[agentcli.Codex], c.wall.Format("sessions/2006/01/02"), "rollout-"+c.wall.Format("2006-01-02T15-04-05")+"-"+c.session+".jsonl")
}

// writes appends a record to the rollout.
func (c *codexWork) writes(key string, change func(payload line)) {
	r := recording(key)
	r["timestamp"] = c.wall.UTC().Format("2006-01-02T15:04:05.000Z")
	change(r["payload"].(line))
	c.puts(c.rollout, os.O_APPEND, append(mustJSON(r), '\n'))
}

func (c *codexWork) event(kind string) { c.writes("codex event_msg "+kind, func(line) {}) }

func (c *codexWork) turn() {
	if len(c.files[c.pid]) == 0 || c.files[c.pid][0] != c.rollout {
		c.writes("codex session_meta", func(p line) { p["id"], p["session_id"], p["cwd"] = c.session, c.session, c.dir(c.name) })
		c.files[c.pid] = []string{c.rollout}
	}
	c.event("task_started")
	c.writes("codex turn_context", func(p line) {
		p["cwd"], p["approval_policy"] = c.dir(c.name), map[bool]string{true: "never", false: "on-request"}[c.exec]
	})
	c.writes("codex response_item message user", func(line) {})
	c.report()
	steps := []func(){c.command, c.command, c.patch, c.build, c.thinksLong, c.reconnects, c.compacts, c.polls, c.fails}
	if !c.exec {
		steps = append(steps, c.asksQuestion, c.asksRights)
	}
	for n := 1 + c.random.IntN(7); n > 0; n-- {
		c.thinks()
		if !c.exec && c.chance(4) {
			c.writes("codex event_msg task_complete", func(p line) { p["type"], p["reason"] = "turn_aborted", "interrupted" })
			return
		}
		steps[c.random.IntN(len(steps))]()
	}
	c.thinks()
	text := "Done: the shop's tests pass."
	asks := !c.exec && c.chance(15)
	if asks {
		text = "The table is there. Shall I also write the migration?"
	}
	c.says(text)
	c.writes("codex event_msg task_complete", func(p line) { p["last_agent_message"] = text })
	c.report()
	if asks {
		c.question("an answer, in plain text")
		c.event("task_started")
		c.thinks()
		c.says("Good, I leave it.")
		c.event("task_complete")
	}
}

func (c *codexWork) thinks() {
	c.waits(time.Second, 50*time.Second)
	c.writes("codex response_item message assistant", func(p line) {
		for key := range p {
			delete(p, key)
		}
		p["type"], p["summary"], p["encrypted_content"] = "reasoning", []any{}, "x"
	})
	if c.chance(25) {
		c.waits(30*time.Second, 4*time.Minute)
	}
}

// thinksLong is a model that answers late, and within its time.
func (c *codexWork) thinksLong() {
	c.command()
	c.waits(3*time.Minute, 7*time.Minute+30*time.Second)
	c.says("I have thought about it.")
}

func (c *codexWork) says(text string) {
	c.writes("codex response_item message assistant", func(p line) {
		p["content"] = []any{line{"type": "output_text", "text": text, "annotations": []any{}}}
	})
	c.event("token_count")
}

// call makes one; the answer is its id.
func (c *codexWork) call(command, extra string) string {
	c.count++
	id := fmt.Sprintf("call_%d", c.count)
	c.writes("codex response_item custom_tool_call", func(p line) {
		p["call_id"], p["input"] = id, fmt.Sprintf("const r = await tools.exec_command({\"cmd\":%q%s,\"yield_time_ms\":120000});\ntext(r.output);\n", command, extra)
	})
	return id
}

func (c *codexWork) result(id, text string) {
	c.writes("codex response_item custom_tool_call_output", func(p line) {
		p["call_id"], p["output"] = id, []any{line{"type": "input_text", "text": fmt.Sprintf("Script completed\nWall time %.1f seconds\nOutput:\n", c.random.Float64())}, line{"type": "input_text", "text": text}}
	})
	c.event("token_count")
	c.report()
}

func (c *codexWork) command() {
	id := c.call(fmt.Sprintf("rg -n TODO | head -%d", c.random.IntN(100)), "")
	c.waits(100*time.Millisecond, 40*time.Second)
	c.result(id, fmt.Sprint("line ", c.random.IntN(1000)))
}

func (c *codexWork) patch() {
	id := c.call(fmt.Sprintf("apply_patch %d", c.random.IntN(1<<20)), "")
	c.waits(10*time.Millisecond, time.Second)
	c.result(id, "Success. Updated the following files:\nM main.go\n")
}

// fails runs a test that fails with the same words until a patch has mended it.
func (c *codexWork) fails() {
	for n := c.random.IntN(5); n >= 0; n-- {
		id := c.call("npm test", "")
		c.waits(2*time.Second, 2*time.Minute)
		c.result(id, map[bool]string{true: "Process exited with code 1\n1 failed", false: "all passed"}[n > 0])
		if n > 0 {
			c.thinks()
			c.patch()
			c.thinks()
		}
	}
}

func (c *codexWork) build() {
	id := c.call("make all", "")
	shell := c.child(c.pid, 0)
	end := c.mono + 2*time.Minute + time.Duration(c.random.Int64N(int64(43*time.Minute)))
	for c.mono < end {
		compiler := c.child(shell, 0.1+c.random.Float64())
		c.waits(5*time.Second, 3*time.Minute)
		c.end(compiler)
	}
	c.end(shell)
	c.result(id, "built")
}

// reconnects is a stream that breaks and comes again by itself.
func (c *codexWork) reconnects() {
	for n := 1; n <= 1+c.random.IntN(4); n++ {
		c.writes("codex event_msg token_count", func(p line) {
			for key := range p {
				delete(p, key)
			}
			p["type"], p["message"] = "stream_error", fmt.Sprintf("Reconnecting... %d/5", n)
		})
		c.waits(time.Second, 40*time.Second)
	}
}

func (c *codexWork) compacts() {
	c.says("Now the tests.")
	c.waits(20*time.Second, 3*time.Minute)
	c.writes("codex event_msg token_count", func(p line) {
		for key := range p {
			delete(p, key)
		}
		p["type"] = "context_compacted"
	})
}

// polls looks after a process that it has left running.
func (c *codexWork) polls() {
	for end := c.mono + 30*time.Minute; c.mono < end && !c.chance(10); {
		id := c.call("gh run view 123", "")
		c.waits(time.Second, 20*time.Second)
		c.result(id, "in progress")
		c.thinks()
	}
	id := c.call("gh run view 123", "")
	c.waits(time.Second, 20*time.Second)
	c.result(id, fmt.Sprint("completed: ", c.count))
}

func (c *codexWork) asksQuestion() {
	c.count++
	id := fmt.Sprintf("call_%d", c.count)
	c.writes("codex response_item function_call", func(p line) {
		p["call_id"], p["name"], p["arguments"] = id, "request_user_input", `{"questions":[{"header":"Database","id":"database","question":"Which database?"}]}`
	})
	c.question("an answer")
	c.writes("codex response_item function_call_output", func(p line) { p["call_id"], p["output"] = id, `{"answers":{"database":{"answers":["SQLite"]}}}` })
}

func (c *codexWork) asksRights() {
	id := c.call("touch approved.txt", `,"justification":"It is needed.","sandbox_permissions":"require_escalated"`)
	c.question("a permission")
	c.waits(100*time.Millisecond, time.Minute)
	c.result(id, "")
}

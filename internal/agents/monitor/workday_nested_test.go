package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// reviews runs another claude -p in the same directory, which comes to an end of its own: nobody has to hear of that.
func (c *claudeWork) reviews() {
	id := c.call("Bash", line{"command": "claude -p 'Review the diff.'"})
	c.waits(100*time.Millisecond, time.Second)
	shell := c.child(c.pid, 0)
	reviewer := *c.worker
	reviewer.pid = c.child(shell, 0)
	c.count++
	r := &claudeWork{worker: &reviewer, print: true, session: fmt.Sprintf("%s-review-%d-%d", c.name, c.pid, c.count)}
	r.args[r.pid] = []string{"claude", "-p", "Review the diff."}
	r.is("idle", "")
	r.prompt("Review the diff.")
	r.thinks()
	r.quick()
	r.thinks()
	killed := false
	switch c.random.IntN(6) {
	case 0:
		r.answer("end_turn", line{"type": "text", "text": "There are two problems. Would you like me to fix them?"})
	case 1:
		r.fails("invalid_request", 400, "Prompt is too long")
	case 2:
		r.fails("authentication_failed", 401, "Invalid API key · Fix external API key")
	case 3:
		r.fails("overloaded", 529, "Overloaded")
	case 4:
		killed = true
		r.call("Bash", line{"command": "make"})
	default:
		r.answer("end_turn", line{"type": "text", "text": "The diff is fine."})
	}
	if !killed {
		r.is("idle", "")
	}
	c.waits(10*time.Millisecond, 2*time.Second)
	if !killed {
		_ = os.Remove(filepath.Join(c.opts.Places[agentcli.Claude], "sessions", strconv.Itoa(r.pid)+".json"))
	}
	c.end(shell)
	c.waits(10*time.Millisecond, 5*time.Second)
	c.result(id, fmt.Sprint("reviewed ", c.count), killed)
}

// fails is an error of the model that ends the turn.
func (c *claudeWork) fails(word string, status int, text string) {
	r := recording("claude assistant text")
	c.count++
	r["error"], r["isApiErrorMessage"], r["apiErrorStatus"] = word, true, status
	message := r["message"].(line)
	message["id"], message["model"], message["stop_reason"] = fmt.Sprintf("err_%d", c.count), "<synthetic>", "stop_sequence"
	message["content"] = []any{line{"type": "text", "text": text}}
	c.writes(r)
}

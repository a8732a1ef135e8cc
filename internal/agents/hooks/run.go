package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/files/secret"
)

// Options of [Run].
type Options struct {
	Vendor *Vendor
	Dir    string // see [Dir]
	// Ask has permission requests answered here, as the user's policy can, too.
	Ask bool
	// Wait is how long a request waits. 0: [DefaultWait].
	Wait time.Duration
	// Now is the time of the call. Zero: the clock's.
	Now time.Time
	// Parent is the process that started the hook: the CLI, or a shell of its. 0: nobody is looked for.
	Parent int
}

// Run is a hook. It leaves the event that payload is, and returns what to tell the CLI: nothing, or the decision on a
// permission request. ctx ends when the CLI ends the hook. An error is for the CLI's log and goes with no decision:
// what cannot be asked or recorded here is the dialog's to decide.
func Run(ctx context.Context, o Options, payload []byte) (reply []byte, err error) {
	now, wait := o.Now, o.Wait
	if now.IsZero() {
		now = time.Now()
	}
	if wait == 0 {
		wait = DefaultWait
	}
	c, err := parse(o.Vendor, payload, secret.Redact)
	if err != nil {
		return nil, err
	}
	agent := agentAbove(o.Parent)
	c.Time, c.PID = now, agent.pid
	dropped := errors.Join(Drop(o.Dir, c.Event), withdrawSession(o.Dir, c.Event))
	if c.Name != agentcli.PermissionRequest || !o.Vendor.CanAsk() || isQuestion(c.Tool) {
		return nil, dropped
	}
	policy, err := ReadPolicy(o.Dir)
	switch {
	case err != nil:
		return nil, errors.Join(dropped, err)
	case policy.allows(o.Vendor, c.Tool):
		reply, err = allowByPolicy(o.Dir, c)
		return reply, errors.Join(dropped, err)
	case !o.Ask && !policy.Ask, c.full == "", c.Unasked != "", !Attended(o.Dir):
		return nil, dropped
	}
	s, err := ask(ctx, o.Dir, newRequest(c, now.Add(wait)), agent.lives)
	if err != nil {
		return nil, errors.Join(dropped, err)
	}
	return replyFor(s), dropped
}

// allowByPolicy is the answer that the user has given beforehand.
func allowByPolicy(dir string, c *call) ([]byte, error) {
	s := Settlement{Outcome: Allowed, By: "policy", At: time.Now()}
	err := record(dir, Record{
		Asked: c.Time, Ended: s.At, Vendor: c.Vendor, Session: c.Session, Dir: c.Dir, Tool: c.Tool,
		Command: head(c.safe, maxCommand), Outcome: s.Outcome, By: s.By,
	})
	if err != nil {
		return nil, err
	}
	return replyFor(s), nil
}

// replyFor is what Claude Code and Codex understand; nothing leaves it to their dialog.
func replyFor(s Settlement) []byte {
	if s.Outcome != Allowed && s.Outcome != Denied {
		return nil
	}
	type decision struct {
		Behavior string `json:"behavior"`
		Message  string `json:"message,omitempty"`
	}
	type output struct {
		Event    string   `json:"hookEventName"`
		Decision decision `json:"decision"`
	}
	text, err := json.Marshal(map[string]output{
		"hookSpecificOutput": {agentcli.PermissionRequest, decision{string(s.Outcome), s.Message}},
	})
	if err != nil {
		panic(err) // it is made of strings
	}
	return append(text, '\n')
}

package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// Options of [Run].
type Options struct {
	Vendor *Vendor
	Dir    string // see [Dir]
	// Ask passes permission requests on, like Ask in the user's policy.
	Ask bool
	// Wait is how long a request waits. 0: [DefaultWait].
	Wait time.Duration
	// Parent is the process that started the hook: the CLI, or a shell of it. 0: the CLI's process is not looked for.
	Parent int
}

// Run is a hook. It writes the event that payload describes, and returns the reply for the CLI: nothing, or the
// decision on a permission request. ctx ends when the CLI ends the hook. An error is for the CLI's log and never
// comes with a decision: what cannot be asked or recorded here is left to the CLI's dialog.
func Run(ctx context.Context, o Options, payload []byte) (reply []byte, err error) {
	now, wait := time.Now(), cmp.Or(o.Wait, DefaultWait)
	c, err := parse(o.Vendor, payload, secret.Redact)
	if err != nil {
		return nil, err
	}
	agent := agentAbove(o.Parent)
	c.Time, c.PID = now, agent.PID
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
	s, err := ask(ctx, o.Dir, newRequest(c, now.Add(wait)), func() bool { return lives(agent) })
	if err != nil {
		return nil, errors.Join(dropped, err)
	}
	return replyFor(s), dropped
}

// allowByPolicy returns the reply for a tool that the policy allows, after recording it.
func allowByPolicy(dir string, c *call) ([]byte, error) {
	s := Settlement{Outcome: Allowed, By: "policy", At: time.Now()}
	err := record(dir, Record{
		Asked: c.Time, Ended: s.At, Vendor: c.Vendor, Session: c.Session, Dir: c.Dir, Tool: c.Tool,
		Command: logline.Head(c.safe, maxCommand), Outcome: s.Outcome, By: s.By,
	})
	if err != nil {
		return nil, err
	}
	return replyFor(s), nil
}

// replyFor is the reply in the form of Claude Code and Codex; an empty one leaves the decision to their dialog.
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
		panic(err) // not reached: it consists of strings
	}
	return append(text, '\n')
}

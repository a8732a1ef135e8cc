package home

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/fleet/gate"
)

// verbs are those of commands. What only acknowledges or answers something belongs to the messages of the machine's own monitor.
var verbs = []string{"start", "resume", "say", string(incident.Restart), string(incident.Stop)}

// Home is the monitor's home on this machine.
type Home struct {
	opts monitor.Options
}

var _ gate.Agents = Home{}

// New returns the home of a monitor that has these options. It may run or not.
func New(opts monitor.Options) Home { return Home{opts: opts} }

// Carry is [gate.Agents]'s. While no monitor runs, the command waits for one, and it is not known what becomes of it. What a monitor cannot do is in
// the text, as in the answers to a person at the machine.
func (h Home) Carry(ctx context.Context, c gate.Command) (string, error) {
	if !slices.Contains(verbs, c.Verb) {
		return "", fmt.Errorf("%w: no way is known to %s an agent; it can be one of %v", gate.ErrRefused, c.Verb, verbs)
	}
	answer, err := monitor.Ask(ctx, h.opts, monitor.UserRequest{
		Agent: c.Agent, Verb: c.Verb, Text: c.Text, By: c.By, Command: c.ID, Incarnation: c.Incarnation,
	})
	if errors.Is(err, monitor.ErrChanged) {
		return "", fmt.Errorf("%s: %w", c.Agent, gate.ErrChanged)
	}
	return answer, err
}

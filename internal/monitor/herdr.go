package monitor

import (
	"context"
	"encoding/json"
	"log/slog"
	"os/exec"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/diagnose"
)

// herdrTime is how long herdr may take to show its panes.
const herdrTime = 3 * time.Second

// pane is a terminal of herdr's with an agent in it, as `herdr api snapshot` shows it (recorded: 0.8.0).
type pane struct {
	ID     string `json:"pane_id"`
	Agent  string `json:"agent"`        // the name of its CLI, such as claude
	Status string `json:"agent_status"` // idle, working, blocked, done, unknown
	Dir    string `json:"foreground_cwd"`
}

// herdrPanes are the agents of a snapshot; none for what is no snapshot.
func herdrPanes(text []byte) []pane {
	var answer struct {
		Result struct {
			Snapshot struct {
				Agents []pane `json:"agents"`
			} `json:"snapshot"`
		} `json:"result"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return nil
	}
	return answer.Result.Snapshot.Agents
}

// herdr asks for the panes, once at each look.
func (r *round) herdr() []pane {
	if r.panes != nil {
		return *r.panes
	}
	r.panes = &[]pane{}
	ctx, cancel := context.WithTimeout(context.Background(), herdrTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.opts.Herdr, "api", "snapshot")
	cmd.Env, cmd.WaitDelay = r.environ(), time.Second
	out, err := cmd.Output()
	if err != nil {
		r.opts.Logger.Debug("herdr shows no panes", slog.Any("error", err))
		return nil
	}
	*r.panes = herdrPanes(out)
	return *r.panes
}

// nudgeOf is the command that hands a text to the agent's session: its owner's, or herdr's where the agent runs in a pane of it. herdr
// ends the text with Enter, which would answer a dialog: it is not used while the pane shows one, or nobody knows what it shows.
func (r *round) nudgeOf(c *examined) []string {
	declared := c.Declared.Start.Nudge
	kind := string(vendorKind(c.Kind))
	if len(declared) > 0 || r.opts.Herdr == "" || kind == "" || !c.ownsDirectory() || c.evidence.Process.Life != diagnose.Alive {
		return declared
	}
	mine := slices.DeleteFunc(slices.Clone(r.herdr()), func(p pane) bool {
		return p.Agent != kind || p.Dir == "" || !r.sources.within(p.Dir, c.Path)
	})
	if len(mine) != 1 || !slices.Contains([]string{"idle", "done", "working"}, mine[0].Status) || mine[0].ID == "" {
		return nil // which of several is meant, nobody knows
	}
	return []string{r.opts.Herdr, "agent", "prompt", mine[0].ID, "{text}"}
}

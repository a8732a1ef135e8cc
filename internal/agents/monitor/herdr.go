package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// herdrTime is how long herdr may take to show its panes.
const herdrTime = 3 * time.Second

// HerdrPane is a terminal of herdr's with an agent in it, as `herdr api snapshot` shows it (recorded: 0.8.0).
type HerdrPane struct {
	ID        string // such as w1:p1
	Kind      string // the name of its CLI, such as claude
	Status    string // idle, working, blocked, done, unknown
	Dir       string // in which it works
	Workspace string // the name of the workspace that the pane is in; "": it has none
}

// String is the pane for people.
func (p HerdrPane) String() string {
	if p.Workspace == "" {
		return "herdr's pane " + p.ID
	}
	return "herdr's pane " + p.ID + " in its workspace " + p.Workspace
}

// herdrPanes are the agents of a snapshot; none if the text is not a snapshot.
func herdrPanes(text []byte) []HerdrPane {
	var answer struct {
		Result struct {
			Snapshot struct {
				Agents []struct {
					ID        string `json:"pane_id"`
					Kind      string `json:"agent"`
					Status    string `json:"agent_status"`
					Dir       string `json:"foreground_cwd"`
					Workspace string `json:"workspace_id"`
				} `json:"agents"`
				Workspaces []struct {
					ID    string `json:"workspace_id"`
					Label string `json:"label"`
				} `json:"workspaces"`
			} `json:"snapshot"`
		} `json:"result"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return nil
	}
	names := map[string]string{}
	for _, w := range answer.Result.Snapshot.Workspaces {
		names[w.ID] = w.Label
	}
	var list []HerdrPane
	for _, a := range answer.Result.Snapshot.Agents {
		list = append(list, HerdrPane{ID: a.ID, Kind: a.Kind, Status: a.Status, Dir: a.Dir, Workspace: names[a.Workspace]})
	}
	return list
}

// HerdrPanes asks herdr for the agents in its panes, within three seconds. An empty environ means our own.
func HerdrPanes(ctx context.Context, program string, environ []string) ([]HerdrPane, error) {
	ctx, cancel := context.WithTimeout(ctx, herdrTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "api", "snapshot")
	cmd.Env, cmd.WaitDelay = environ, time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s api snapshot: %w", program, err)
	}
	return herdrPanes(out), nil
}

// panes owns what herdr shows at one look.
type panes struct {
	m        *Monitor
	snapshot *snapshot // the round's

	shown *[]HerdrPane // of agents; nil: it was not asked yet
}

// list asks for the panes, once per look.
func (ps *panes) list() []HerdrPane {
	if ps.shown != nil {
		return *ps.shown
	}
	list, err := HerdrPanes(context.Background(), ps.m.opts.Herdr, ps.m.opts.environFor(ps.snapshot))
	if err != nil {
		ps.m.opts.Logger.Debug("herdr shows no panes", slog.Any("error", err))
	}
	ps.shown = &list
	return list
}

// of is the herdr pane of an agent. It is empty if several match.
func (ps *panes) of(c *examined) (HerdrPane, bool) {
	kind := string(vendorKind(c.Kind))
	if ps.m.opts.Herdr == "" || kind == "" || !c.ownsDirectory() || c.evidence.Process.Life != diagnose.Alive {
		return HerdrPane{}, false
	}
	mine := slices.DeleteFunc(slices.Clone(ps.list()), func(p HerdrPane) bool {
		return p.Kind != kind || p.Dir == "" || p.ID == "" || !ps.m.sources.within(p.Dir, c.Path)
	})
	if len(mine) != 1 {
		return HerdrPane{}, false
	}
	return mine[0], true
}

// nudge is the command that gives the agent's session a text: the declared one, or herdr's if the agent runs in a pane.
// herdr presses Enter after the text, which would answer a dialog, so it is not used while the pane shows one or its
// content is unknown.
func (ps *panes) nudge(c *examined) []string {
	declared := c.Declared.Start.Nudge
	if len(declared) > 0 {
		return declared
	}
	p, ok := ps.of(c)
	if !ok || !slices.Contains([]string{"idle", "done", "working"}, p.Status) {
		return nil
	}
	return []string{ps.m.opts.Herdr, "agent", "prompt", p.ID, "{text}"}
}

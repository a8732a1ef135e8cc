package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/files/batchfile"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// nudgeTime is how long the command that hands a text to an agent may take.
const nudgeTime = 20 * time.Second

// nonRestart performs actions that replace no process: a text, a signal, the end of a tool. An action that only waits is
// complete once it is recorded.
func (x *executor) nonRestart(ctx context.Context, rec *attempt) error {
	if !rec.Act.Rung.Acts() {
		return x.ledger.step(ctx, rec, completed)
	}
	if err := x.ledger.step(ctx, rec, doing); err != nil {
		return err
	}
	var err error
	outcome := ""
	switch rec.Act.Rung {
	case recovery.Nudge:
		outcome, err = said, x.nudge(ctx, rec)
	case recovery.Interrupt:
		outcome, err = "the agent was interrupted", x.m.opts.processes.Interrupt(rec.Target.Leaders[0])
	case recovery.RestartServer:
		outcome, err = "its MCP server was restarted", x.restartServer(ctx, rec)
	case recovery.KillTool:
		outcome, err = fmt.Sprintf("%d processes of the tool were ended", len(rec.Target.Leaders)), x.endTool(ctx, rec)
	}
	if ctx.Err() != nil {
		return nil // the next run completes it
	}
	if errors.Is(err, os.ErrProcessDone) {
		return x.ledger.step(ctx, rec, abandoned) // the next look will see it
	}
	x.m.opts.checkpoint("done")
	if err != nil {
		outcome = "failed: " + err.Error() // the next recovery step follows after this one's time
	}
	rec.Outcome = x.m.opts.redact(outcome)
	return x.ledger.step(ctx, rec, completed, rec.entry(rec.action(), rec.Outcome))
}

// endTool ends the processes of the open tool.
func (x *executor) endTool(ctx context.Context, rec *attempt) error {
	if len(rec.Target.Leaders) == 0 {
		return errors.New("no process of the tool is known")
	}
	return x.m.opts.processes.Stop(ctx, rec.Target)
}

// serverTime is how long a new process of an MCP server may take until it works.
const serverTime = 45 * time.Second

// restartServer replaces the MCP server that the agent waits for.
func (x *executor) restartServer(ctx context.Context, rec *attempt) error {
	if x.m.kept.from == nil || rec.Server == "" {
		return errors.New("its MCP server is not known")
	}
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	return x.m.kept.from.Restart(ctx, rec.Server, "the agent "+rec.Agent+" waits for a call that does not go on")
}

// nudge runs the command that hands a text to the agent's session.
func (x *executor) nudge(ctx context.Context, rec *attempt) error {
	if len(rec.Command) == 0 {
		return errors.New("no command is declared for it")
	}
	ctx, cancel := context.WithTimeout(ctx, nudgeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, rec.Command[0], rec.Command[1:]...)
	cmd.Dir, cmd.Env = rec.Entry.Path, slices.Concat(x.m.opts.environFor(x.snapshot), rec.Environ)
	if cmd.Dir != "" {
		cmd.Env = append(cmd.Env, "PWD="+cmd.Dir) // OpenCode takes its directory from it
	}
	cmd.WaitDelay = time.Second
	if err := batchfile.Prepare(cmd); err != nil {
		return fmt.Errorf("%s: %w", rec.Command[0], err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", rec.Command[0], err, logline.Tail(string(out), 300))
	}
	return nil
}

// toolSlack is how much earlier than its record a tool's process may seem to have begun: two clocks are compared.
const toolSlack = 2 * time.Second

// toolOf are the processes of the open tool: the topmost descendants that are as young as the call. Older ones, such as
// MCP servers, are still needed.
func (s *sources) toolOf(f finding, now time.Time) []process.Identity {
	young := map[int]bool{}
	var tool []process.Identity
	for _, e := range s.descendants(f.process) { // the parents first
		if s.began(e.Age, now).Before(f.tool.Add(-toolSlack)) {
			continue
		}
		if young[e.PID] = true; !young[e.Parent] {
			tool = append(tool, e.Identity)
		}
	}
	return tool
}

// agentCameBack judges a declared agent again.
func (x *executor) agentCameBack(ctx context.Context, rec *attempt) string {
	a, there := x.snapshot.agent(rec.Agent)
	if !there {
		return "it is no longer in the registry"
	}
	if err := x.round.refresh(ctx); err != nil {
		return err.Error()
	}
	c := x.round.lookAt(a)
	v, found := c.diagnosis, c.subject
	switch {
	case string(v.Class) != rec.Act.Class:
		return fmt.Sprintf("it is %s now: %s", v.Class, v.Details)
	case rec.Act.Rung.Touches() && v.Doubt != "" && len(c.evidence.Missing) > 0:
		return "nothing is done while it cannot be judged: " + v.Doubt
	case found.signs != "" && found.signs != c.agentState.Signs:
		return "it has shown signs of life meanwhile"
	case rec.Act.Rung.Touches() && rec.Act.Rung != recovery.RestartServer && v.EndsWork(c.evidence, c.expect):
		return "something else of it is at work now"
	case rec.Act.Rung.Touches() && len(rec.Target.Leaders) > 0 && !sameLeaders(rec, found):
		return "it has another process now"
	}
	return ""
}

// sameLeaders reports whether a start would end the process that was judged.
func sameLeaders(rec *attempt, f finding) bool {
	return !rec.Act.Rung.Starts() || f.process == (process.Identity{}) || slices.Contains(rec.Target.Leaders, f.process)
}

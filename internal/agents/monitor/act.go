package monitor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
)

// carryOut writes down what was decided and performs it step by step.
func (r *round) carryOut(ctx context.Context, c *examined, d recovery.Decision, log *slog.Logger) error {
	rec := &attempt{
		Agent: c.Key, Step: begun, Act: d.Act(c.problem, r.now.Wall.Round(0)), Preamble: d.Preamble,
		Entry: c.Project, Declared: !c.isProject(), Rule: c.diagnosis.Rule, Details: c.diagnosis.Details,
		Used: d.Budget.Used, Max: d.Budget.Max, Run: rand.Text(), LeftOut: strings.Join(d.Skipped, "; "),
	}
	r.equip(c, rec)
	if err := r.ledger.writeDown(ctx, rec); err != nil {
		return err // nothing is done that is not written down
	}
	log.Warn("something is done", slog.String("action", string(d.Rung)), slog.String("reason", d.Reason), slog.String("details", c.diagnosis.Details))
	if d.Rung == recovery.AskPhone {
		if err := r.escalate(ctx, c, d); err != nil {
			return err
		}
	}
	return r.executor.advance(ctx, rec)
}

// equip fills in the target and the command of a recovery.
func (r *round) equip(c *examined, rec *attempt) {
	o := r.opts
	rung := rec.Act.Rung
	switch {
	case rung.Starts():
		rec.Target = c.subject.target
		rec.Command, rec.Environ = c.command(rec, o)
	case rung == recovery.Nudge:
		rec.Command, rec.Environ = fill(c.Declared.Start.Nudge, c.values(rec)), c.environ()
	case rung == recovery.Interrupt:
		rec.Target.Leaders = []process.Identity{c.subject.process}
	case rung == recovery.RestartServer:
		rec.Server = c.stalledServer()
	case rung == recovery.KillTool:
		rec.Target.Leaders = r.sources.toolOf(c.subject, r.now.Wall)
	}
}

// command starts the agent. A PIV orchestrator reads its phase from its manifest; the variables give the phase to wrappers of its
// own. Ours would read its streams (PIV-9).
func (c *examined) command(rec *attempt, o Options) (command, environ []string) {
	command, environ = c.Declared.Start.Cmd, c.environ()
	if rec.Act.Rung == recovery.Resume {
		command = c.Declared.Start.Resume
	}
	command = fill(command, c.values(rec))
	if len(o.Wrapper) > 0 && !c.isProject() { // our own wrapper records its output and its exit
		command = slices.Concat(o.Wrapper, c.terminalFlag(command), []string{c.Key, "--"}, command)
	}
	if rec.Preamble != recovery.NoPreamble {
		environ = append(environ, "PIV_AUTONOMOUS_PREAMBLE=strict")
	}
	if rec.Act.Phase != piv.NoPhase {
		environ = append(environ, "OUTLIVE_AGENT_PHASE="+strconv.Itoa(rec.Act.Phase))
	}
	return command, append(environ, "OUTLIVE_AGENT_STALL="+rec.Act.Stall, "OUTLIVE_AGENT_ATTEMPT="+strconv.Itoa(rec.Used+1))
}

// terminalFlag asks our wrapper for a terminal, if the declaration wants one or, by default, if the CLI is interactive.
func (c *examined) terminalFlag(command []string) []string {
	_, session := agentcli.Recognise(command)
	wanted := agentrun.KeepsTerminals && session && !agentcli.Headless(command, true)
	if said := c.Declared.Start.Terminal; said != nil {
		wanted = *said
	}
	if !wanted {
		return nil
	}
	return []string{"--terminal"}
}

// environ is the environment that is specific to the agent. It has what was seen of its last process, and what is declared.
func (c *examined) environ() (environ []string) {
	environ = strings.FieldsFunc(c.agentState.Moved, func(r rune) bool { return r == '\n' })
	for _, name := range slices.Sorted(maps.Keys(c.Declared.Start.Env)) {
		environ = append(environ, name+"="+c.Declared.Start.Env[name])
	}
	return environ
}

// values are the placeholders of the declaration's commands.
func (c *examined) values(rec *attempt) map[string]string {
	phase := ""
	if rec.Act.Phase != piv.NoPhase {
		phase = strconv.Itoa(rec.Act.Phase)
	}
	preamble := preambles[rec.Preamble]
	return map[string]string{"session": c.subject.session, "phase": phase, "preamble": preamble, "text": c.prompt(rec, preamble)}
}

// preambles are the first instructions for a started agent.
var preambles = map[recovery.Preamble]string{
	recovery.NoPreamble: "Go on with the task where it was left.",
	recovery.Autonomous: "Nobody is at the keyboard. Go on with the task where it was left. Decide what you can decide yourself, " +
		"note your decisions, and leave out what needs a human.",
	recovery.NoQuestions: "Nobody is at the keyboard, and nobody will answer: asking ends the work. Do not ask. Choose the safest " +
		"sensible option, write down what you chose and why, and go on with the task to its end.",
}

// prompt is the text given to a running or new session. The agent takes it for its user's word, so it contains no text
// of tools or models.
func (c *examined) prompt(rec *attempt, preamble string) string {
	if rec.Text != "" {
		return rec.Text
	}
	if rec.Act.Rung == recovery.Nudge {
		return "This session seems to be stuck: " + incident.Told(rec.Act.Class) + ". " + preamble
	}
	const look = " Look at the state of the work first."
	if rec.UserRequest != 0 {
		return preamble + " A person has ended the session before this one." + look
	}
	return preamble + " The session before this one is over: " + incident.Told(rec.Act.Class) + "." + look
}

// reconcile completes what an earlier run has left unfinished.
func (r *round) reconcile(ctx context.Context) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(r.ledger.all)) {
		list := r.ledger.all[key]
		last := &list[len(list)-1]
		if !last.unfinished() {
			continue
		}
		r.opts.Logger.Info("a recovery goes on", slog.String("agent", last.Entry.Name), slog.String("step", string(last.Step)))
		errs = append(errs, r.executor.resume(ctx, last))
	}
	if len(errs) == 0 {
		return nil
	}
	// The registry has changed: judge the agents by its new state.
	if r.snapshot.Lost == "" {
		r.snapshot = r.registryStore.read(ctx)
	}
	return errors.Join(errs...)
}

// action is what was done, in the words of PIV's records where it is PIV's.
func (rec *attempt) action() string {
	if rec.Declared {
		return string(rec.Act.Rung)
	}
	return recovery.Decision{Rung: rec.Act.Rung, Preamble: rec.Preamble}.PIVAction()
}

func (rec *attempt) entry(action, outcome string) piv.Intervention {
	stall := cmp.Or(rec.Act.Stall, rec.Act.Class)
	if rec.UserRequest != 0 {
		action += " (requested by " + cmp.Or(rec.By, "a user") + ")"
		stall = cmp.Or(rec.Act.Stall, "none")
	}
	details := fmt.Sprintf("[%s %s] %s", rec.Rule, rec.Act.Class, rec.Details)
	if rec.LeftOut != "" {
		details += " (" + rec.LeftOut + ")"
	}
	return piv.Intervention{
		Time: rec.Act.At, Project: rec.Entry.Name, Phase: rec.Act.Phase, Stall: stall,
		Action: action, Outcome: outcome, Details: details,
	}
}

package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agentrun"
	"github.com/outlive-mcp/outlive/internal/diagnose"
	"github.com/outlive-mcp/outlive/internal/piv"
	"github.com/outlive-mcp/outlive/internal/process"
	"github.com/outlive-mcp/outlive/internal/remedy"
	"github.com/outlive-mcp/outlive/internal/vendors"
)

// carryOut begins what was decided, and brings it as far as it goes.
func (r *round) carryOut(ctx context.Context, c *examined, d remedy.Decision, log *slog.Logger) error {
	rec := &recovery{
		Agent: c.Key, Step: begun, Act: d.Act(c.problem, r.now.Wall.Round(0)), Preamble: d.Preamble,
		Entry: c.Entry, Declared: c.Declared != nil, Rule: c.verdict.Rule, Details: c.verdict.Details,
		Used: d.Budget.Used, Max: d.Budget.Max, Run: newRun(), LeftOut: leftOut(d),
	}
	r.equip(c, rec)
	if err := r.writeDown(ctx, rec); err != nil {
		return err // nothing is done that is not written down
	}
	log.Warn("something is done", slog.String("action", string(d.Rung)), slog.String("reason", d.Reason), slog.String("details", c.verdict.Details))
	if d.Rung == remedy.AskPhone {
		if err := r.escalate(ctx, c, d); err != nil {
			return err
		}
	}
	return r.advance(ctx, rec)
}

// leftOut are the steps before a decision that could not be done, for people.
func leftOut(d remedy.Decision) string {
	var list []string
	for _, o := range d.Skipped {
		list = append(list, o.Why)
	}
	return strings.Join(list, "; ")
}

// writeDown keeps what is to be done, with what all agents share of it.
func (r *round) writeDown(ctx context.Context, rec *recovery) error {
	err := r.do(ctx, func(tx *sql.Tx) error {
		return errors.Join(addRecovery(ctx, tx, rec), setFact(ctx, tx, "fleet", r.fleet))
	})
	if err != nil {
		return err
	}
	r.recoveries[rec.Agent] = append(r.recoveries[rec.Agent], *rec)
	r.opts.checkpoint("begun")
	return nil
}

// equip gives a recovery whom it is for and what it runs.
func (r *round) equip(c *examined, rec *recovery) {
	o := r.opts
	rung := rec.Act.Rung
	switch {
	case rung.Starts():
		rec.Target = c.body.target
		rec.Command, rec.Environ = c.command(rec, o)
	case rung == remedy.Nudge:
		rec.Command, rec.Environ = fill(r.nudgeOf(c), c.values(rec)), c.environ()
	case rung == remedy.Interrupt:
		rec.Target.Leaders = []process.Identity{c.body.process}
	case rung == remedy.KillTool:
		rec.Target.Leaders = r.sources.toolOf(c.body, r.now.Wall)
	}
}

// command is what starts the agent. S4's orchestrator finds the phase itself, in its manifest; the variables tell a
// wrapper the same.
func (c *examined) command(rec *recovery, o Options) (command, environ []string) {
	command = o.Command
	if c.Declared != nil {
		command = c.Declared.Start.Cmd
		if rec.Act.Rung == remedy.Resume {
			command = c.Declared.Start.Resume
		}
		command = fill(command, c.values(rec))
		if len(o.Wrapper) > 0 { // our own wrapper tells its output and how it ends
			command = slices.Concat(o.Wrapper, c.terminalFlag(command), []string{c.Key, "--"}, command)
		}
		environ = c.environ()
	}
	if rec.Preamble != remedy.NoPreamble {
		environ = append(environ, "PIV_AUTONOMOUS_PREAMBLE=strict")
	}
	if rec.Act.Phase != piv.NoPhase {
		environ = append(environ, "OUTLIVE_AGENT_PHASE="+strconv.Itoa(rec.Act.Phase))
	}
	return command, append(environ, "OUTLIVE_AGENT_STALL="+rec.Act.Stall, "OUTLIVE_AGENT_ATTEMPT="+strconv.Itoa(rec.Used+1))
}

// terminalFlag has our wrapper give the agent a terminal, where the declaration wants one, or where it says nothing and the
// command is a CLI that is worked with at a terminal.
func (c *examined) terminalFlag(command []string) []string {
	_, session := vendors.Recognise(command, "")
	wanted := agentrun.KeepsTerminals && session && !vendors.Headless(command)
	if said := c.Declared.Start.Terminal; said != nil {
		wanted = *said
	}
	if !wanted {
		return nil
	}
	return []string{"--terminal"}
}

// environ is what a declared agent gets besides everything else.
func (c *examined) environ() (environ []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Declared.Start.Env)) {
		environ = append(environ, name+"="+c.Declared.Start.Env[name])
	}
	return environ
}

// values are what the commands of a declaration may ask for.
func (c *examined) values(rec *recovery) map[string]string {
	phase := ""
	if rec.Act.Phase != piv.NoPhase {
		phase = strconv.Itoa(rec.Act.Phase)
	}
	preamble := preambles[rec.Preamble]
	return map[string]string{"session": c.body.session, "phase": phase, "preamble": preamble, "text": c.errand(rec, preamble)}
}

// preambles are what a started agent is told first.
var preambles = map[remedy.Preamble]string{
	remedy.NoPreamble: "Go on with the task where it was left.",
	remedy.Autonomous: "Nobody is at the keyboard. Go on with the task where it was left. Decide what you can decide yourself, " +
		"note your decisions, and leave out what needs a human.",
	remedy.NoQuestions: "Nobody is at the keyboard, and nobody will answer: asking ends the work. Do not ask. Choose the safest " +
		"sensible option, write down what you chose and why, and go on with the task to its end.",
}

// errand is what a running or new session is told. It takes it for its user's word, so it holds nothing that a tool or a
// model has said: no details.
func (c *examined) errand(rec *recovery, preamble string) string {
	if rec.Text != "" {
		return rec.Text
	}
	if rec.Act.Rung == remedy.Nudge {
		return "This session seems to be stuck: " + diagnose.Class(rec.Act.Class).Words() + ". " + preamble
	}
	const look = " Look at the state of the work first."
	if rec.Wish != 0 {
		return preamble + " A person has ended the session before this one." + look
	}
	return preamble + " The session before this one is over: " + diagnose.Class(rec.Act.Class).Words() + "." + look
}

// reconcile brings to an end what an earlier run has left half done.
func (r *round) reconcile(ctx context.Context) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(r.recoveries)) {
		list := r.recoveries[key]
		last := &list[len(list)-1]
		if !last.unfinished() {
			continue
		}
		r.opts.Logger.Info("a recovery goes on", slog.String("project", last.Entry.Name), slog.String("step", string(last.Step)))
		errs = append(errs, r.resume(ctx, last))
	}
	if len(errs) == 0 {
		return nil
	}
	// What was done just now is in the registry, and must be judged by it.
	if r.page.Lost == "" {
		r.page = r.book.read(ctx)
	}
	var err error
	r.incidents, err = r.store.incidents(ctx, r.now.Wall)
	return errors.Join(append(errs, err)...)
}

// resume goes on with a recovery of an earlier run. Meanwhile somebody may have started the agent by hand, or it is the
// one that was started and not written down.
func (r *round) resume(ctx context.Context, rec *recovery) error {
	if !rec.Act.Rung.Starts() {
		return r.resumeSmall(ctx, rec)
	}
	other, alive := r.otherProcess(rec)
	switch rec.Step {
	case begun:
		if r.page.Lost != "" && !rec.Declared {
			return nil // nothing was done yet, and nothing tells whether it still should be
		}
	case stopping, stopped:
		if alive {
			return r.step(ctx, rec, abandoned)
		}
	case starting:
		if alive {
			rec.Process = other
		}
		if alive || !process.FindsStarts { // without either, its heartbeat will tell whether it was started
			if err := r.step(ctx, rec, started); err != nil {
				return err
			}
		}
	}
	return r.advance(ctx, rec)
}

// resumeSmall ends what was only a word or a signal. What was not begun is decided again, but for what a person wishes.
// Of the rest it is not known whether it was done, and doing it twice could do harm where not at all only costs time.
func (r *round) resumeSmall(ctx context.Context, rec *recovery) error {
	switch {
	case rec.Step == begun && rec.Wish != 0:
		return r.advance(ctx, rec)
	case rec.Step == begun:
		return r.step(ctx, rec, abandoned)
	}
	rec.Outcome = "interrupted: it is not known whether it was done"
	return r.stepWith(ctx, rec, completed, func(tx *sql.Tx) error {
		return journal(ctx, tx, rec.entry(rec.action(), rec.Outcome))
	})
}

// otherProcess is a living process that the registry names now, and did not when the recovery began.
func (r *round) otherProcess(rec *recovery) (process.Identity, bool) {
	if rec.Declared {
		return process.Identity{}, false // the token of the start finds its process
	}
	for _, a := range r.page.Agents {
		if p := a.Entry; p.Key == rec.Agent && p.PID != 0 && p.PID != rec.Entry.PID {
			proc, err := r.opts.processes.Look(p.PID)
			return proc.Identity, err == nil && (proc.Dir == "" || within(proc.Dir, p.Path))
		}
	}
	return process.Identity{}, false
}

func (r *round) step(ctx context.Context, rec *recovery, to step) error {
	return r.stepWith(ctx, rec, to, func(*sql.Tx) error { return nil })
}

// stepWith writes down a step and does also, in one transaction.
func (r *round) stepWith(ctx context.Context, rec *recovery, to step, also func(*sql.Tx) error) error {
	fleet := r.fleet
	if to == abandoned {
		fleet = fleet.Refund(rec.Act)
	}
	err := r.do(ctx, func(tx *sql.Tx) error {
		errs := []error{also(tx), setRecovery(ctx, tx, rec, to)}
		if to == abandoned {
			errs = append(errs, setFact(ctx, tx, "fleet", fleet))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	r.fleet, r.acted = fleet, true
	list := r.recoveries[rec.Agent]
	if i := slices.IndexFunc(list, func(o recovery) bool { return o.ID == rec.ID }); i >= 0 {
		list[i] = *rec
	}
	r.opts.checkpoint(string(to))
	return nil
}

// advance does the steps of a recovery, each after the one before was written down.
func (r *round) advance(ctx context.Context, rec *recovery) error {
	if rec.Step == begun {
		if why := r.cameBack(ctx, rec); why != "" {
			r.opts.Logger.Info("nothing is done", slog.String("project", rec.Entry.Name), slog.String("reason", why))
			return r.step(ctx, rec, abandoned)
		}
		if !rec.Act.Rung.Starts() {
			return r.small(ctx, rec)
		}
		if err := r.step(ctx, rec, stopping); err != nil {
			return err
		}
	}
	if rec.Step == stopping {
		if err := r.opts.processes.Stop(ctx, rec.Target); err != nil {
			if ctx.Err() != nil {
				return nil // the next run goes on from here
			}
			return r.fail(ctx, rec, err.Error())
		}
		r.opts.checkpoint("killed")
		if err := r.step(ctx, rec, stopped); err != nil {
			return err
		}
	}
	if rec.Step == stopped {
		rec.StartedAt = r.opts.clock().Wall.Round(0)
		if err := r.step(ctx, rec, starting); err != nil {
			return err
		}
	}
	if rec.Step == starting {
		id, err := r.opts.processes.Start(r.launch(rec))
		if err != nil {
			return r.fail(ctx, rec, err.Error())
		}
		r.opts.checkpoint("spawned")
		rec.Process = id
		if err := r.step(ctx, rec, started); err != nil {
			return err
		}
	}
	return r.complete(ctx, rec)
}

// launch is how an agent is started.
func (r *round) launch(rec *recovery) process.Launch {
	return process.Launch{
		Run: rec.Run, Command: rec.Command, Dir: rec.Entry.Path,
		Environ: slices.Concat(r.environ(), rec.Environ),
	}
}

// environ is what every agent gets: nothing by which it could speak in the monitor's name, or to whom the monitor speaks.
func (r *round) environ() []string {
	secret := slices.Clone(r.opts.Secrets)
	if r.page.declared() {
		secret = append(secret, r.page.Roster.Variables()...)
	}
	return slices.DeleteFunc(slices.Clone(r.opts.Environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(secret, name)
	})
}

// cameBack looks once more, immediately before something is done: a verdict is as old as its evidence.
func (r *round) cameBack(ctx context.Context, rec *recovery) string {
	if rec.Wish != 0 || rec.Act.Rung == remedy.Observe || rec.Act.Rung == remedy.Hold || rec.Act.Rung == remedy.AskPhone {
		return "" // a person wants it, or it harms nobody
	}
	if rec.Declared {
		return r.agentCameBack(ctx, rec)
	}
	if r.page.Lost != "" {
		return "" // only what is proven dead gets here
	}
	// The registry may have been read while somebody was writing it.
	text, err := piv.ReadFile(r.opts.Registry)
	if err != nil {
		return err.Error()
	}
	p, err := r.book.parse(text)
	if err != nil {
		return err.Error()
	}
	for _, a := range p.Agents {
		switch e := a.Entry; {
		case a.Key != rec.Agent:
		case e.Heartbeat != rec.Entry.Heartbeat:
			return "the agent has beaten meanwhile"
		case e.Status != rec.Entry.Status:
			return "its status is " + string(e.Status) + " now"
		case e.PID != rec.Entry.PID:
			return "it has another process now"
		default:
			return ""
		}
	}
	return "it is no longer in the registry"
}

// complete tells S4's registry of the new process, and the improvement log of the recovery. No heartbeat is written: that
// the new one lives, it has to show itself.
func (r *round) complete(ctx context.Context, rec *recovery) error {
	if !rec.Declared {
		running := piv.Running
		change := piv.Change{Key: rec.Agent, Status: &running}
		if rec.Process.PID != 0 {
			change.PID = &rec.Process.PID
		}
		if err := r.publish(rec, change); err != nil {
			return fmt.Errorf("the registry does not know of the restart yet: %w", err)
		}
	}
	r.opts.checkpoint("published")
	word := "restarted"
	if rec.Verb == verbStart {
		word = "started"
	}
	if rec.Outcome = fmt.Sprintf("%s, PID %d", word, rec.Process.PID); rec.Wish == 0 {
		rec.Outcome += fmt.Sprintf(" (%d of %d restarts)", rec.Used+1, rec.Max)
	}
	err := r.stepWith(ctx, rec, completed, func(tx *sql.Tx) error {
		return journal(ctx, tx, rec.entry(rec.action(), rec.Outcome))
	})
	if err == nil {
		r.summary.Recovered++
	}
	return err
}

// publish changes S4's registry, unless the new process has already written more than we know.
func (r *round) publish(rec *recovery, change piv.Change) error {
	text, err := piv.ReadFile(r.opts.Registry)
	if errors.Is(err, os.ErrNotExist) {
		return nil // nobody reads it
	}
	if err != nil {
		return err
	}
	reg, err := piv.ParseRegistry(text)
	if err != nil {
		return err
	}
	for _, p := range reg.Projects {
		if p.Key == rec.Agent && p.Heartbeat != rec.Entry.Heartbeat {
			return nil
		}
	}
	return r.book.change([]piv.Change{change}, r.now.Wall)
}

// action is what was done, in the words of S4's records where it is S4's.
func (rec *recovery) action() string {
	if rec.Declared {
		return string(rec.Act.Rung)
	}
	return remedy.Decision{Rung: rec.Act.Rung, Preamble: rec.Preamble}.S4Action()
}

func (rec *recovery) entry(action, outcome string) piv.Intervention {
	stall := cmp.Or(rec.Act.Stall, rec.Act.Class)
	if rec.Wish != 0 {
		action += " (wished by " + cmp.Or(rec.By, "somebody") + ")"
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

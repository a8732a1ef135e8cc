package agentcli

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// longCall is how long a call must take for its success to count as progress: a build or a test run.
const longCall = time.Minute

// openCalls is the maximum number of calls that are open at once, and of background tasks.
const openCalls = 1024

// call is a tool call that a transcript shows.
type call struct {
	id, tool, input string
	asks            Open          // Tool, Question, Plan or Permission
	edits           bool          // it changes files, or commits
	polls           bool          // it only waits for something that runs: repeating it is not a loop
	wakes           bool          // it asks for a call of the model at a later time
	sleeps          time.Duration // it does nothing for as long, by its own word
	key             uint64
	at              time.Time
	step            int // those made while others were open belong to the same one
}

// tools are the tools of a CLI whose calls mean more to a turn than others. Each CLI has its own: a tool of an MCP server may have the
// name of another CLI's.
type tools struct{ question, plan, edits, shell, polls, wakes []string }

// call is a call of a tool by its name, with arguments in JSON.
func (own *tools) call(id, tool string, args json.RawMessage, at time.Time) call {
	c := call{id: id, tool: tool, input: inputText(args), asks: Tool, key: digest(tool, compact(args)), at: at}
	is := func(names []string) bool { return slices.Contains(names, tool) }
	switch {
	case is(own.question):
		c.asks = Question
	case is(own.plan):
		c.asks = Plan
	case is(own.edits):
		c.edits = true
	case is(own.shell):
		c.edits, c.polls = commits(c.input), waiting.MatchString(c.input)
	case is(own.polls):
		c.polls, c.input = true, taskAsked(args, c.input)
	case is(own.wakes):
		c.wakes = true
	}
	return c
}

func commits(command string) bool {
	return strings.Contains(command, "git commit") || strings.Contains(command, "git push")
}

// turn collects what the records of a transcript mean. Its methods are the same for the parsers of all vendors.
type turn struct {
	Turn                 // as it will be shown, but for what [turn.snapshot] derives
	open       []call    // in the order in which they were made
	overflowed bool      // more calls are open
	known      int       // increases with whatever shows what is open
	model      time.Time // since when the model's answer is awaited; zero: it is not
	running    bool
	proposed   bool // it has proposed a plan that a person has to accept, without a call that waits for that
	loop       loop
	steps      int  // how often calls were made while none was open
	ordered    bool // its user asked for repetition
}

func (t *turn) now() *turn { return t }

// when returns at, or the time of the last record if at is zero.
func (t *turn) when(at time.Time) time.Time {
	if at.IsZero() {
		return t.LastAt
	}
	return at
}

func (t *turn) touch(at time.Time) { t.LastAt = t.when(at) }

// settled reports whether enough was read to know what is open: the beginning or the end of a turn.
func (t *turn) settled() bool { return t.Turns > 0 || t.Ended }

// prompt begins a turn. The background tasks are dropped, because it is not known whether the agent still waits for
// them.
func (t *turn) prompt(at time.Time) {
	t.begin(at)
	t.ordered, t.Tasks = false, nil
	t.typed()
}

func (t *turn) begin(at time.Time) {
	t.touch(at)
	t.resume(at)
	t.closeAll()
	t.Error, t.loop, t.proposed = Failure{}, loop{}, false
	t.model = t.LastAt
	t.Turns++
}

// typed handles input of a person. Times for progress start again: a session that waits is not expected to make any.
func (t *turn) typed() {
	t.TypedAt = t.LastAt
	if !t.ProgressAt.IsZero() {
		t.ProgressAt = t.LastAt
	}
}

// typedAlready handles input of a person that the model does not get, or not yet: the turn is the same.
func (t *turn) typedAlready(at time.Time) {
	if at.After(t.TypedAt) {
		t.TypedAt = at
	}
}

func (t *turn) prompted(text string, at time.Time) {
	t.prompt(at)
	t.ordered = ordersRepetition.MatchString(text)
}

// resume handles anything that shows that a turn continues.
func (t *turn) resume(at time.Time) {
	t.touch(at)
	t.running, t.Ended, t.Interrupted = true, false, false
}

// request handles a call of the model. For a retry, the time of the first unanswered call is kept.
func (t *turn) request(at time.Time) {
	t.resume(at)
	if t.model.IsZero() {
		t.model = t.LastAt
	}
}

// answered handles a sign of the model. More follows until a call or the end.
func (t *turn) answered(at time.Time) {
	t.resume(at)
	t.model, t.Error = t.LastAt, Failure{}
	t.known++
}

// answersAnew handles the beginning of another answer. The model gives one only after the results of all its earlier
// calls, so that these are over, even if a result was not seen.
func (t *turn) answersAnew() {
	for _, c := range t.open {
		if c.asks == Question || c.asks == Plan {
			t.typed()
		}
	}
	t.closeAll()
}

func (t *turn) closeAll() {
	t.open, t.overflowed = nil, false
	t.known++
}

func (t *turn) say(text string, at time.Time) {
	t.answered(at)
	if strings.TrimSpace(text) != "" {
		t.LastText = ending(text, textKept)
	}
}

// called handles a tool call of the model, whose result is awaited.
func (t *turn) called(c call) {
	t.answered(c.at)
	t.model = time.Time{}
	t.WakesItself, c.polls = t.WakesItself || c.wakes, c.polls || polling.MatchString(c.tool)
	c.at = t.LastAt
	for i, known := range t.open {
		if known.id == c.id { // reported again
			c.at, c.step = known.at, known.step
			t.open[i] = c
			return
		}
	}
	if len(t.open) == 0 {
		t.steps++
	}
	c.step = t.steps
	if len(t.open) == openCalls {
		t.open, t.overflowed = t.open[1:], true
	}
	t.open = append(t.open, c)
}

// returned handles the result of a call, which is unknown if reading began after it.
func (t *turn) returned(id, output string, failed bool, at time.Time) {
	t.resume(at)
	for i, c := range t.open {
		if c.id != id {
			continue
		}
		t.open = append(t.open[:i:i], t.open[i+1:]...)
		if c.asks == Question || c.asks == Plan {
			t.typed() // a person has answered
		}
		result := resultOf(output)
		if c.polls {
			t.loop.rest()
		} else {
			t.loop.add(c.key, result, failed && !exitAlone.MatchString(output), c.step)
		}
		news := t.loop.shows(c.key, result) || t.ordered
		if took := t.LastAt.Sub(c.at); !failed && (c.edits || news || took >= longCall && !c.polls && c.asks == Tool) {
			t.ProgressAt = t.LastAt
		}
		break
	}
	if len(t.open) == 0 {
		t.model = t.LastAt
	}
}

// failed handles an error of the model or of the turn.
func (t *turn) failed(f Failure) {
	t.touch(f.At)
	f.At, f.Text = t.LastAt, excerpt(f.Text, textKept)
	t.Error = f
	if f.Final {
		t.finish()
		return
	}
	t.running, t.Ended = true, false
}

func (t *turn) end(at time.Time) {
	t.touch(at)
	t.finish()
}

// interrupted handles the end of a turn by a human. Errors that the model had answered before are dropped, unless
// they had ended the turn.
func (t *turn) interrupted(at time.Time) {
	if !t.Error.Final {
		t.Error = Failure{}
	}
	t.end(at)
	t.Interrupted, t.TypedAt, t.Tasks = true, t.LastAt, nil
}

func (t *turn) finish() {
	t.running, t.Ended = false, true
	t.model = time.Time{}
	t.closeAll()
}

// waits is the order of importance of open calls: one that needs a human comes first.
var waits = []Open{Permission, Question, Plan, Tool}

// waitsFor returns what is open, and the call if it is one.
func (t *turn) waitsFor() (Open, call) {
	for _, open := range waits {
		for _, c := range t.open {
			if c.asks == open {
				return open, c
			}
		}
	}
	if !t.Ended && !t.model.IsZero() {
		return Model, call{at: t.model}
	}
	return Nothing, call{}
}

// snapshot is the turn as it is shown.
func (t *turn) snapshot() Turn {
	now := t.Turn
	open, c := t.waitsFor()
	now.Open, now.OpenAt, now.Tool, now.ToolInput = open, c.at.Add(c.sleeps), c.tool, c.input
	now.Interrupted = t.Ended && t.Interrupted
	now.EndedAsking = t.Ended && !t.Interrupted && t.Error.Kind == NoFailure && (t.proposed || asks(t.LastText))
	if !t.Ended && !t.ordered { // a turn that is over is no loop
		now.Repeats = t.loop.repeats()
	}
	now.Tasks = t.waitedFor()
	return now
}

// beganAt uses the time since which the CLI says that the session is busy. If that is after the end of the last turn,
// another has begun, which the transcript does not show yet.
func (t *Turn) beganAt(at time.Time) {
	if !t.Ended || !at.After(t.LastAt) {
		return
	}
	t.LastAt, t.Ended, t.EndedAsking, t.Interrupted, t.Error = at, false, false, false, Failure{}
}

// gaveUpAt uses the time since which the CLI says that the session is idle. If the model was called before that and
// has not answered, a person has interrupted the turn: Claude Code writes no record of that (recorded: 2.1.330).
func (t *Turn) gaveUpAt(at time.Time) {
	if t.Open != Model || !at.After(t.LastAt) {
		return
	}
	t.LastAt, t.TypedAt, t.Ended, t.Interrupted = at, at, true, true
	t.Open, t.OpenAt, t.Error, t.Repeats = Nothing, time.Time{}, Failure{}, Repeats{}
}

// amount is a number of tokens; an invalid one is 0.
func amount(n int64) int64 {
	if n < 0 || n > 1<<40 {
		return 0
	}
	return n
}

// status derives the session's status from the turn, for vendors that do not write it.
func (t *turn) status() (Status, time.Time) {
	switch {
	case t.Ended:
		return Idle, t.LastAt
	case t.Error.Kind != NoFailure:
		return Retrying, t.Error.At
	case t.running:
		return Busy, t.LastAt
	}
	return Unknown, time.Time{}
}

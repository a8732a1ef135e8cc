package recovery

import (
	"fmt"
	"slices"
)

// Rung is one step of the ladder: something that is done about a stall. The names are those of the configuration and of
// the records.
type Rung string

// The rungs, from the gentlest to the last.
const (
	// Nothing is to be done now.
	Nothing Rung = ""
	// Observe looks again after a while.
	Observe Rung = "observe"
	// Hold waits until a known time, such as the end of a rate limit.
	Hold Rung = "hold"
	// Nudge puts a line into the session.
	Nudge Rung = "nudge"
	// AskPhone sends the agent's question to a human, who can answer remotely.
	AskPhone Rung = "ask_phone"
	// RestartServer replaces the MCP server that the agent waits for, so that its call is answered and it goes on.
	RestartServer Rung = "restart_server"
	// KillTool ends the processes of the open tool, so that the agent sees an error and goes on.
	KillTool Rung = "kill_tool"
	// Interrupt sends SIGINT, which ends a turn and leaves the session.
	Interrupt Rung = "interrupt"
	// Resume starts a process that continues the same session, told to work on its own.
	Resume Rung = "resume"
	// Restart starts the agent anew, at its last phase.
	Restart Rung = "restart"
	// Fresh starts a new session that gets a summary of the old one.
	Fresh Rung = "fresh"
	// Escalate notifies a human.
	Escalate Rung = "escalate"
)

// Rungs are the steps that a ladder may list, the gentlest first.
func Rungs() []Rung {
	return []Rung{Observe, Nudge, Hold, AskPhone, RestartServer, KillTool, Interrupt, Resume, Restart, Fresh, Escalate}
}

// Starts reports a step that replaces the agent's process. A class's [Budget] and the [Breaker] count these.
func (r Rung) Starts() bool { return r == Resume || r == Restart || r == Fresh }

// Touches reports a rung that does something to a process. These share the limit of all agents, and are never for a
// diagnosis of low confidence.
func (r Rung) Touches() bool {
	return r.Starts() || r == Interrupt || r == KillTool || r == RestartServer
}

// Acts reports a rung that changes something in the agent. These wait while many agents fail together.
func (r Rung) Acts() bool { return r.Touches() || r == Nudge }

// Tells reports a step that only notifies a human.
func (r Rung) Tells() bool { return r == Escalate || r == AskPhone }

// Ladder is the sequence of steps for one class of stall. If it ends with [Escalate], a human is notified after the step
// before. If its last step [Rung.Starts], it is repeated as long as the class's budget has room, and a human is notified
// then. After any other end a human is notified.
type Ladder []Rung

// Fault says why a ladder cannot be climbed; "": it can.
func (l Ladder) Fault() string {
	switch at := slices.Index(l, Escalate); {
	case len(l) == 0:
		return fmt.Sprintf("it names no step; name at least %q", Escalate)
	case at >= 0 && at < len(l)-1:
		return fmt.Sprintf("%q comes after %q, which must be the last step", l[at+1], Escalate)
	}
	return ""
}

// Capabilities are what can be done with one agent, by its declaration and its state. The zero value can only be watched
// and reported.
type Capabilities struct {
	Nudge   bool // there is a way to put a line into its session
	Ask     bool // what it asks is put to a human, by a message or at its own terminal
	Reached bool // a message reaches somebody
	// RestartServer says that the MCP server which it waits for is known, and may be restarted.
	RestartServer bool
	KillTool      bool // the processes of its open tool are known
	Interrupt     bool // its process is known, and ours to signal
	Resume        bool // a command goes on with its session, which is known
	Restart       bool // a command starts it
	Fresh         bool // a command starts a new session of it with a summary
	Ended         bool // its process has ended
	// UnderWay says that it may be in the middle of something, which the trouble does not justify ending.
	UnderWay bool
}

// PIVCapabilities are those of an agent of a PIV registry: it can be restarted.
func PIVCapabilities() Capabilities { return Capabilities{Reached: true, Restart: true} }

// ability is whether a step is possible, and what it lacks otherwise.
type ability struct {
	can   bool
	lacks string
}

// abilities are those of the steps that not every agent has. Watching, waiting and notifying are always possible.
func (c Capabilities) abilities() map[Rung]ability {
	return map[Rung]ability{
		Nudge:         {c.Nudge, "no nudge command is declared"},
		AskPhone:      {c.Ask, "no remote user can answer"},
		RestartServer: {c.RestartServer, "its MCP server may not be restarted, or is at work for another client"},
		KillTool:      {c.KillTool, "no process of its tool is known"},
		Interrupt:     {c.Interrupt, "its process is not known, or an interrupt would end it"},
		Resume:        {c.Resume, "no resume command is declared, or its session is not known"},
		Restart:       {c.Restart, "no start command is declared"},
		Fresh:         {c.Fresh, "no start command takes a {text}"},
	}
}

// Can reports whether a step is possible.
func (c Capabilities) Can(r Rung) bool { return c.Lacks(r) == "" }

// leftOut says why a step is not done or has no effect; "": it is done.
func (c Capabilities) leftOut(r Rung) string {
	switch {
	case !c.Can(r):
		return fmt.Sprintf("%s was left out: %s", r, c.Lacks(r))
	case r.Tells() && !c.Reached:
		return fmt.Sprintf("%s has no effect: no channel is set up", r)
	}
	return ""
}

// Lacks says why a step is not possible, in words that follow its name; "": it is.
func (c Capabilities) Lacks(r Rung) string {
	its, special := c.abilities()[r]
	busy := c.UnderWay && (r.Starts() || r == KillTool)
	switch {
	case busy:
		return "it may be in the middle of something"
	case !special || its.can:
		return ""
	case c.Ended && (r == Nudge || r == Interrupt || r == KillTool || r == RestartServer):
		return "its process has ended"
	}
	return its.lacks
}

// Preamble is the first instruction of a started agent.
type Preamble string

// The preambles.
const (
	// NoPreamble: nothing.
	NoPreamble Preamble = ""
	// Autonomous: no user is present, continue alone.
	Autonomous Preamble = "autonomous"
	// NoQuestions: it asked nevertheless, and must not (PIV-7: the second occurrence).
	NoQuestions Preamble = "no_questions"
)

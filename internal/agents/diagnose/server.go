package diagnose

import "fmt"

// ServerCall is a call of the agent that an MCP server has not answered. outlive keeps the server alive, and tells so.
type ServerCall struct {
	Server string `json:"server"`
	Tool   string `json:"tool,omitempty"`
	Age    Span   `json:"age,omitzero"` // since it came
	// Still is the time since the server got the call or last reported progress of it.
	Still   Span          `json:"still,omitzero"`
	Trouble ServerTrouble `json:"trouble,omitempty"`
	Why     string        `json:"why,omitempty"`    // the trouble in words
	Remote  bool          `json:"remote,omitempty"` // the server has no process on this machine
	// WorkKnown says that the server's processes are watched; Idle is the time since one of them worked.
	WorkKnown bool `json:"work_known,omitempty"`
	Idle      Span `json:"idle,omitzero"`
}

// ServerTrouble is why a server does not work. "": it works, as far as is known.
type ServerTrouble string

// The troubles of a server.
const (
	ServerHangs  ServerTrouble = "hung"   // asked for a sign of life, it gave none
	ServerPaused ServerTrouble = "paused" // it has crashed too often, and is started later
	ServerFailed ServerTrouble = "failed" // it cannot be started
	ServerLogin  ServerTrouble = "login"  // somebody must log in
)

// NeedsPerson reports trouble that a restart does not fix.
func (t ServerTrouble) NeedsPerson() bool { return t != "" && t != ServerHangs }

func (c ServerCall) text() string {
	return fmt.Sprintf("it has waited %s for %s of the MCP server %s", c.Age.brief(), c.Tool, c.Server)
}

// stalled reports whether the server does not work on the call, and why that is said or not.
func (c ServerCall) stalled(p Policy) answer {
	switch {
	case c.Trouble.NeedsPerson():
		return no("%s, which cannot be used: %s", c.text(), c.Why)
	case c.Trouble == ServerHangs:
		return yes(c.Age, "%s, which neither answers nor works: %s", c.text(), c.Why)
	case c.Still <= p.Tool:
		return no("%s", c.text())
	case c.WorkKnown && c.Idle <= p.Tool:
		return no("%s, which has last worked %s", c.text(), ago(c.Idle))
	}
	a := yes(c.Still, "%s, which has reported no progress and done no work for %s (limit %s)", c.text(), c.Still.brief(), p.Tool)
	if !c.WorkKnown && !c.Remote {
		return a.unless("it is not known whether the server uses the processor")
	}
	return a
}

// served returns a call that a kept server goes on with: it has reported progress, or its processes have worked, more recently
// than a tool may do nothing; nil: there is none.
func (e *Evidence) served(p Policy) *ServerCall {
	for i := range e.Servers {
		c := &e.Servers[i]
		if c.Trouble == "" && (c.Still <= p.Tool || c.WorkKnown && c.Idle <= p.Tool) {
			return c
		}
	}
	return nil
}

// StalledCall returns the index in Servers of the call that the verdict server_hung is about; -1: there is none.
func (e *Evidence) StalledCall(p Policy) int {
	p = p.filled()
	for i, c := range e.Servers {
		if c.stalled(p).held {
			return i
		}
	}
	return -1
}

// serverHung holds when the agent waits for a server that does not work: it says so itself, or the call has not gone on for
// longer than a tool may take. Silence alone is not sufficient: the server's processes must have been idle, too.
func serverHung(e *Evidence, p Policy) answer {
	if e.promised() {
		return no("it has announced a silence of %s", e.Beat.Next)
	}
	if at := e.StalledCall(p); at >= 0 {
		a := e.Servers[at].stalled(p)
		if a.doubt == "" {
			a.doubt = e.mute()
		}
		return a
	}
	if len(e.Servers) > 0 {
		return no("%s", e.Servers[0].stalled(p).why)
	}
	return no("it waits for no call of a server that outlive keeps alive")
}

// waitingServer holds when the agent waits for a server that only a person can mend.
func waitingServer(e *Evidence, _ Policy) answer {
	for _, c := range e.Servers {
		if c.Trouble.NeedsPerson() {
			return yes(c.Age, "%s, which cannot be used: %s", c.text(), c.Why)
		}
	}
	return no("it waits for no server that needs a person")
}

// Waits says in words what the agent waits for, call by call, the oldest first.
func (e *Evidence) Waits() (list []string) {
	for _, c := range e.Servers {
		text := fmt.Sprintf("%s of the MCP server %s, for %s", c.Tool, c.Server, c.Age.brief())
		if c.Trouble != "" {
			text += fmt.Sprintf(" (%s: %s)", c.Trouble, c.Why)
		}
		list = append(list, text)
	}
	return list
}

package diagnose

// words describe a class to the agent itself. They are fixed texts: an agent must not take the output of a tool, a
// model or a file for its user's words.
var words = map[Class]string{
	Crashed:           "its process has ended",
	ExitedUnfinished:  "its process has ended before the work was done",
	StartupBlocked:    "it does not come up",
	Stopped:           "its process was stopped",
	WaitingPermission: "it waits for a permission",
	WaitingQuestion:   "it waits for an answer",
	WaitingOther:      "it waits for a human",
	APIBackoff:        "its model answers with errors",
	RateLimited:       "a usage limit is reached",
	AuthExpired:       "its login has expired",
	HumanRequired:     "it has met a failure that needs a human",
	ExecutionError:    "its turn has ended with an error",
	ContextExhausted:  "its conversation has become too long",
	BudgetExceeded:    "it has used up its budget",
	ModelSilent:       "its model does not answer",
	ToolHung:          "a tool does not come to an end",
	ServerHung:        "an MCP server does not answer",
	WaitingServer:     "an MCP server cannot be used",
	TaskDead:          "the background task that it waits for is dead, and it is not notified of that",
	Loop:              "it does the same again and again",
	NoProgress:        "it makes no progress",
	HeartbeatLost:     "it gives no sign of life",
	Orphaned:          "what has started it is gone",
}

// Words returns a class's description for the agent, which is always a fixed text.
func (c Class) Words() string {
	if w, ok := words[c]; ok {
		return w
	}
	return "something is wrong with it"
}

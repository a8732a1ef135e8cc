package diagnose

// words say what a class means to the agent that is told of it. They are fixed texts: nothing that a tool, a model or a
// file has said may stand in what an agent takes for its user's word.
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
	TaskDead:          "the background task that it waits for is dead, and it is not notified of that",
	Loop:              "it does the same again and again",
	NoProgress:        "it makes no progress",
	HeartbeatLost:     "it gives no sign of life",
	Orphaned:          "what has started it is gone",
}

// Words are the class in plain words, and never anything else than a fixed text.
func (c Class) Words() string {
	if w, ok := words[c]; ok {
		return w
	}
	return "something is wrong with it"
}

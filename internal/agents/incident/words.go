package incident

import (
	"cmp"
	"strings"
)

// classWords are the classes for people; others are shown with spaces instead of underscores.
var classWords = map[string]string{
	"waiting_permission": "waits for a permission", "waiting_question": "waits for an answer",
	"waiting_other": "waits for you at its terminal", "startup_blocked": "is stuck while starting", "stopped": "has a stopped process",
	"crashed": "has crashed", "exited_unfinished": "has ended with its work undone",
	"model_silent": "gets no answer from its model", "tool_hung": "hangs in a tool", "loop": "repeats itself",
	"server_hung": "waits for an MCP server that hangs", "waiting_server": "waits for an MCP server that you must mend",
	"server_paused": "is paused after too many crashes", "server_failed": "cannot be started", "server_login": "wants a login",
	"machine_gone": "is gone from the fleet", "machine_cut_off": "is cut off from the fleet, or off", "machine_silent": "is silent in the fleet",
	"shared_cause":         "stops agents of the fleet",
	"background_task_dead": "waits for a background task that is dead",
	"no_progress":          "makes no progress", "heartbeat_lost": "shows no sign of life", "rate_limited": "is rate limited",
	"api_backoff": "gets errors from its model's service", "api_failed": "cannot reach its model", "auth_expired": "is logged out",
	"credit_exhausted": "has no credit left", "budget_exceeded": "is over its budget",
	"execution_error": "has an error", "human_required": "needs you", "context_exhausted": "is out of context",
	"orphaned": "goes on without its terminal", Mass: "fail together",
	"unreadable": "has an entry that cannot be read", "vanished": "has vanished from the registry",
	"unsure": "cannot be told from another process", "manifest": "has a manifest that cannot be read",
	"contradiction": "shows signs that contradict each other", "no_evidence": "shows nothing at all",
	"orchestrator_crashed": "has crashed", "session_hung": "hangs", "agent_waiting_for_input": "waits for a human",
	"monitor_blind": "cannot be judged",
}

// restWords are the words for classes in which nothing is wrong. No messages are sent about them.
var restWords = map[string]string{
	"working": "works", "healthy": "works", "idle": "has nothing to do", "done": "has finished", "complete": "has finished",
	"paused": "is paused", "not_watched": "is not watched", "starting": "is starting", "unobserved": "runs",
	"grace": "is not judged now", "lost": "cannot be judged",
}

// Words describes a class for people, to follow an agent's name, as in "has crashed".
func Words(class string) string {
	if w := cmp.Or(classWords[class], restWords[class]); w != "" {
		return w
	}
	return strings.ReplaceAll(class, "_", " ")
}

// doneWords describe what was done about an agent, by the ladder's rungs.
var doneWords = map[string]string{
	"observe": "looked again", "hold": "waited", "nudge": "told to go on", "ask_phone": "its question was put into a message", "kill_tool": "its tool was ended", "restart_server": "its MCP server was restarted",
	"interrupt": "interrupted", "resume": "resumed", "restart": "restarted", "fresh": "a new session was begun",
}

// DoneWords describes a rung of the ladder in the past tense, such as "restarted".
func DoneWords(rung string) string { return cmp.Or(doneWords[rung], rung) }

// doWords describe the rungs as actions to come.
var doWords = map[string]string{
	"observe": "look again", "hold": "wait", "nudge": "tell it to go on", "ask_phone": "ask you", "kill_tool": "end its tool", "restart_server": "restart its MCP server",
	"interrupt": "interrupt it", "resume": "resume it", "restart": "restart it", "fresh": "begin a new session", "escalate": "tell you",
	"wait": "nothing now", "skip": "nothing now", "restart_with_preamble": "restart it and tell it to ask nothing",
}

// DoWords describes an action to come, a rung of the ladder or a word of the PIV supervisor's records, such as
// "restart it".
func DoWords(action string) string { return cmp.Or(doWords[action], action) }

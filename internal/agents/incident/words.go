package incident

import "cmp"

// restWords are the words for classes in which nothing is wrong. No messages are sent about them.
var restWords = map[string]string{
	"working": "works", "healthy": "works", "idle": "has nothing to do", "done": "has finished", "complete": "has finished",
	"paused": "is paused", "not_watched": "is not watched", "starting": "is starting", "unobserved": "runs",
	"grace": "is not judged now", "lost": "cannot be judged",
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

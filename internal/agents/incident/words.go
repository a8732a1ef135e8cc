package incident

import "cmp"

// restWords are the words for classes in which nothing is wrong. No messages are sent about them.
var restWords = map[string]string{
	"working": "works", "healthy": "works", "idle": "has nothing to do", "done": "has finished", "complete": "has finished",
	"paused": "is paused", "not_watched": "is not watched", "starting": "is starting", "unobserved": "runs",
	"grace": "is not judged now", "lost": "cannot be judged",
}

// rungWords are the ladder's rungs in words: what was done, what is to come, and what can be done, as the subject of a sentence.
var rungWords = map[string]struct{ done, do, doing string }{
	"observe":        {"looked again", "look again", ""},
	"hold":           {"waited", "wait", ""},
	"nudge":          {"told to go on", "tell it to go on", "telling it to go on"},
	"ask_phone":      {"its question was put into a message", "ask you", "asking you"},
	"restart_server": {"its MCP server was restarted", "restart its MCP server", "restarting its MCP server"},
	"kill_tool":      {"its tool was ended", "end its tool", "ending its tool"},
	"interrupt":      {"interrupted", "interrupt it", "interrupting it"},
	"resume":         {"resumed", "resume it", "resuming it"},
	"restart":        {"restarted", "restart it", "restarting it"},
	"fresh":          {"a new session was begun", "begin a new session", "a new session"},
	"escalate":       {"", "tell you", "telling you"},
	// Of the PIV supervisor's records, and of a monitor that does nothing.
	"wait": {do: "nothing now"}, "skip": {do: "nothing now"}, "restart_with_preamble": {do: "restart it and tell it to ask nothing"},
}

// DoneWords describes a rung of the ladder in the past tense, such as "restarted".
func DoneWords(rung string) string { return cmp.Or(rungWords[rung].done, rung) }

// DoWords describes an action to come, a rung of the ladder or a word of the PIV supervisor's records, such as
// "restart it".
func DoWords(action string) string { return cmp.Or(rungWords[action].do, action) }

// DoingWords describes a rung as the subject of a sentence, such as "restarting it"; "": there are no words for it.
func DoingWords(rung string) string { return rungWords[rung].doing }

package incident

import (
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// todoWords say what the reader of a message should do, by class. They do not mention buttons, which may be missing. Commands
// stand in brackets, so that they can be copied and typed: NAME is the agent's, SERVER the server's.
var todoWords = map[string]string{
	"crashed":              "find out why it has ended (outlive agent logs NAME), then start it again",
	"exited_unfinished":    "look at what it left undone, then start it again, or leave it",
	"startup_blocked":      "look at its terminal: most often a dialog waits there",
	"stopped":              "let it go on, or end it",
	"waiting_question":     "answer HOW",
	"waiting_other":        "answer the dialog at its terminal",
	"human_required":       "supply what it lacks, then start it again",
	"auth_expired":         "log in again where it runs, then start it again; until then nothing is started",
	"credit_exhausted":     "add credit to the account, then start it again; until then nothing is started",
	"rate_limited":         "nothing, if it may wait; it goes on by itself when the limit is lifted",
	"api_backoff":          "nothing at once; see whether the model's service is up",
	"api_failed":           "see whether the network and the model's service are up, then resume it",
	"context_exhausted":    "start a fresh session, with what the old one has found out",
	"execution_error":      "read the error, fix its cause, then start it again",
	"model_silent":         "look at its session; if it hangs, start it again",
	"tool_hung":            "look at what the tool waits for; end it, or start the agent again",
	"server_hung":          "see what its MCP server does (outlive status); restart that, or the agent",
	"waiting_server":       "mend its MCP server (outlive status); it goes on by itself then",
	"server_paused":        "see why it ends (outlive logs SERVER), then restart it (outlive restart SERVER)",
	"server_failed":        "see why it does not start (outlive logs SERVER), then restart it (outlive restart SERVER)",
	"server_login":         "log in where it runs (outlive status); it goes on by itself then",
	"machine_gone":         "start its member again on that machine (outlive fleet join); what runs there goes on without it",
	"machine_cut_off":      "see whether that machine is on and reaches the hub; what runs there goes on, and joins again by itself",
	"machine_silent":       "see whether that machine is on, reaches the hub, and runs its member (outlive fleet join)",
	"shared_cause":         "see whether the service is up, and whether the account has a limit or no credit left; the agents go on by themselves, or say what they lack",
	"background_task_dead": "ask it in its session to go on without the task, or start the agent again",
	"loop":                 "look at its session, and tell it another way",
	"no_progress":          "nothing, if it may take its time; else look at its session",
	"heartbeat_lost":       "see whether it still works; if not, start it again",
	"budget_exceeded":      "decide whether it may go on: raise max_cost_usd, or stop it",
	"orphaned":             "see whether it still works; if not, start it again",
	"unreadable":           "correct its entry in the registry",
	"vanished":             "put its entry back, or end it; it may still run",
	"unsure":               "see which process is the agent's; nothing is ended or started until that is clear",
	"manifest":             "correct the manifest, or remove it",
	"contradiction":        "see whether it runs; nothing is ended or started until that is clear",
	"no_evidence":          "see whether it runs, and what of it is watched (outlive agent show NAME)",
	"waiting_permission":   "allow or deny it, here if there are buttons for that, or at its terminal",
}

// withoutTerminal are the same where the agent is known to have no terminal, as far as they differ.
var withoutTerminal = map[string]string{
	"startup_blocked":    "see what it has written; it has no terminal, so that a dialog would wait in vain",
	"waiting_other":      "give it what it lacks, then start it again; it has no terminal to answer at",
	"waiting_permission": "allow or deny it, here if there are buttons for that; it has no terminal",
}

// noAnswer is what to do about an agent that asks and can be given no answer.
const noAnswer = "it can be given no answer, since it has no terminal and no nudge command: end it (outlive agent stop NAME), " +
	"declare one of them below its start:, and start it again (outlive agent start NAME)"

// Ways are those in which a person reaches an agent. The zero value: each, as far as is known.
type Ways struct {
	// Joinable says that outlive agent attach can join its terminal.
	Joinable bool `json:"joinable,omitempty"`
	// NoTerminal says that it has none.
	NoTerminal bool `json:"no_terminal,omitempty"`
	// NoNudge says that no declared command hands it a text.
	NoNudge bool `json:"no_nudge,omitempty"`
	// NoReplies says that no channel on which people are told takes replies.
	NoReplies bool `json:"no_replies,omitempty"`
}

// answers are the ways to answer its question; "": there is none.
func (w Ways) answers() string {
	var ways []string
	if !w.NoNudge && !w.NoReplies {
		ways = append(ways, "by a reply to this message")
	}
	if !w.NoTerminal {
		ways = append(ways, "at its terminal")
	}
	if !w.NoNudge && w.NoReplies {
		ways = append(ways, "by a text (outlive agent say NAME TEXT)")
	}
	return strings.Join(ways, ", or ")
}

// advice is what a person should do about a class of trouble, as far as that is possible.
func advice(class string, w Ways) string {
	text := todoWords[class]
	switch how, other := w.answers(), withoutTerminal[class]; {
	case class == "waiting_question" && how == "":
		text = noAnswer
	case class == "waiting_question":
		text = strings.Replace(text, "HOW", how, 1)
	case w.NoTerminal && other != "":
		text = other
	}
	if w.Joinable {
		text = joinWords.Replace(text)
	}
	return text
}

// joinWords add how to join a terminal.
var joinWords = strings.NewReplacer("its terminal", "its terminal (outlive agent attach NAME)", "its session", "its session (outlive agent attach NAME)")

// elsewhere rewords texts of a message for other places.
var elsewhere = strings.NewReplacer("a reply to this message", "a reply to the message that told you",
	"here if there are buttons for that", "in the message that told you, if it has buttons for that")

// ToDo says what a person should do about an agent in a class of trouble, for use outside of messages. The command that
// joins a terminal has its own place there. "": unknown. agent is what names it in a command.
func ToDo(class, agent string, w Ways) string {
	w.Joinable = false
	return strings.ReplaceAll(elsewhere.Replace(advice(class, w)), "NAME", agent)
}

// plainWord needs no quotes in any shell.
var plainWord = lazyregexp.New(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Quoted is a word as it can be pasted into a shell.
func Quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// todo says what a person should do now. "": nothing.
func (i *Incident) todo(p Policy) string {
	if i.State == Resolved || i.Key.Class == "waiting_permission" && i.Facts.Unasked == "" && !i.Facts.NoReplies { // title and buttons do
		return ""
	}
	if i.Facts.ToDo != "" {
		return i.Facts.ToDo
	}
	return strings.NewReplacer("NAME", Quoted(i.Key.Agent)+p.Home, "SERVER", Quoted(i.Key.Server())).Replace(advice(i.Key.Class, i.Facts.Ways))
}

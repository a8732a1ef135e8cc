package incident

import (
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

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
	c := classes[class]
	text := c.todo
	switch how := w.answers(); {
	case class == "waiting_question" && how == "":
		text = noAnswer
	case class == "waiting_question":
		text = strings.Replace(text, "HOW", how, 1)
	case w.NoTerminal && c.piped != "":
		text = c.piped
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

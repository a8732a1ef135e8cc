package agentcli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

const (
	textKept  = 600 // bytes of a session's last text, or of an error
	inputKept = 400 // bytes of a call's arguments
)

// excerpt returns the beginning of text: at most limit bytes, cut between characters.
func excerpt(text string, limit int) string { return logline.Head(trimmed(text), limit) }

// ending returns the end of text, where an agent's question is.
func ending(text string, limit int) string { return logline.Tail(trimmed(text), limit) }

func trimmed(text string) string { return strings.ToValidUTF8(strings.TrimSpace(text), "�") }

// answers matches the possible answers after a question, as in "Go on? (y/n)".
var answers = lazyregexp.New(`[(\[（][^()\[\]（）\n]*[)\]）][.!]?$`)

// lastSentence matches the last sentence of a text that has no question mark there.
var lastSentence = lazyregexp.New(`(?:^|[.!?:;]\s+|\n\s*)([^.!?\n]+)[.!]*$`)

// demands are words of a sentence that expects an answer, and polite those of a closing phrase.
var (
	demands = lazyregexp.New(`(?i)\b(?:let me know|tell me) (?:which|what|where|whether)\b|\bplease (?:confirm|choose|decide|specify|advise)\b`)
	polite  = lazyregexp.New(`(?i)\bwhat (?:you think|else)\b|\bif (?:you|there|anything)\b`)
)

// asks reports whether a text ends with a question. It may be emphasised, list its answers, or have no question mark,
// as in "Please let me know which one."
func asks(text string) bool {
	text = unadorned(ending(text, textKept))
	if m := lastSentence.FindStringSubmatch(text); m != nil && demands.MatchString(m[1]) && !polite.MatchString(m[1]) {
		return true
	}
	return isQuestion(text) || isQuestion(unadorned(answers.ReplaceAllString(text, ""))) || isQuestion(strings.TrimRight(text, ")]）"))
}

func unadorned(text string) string { return strings.TrimRight(text, " \t\r\n*_`\"'”’»") }

func isQuestion(text string) bool {
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？")
}

// telling are the arguments that say most of a call, the first that is there.
var telling = []string{"command", "cmd", "question", "questions", "plan", "file_path", "filePath", "notebook_path", "path", "url", "query", "pattern", "prompt", "description"}

// inputText is what matters of a call's arguments.
func inputText(args json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) == nil {
		for _, name := range telling {
			if text := plainText(members[name]); text != "" {
				return excerpt(text, inputKept)
			}
		}
	}
	if text := plainText(args); text != "" {
		return excerpt(text, inputKept)
	}
	return excerpt(compact(args), inputKept)
}

// plainText is the text of an argument: a string, words, or a list of questions.
func plainText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	var words []string
	if json.Unmarshal(value, &words) == nil {
		return strings.Join(words, " ")
	}
	var questions []struct {
		Question string `json:"question"`
	}
	if json.Unmarshal(value, &questions) != nil {
		return ""
	}
	var all []string
	for _, q := range questions {
		if q.Question != "" {
			all = append(all, q.Question)
		}
	}
	return strings.Join(all, "\n")
}

// Members are the members of an object in JSON. Of one that was cut they are those that are complete; nil: it is no object.
func Members(text []byte) map[string]json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	m := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break
		}
		m[fmt.Sprint(name)] = value
	}
	return m
}

// compact is JSON without its spaces, or the text itself where it is none.
func compact(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return string(value)
	}
	if b.String() == "{}" || b.String() == "null" {
		return ""
	}
	return b.String()
}

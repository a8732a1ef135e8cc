package notify

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// MessageLimit is the length limit of a Telegram message, in UTF-16 code units, and of any channel without its own.
const MessageLimit = 4096

// Message is a message for a human.
type Message struct {
	// Key identifies the message: it is sent once to a channel. It is never empty.
	Key string `json:"key"`
	// Thread names the one message that all with the same Thread are states of: the first is sent, later ones change it.
	// "": nothing will change this one. A threaded message is one message, cut where it is too long; others are split.
	Thread string `json:"thread,omitempty"`
	// Text is what it says.
	Text Text `json:"text"`
	// Exact is a part of Text that must be shown in full, such as a command that needs permission. If a secret was
	// removed from it, or the message was cut, the buttons that need it are left out, and the message says why. "":
	// none.
	Exact string `json:"exact,omitempty"`
	// Buttons are shown below, in rows, where the channel has buttons. A change without them takes them away.
	Buttons [][]Button `json:"buttons,omitempty"`
	// Topic is where in the chat it goes, with a question the topic of that. 0: where the channel's messages go.
	Topic int `json:"topic,omitempty"`
	// Asked says that a person waits for it: it goes before messages that nobody has asked for.
	Asked bool `json:"asked,omitempty"`
	// Line is the message in a list with others of its kind. The zero value: it is always a message of its own.
	Line Line `json:"line,omitzero"`
	// Minor is a change without a message of its own: channels that cannot edit messages skip it.
	Minor bool `json:"minor,omitempty"`
	// Follows says that an earlier state of the thread was sent in a message that cannot be edited. The outbox sets it.
	Follows bool `json:"follows,omitempty"`
}

// Button is one answer that a human can give.
type Button struct {
	Label    string   `json:"label"`
	Callback Callback `json:"callback"`
	// NeedsExact says that the button requires the message's Exact to be shown in full.
	NeedsExact bool `json:"needs_exact,omitempty"`
}

// Callback is the content of a button. As text it is v1:<incident>:<verb>:<nonce>, within Telegram's limit of 64 bytes.
type Callback struct {
	Incident string `json:"incident"` // 8 letters or digits
	Verb     string `json:"verb"`     // 1 to 24 of a-z, 0-9, - and _
	Nonce    string `json:"nonce"`    // 6 random letters or digits: known only from the button
}

// ErrCallback says that text is not a callback of ours, or a callback cannot be put into text.
var ErrCallback = errors.New("no callback")

// callbackForm is what a callback is as text.
var callbackForm = lazyregexp.New(`^v1:([0-9A-Za-z]{8}):([0-9A-Za-z_-]{1,24}):([0-9A-Za-z]{6})$`)

// Valid returns an [ErrCallback] when c does not have the form of one.
func (c Callback) Valid() error {
	_, err := ParseCallback(c.String())
	return err
}

// String is the callback as a channel carries it.
func (c Callback) String() string { return "v1:" + c.Incident + ":" + c.Verb + ":" + c.Nonce }

// ParseCallback parses the result of [Callback.String]; anything else is an [ErrCallback].
func ParseCallback(s string) (Callback, error) {
	parts := callbackForm.FindStringSubmatch(s)
	if parts == nil {
		return Callback{}, fmt.Errorf("%w: %.80q", ErrCallback, s)
	}
	return Callback{Incident: parts[1], Verb: parts[2], Nonce: parts[3]}, nil
}

// check returns what is wrong with a new message.
func (m Message) check() error {
	if m.Key == "" {
		return errors.New("a message without a key")
	}
	for _, row := range append(slices.Clone(m.Buttons), m.Line.Buttons) {
		for _, b := range row {
			if strings.TrimSpace(b.Label) == "" {
				return fmt.Errorf("%s: a button without a label", m.Key)
			}
			if err := b.Callback.Valid(); err != nil {
				return fmt.Errorf("%s: %w", m.Key, err)
			}
		}
	}
	return nil
}

// redacted is the message without secrets.
func (m Message) redacted() Message {
	m.Text, m.Line.Text = m.Text.redacted(), Text{Body: m.Line.Text}.redacted().Body
	rows := make([][]Button, len(m.Buttons))
	for i, row := range m.Buttons {
		rows[i] = redactedRow(row)
	}
	m.Buttons, m.Line.Buttons = rows, redactedRow(m.Line.Buttons)
	if !strings.Contains(m.Text.Body, m.Exact) {
		m.Exact = "" // it had a secret: it is not stored, and buttons that need it are left out below
	}
	return m
}

func redactedRow(row []Button) (list []Button) {
	for _, b := range row {
		b.Label = Redact(b.Label)
		list = append(list, b)
	}
	return list
}

// inexact replaces buttons that were left out.
const inexact = "\n\nThis cannot be allowed from here, because not all of it can be shown in one message. Decide in the agent's terminal."

// proven is the message, of at most limit UTF-16 code units, without the buttons whose text is not shown in full.
func (m Message) proven(limit int) Message {
	if !m.needsExact() || m.Exact != "" && strings.Contains(m.Text.Fit(limit).Body, m.Exact) {
		return m
	}
	rows := make([][]Button, 0, len(m.Buttons))
	for _, row := range m.Buttons {
		row = slices.DeleteFunc(slices.Clone(row), func(b Button) bool { return b.NeedsExact })
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	m.Buttons, m.Exact = rows, ""
	m.Text = m.Text.Fit(limit - units(inexact))
	m.Text.Write(inexact)
	return m
}

func (m Message) needsExact() bool {
	for _, row := range m.Buttons {
		if slices.ContainsFunc(row, func(b Button) bool { return b.NeedsExact }) {
			return true
		}
	}
	return false
}

// parts are the messages that m becomes where at most limit UTF-16 code units fit into one.
func (m Message) parts(limit int) []Message {
	if m.Thread != "" || m.needsExact() {
		m = m.proven(limit)
		m.Text = m.Text.Fit(limit)
		return []Message{m}
	}
	var list []Message
	for i, text := range m.Text.Split(limit) {
		part := m
		part.Key, part.Text, part.Buttons = fmt.Sprintf("%s/%d", m.Key, i), text, nil
		list = append(list, part)
	}
	if len(list) > 0 {
		list[len(list)-1].Buttons = m.Buttons
	}
	for i := range list[:max(0, len(list)-1)] {
		list[i].Line, list[i+1].Line = Line{}, Line{} // a part alone is no line
	}
	return list
}

package incident

import (
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// Verb is the action of a button.
type Verb string

// The verbs.
const (
	Ack     Verb = "ack"
	Snooze  Verb = "snooze"
	Details Verb = "details"
	Restart Verb = "restart"
	Resume  Verb = "resume"
	Stop    Verb = "stop"
	Allow   Verb = "allow"
	Deny    Verb = "deny"
)

// Acts reports whether a verb acts on the agent. Its button works once.
func (v Verb) Acts() bool {
	return slices.Contains([]Verb{Restart, Resume, Stop, Allow, Deny}, v)
}

// doing is the answer to the press of a button that acts on the agent.
var doing = map[Verb]string{
	Restart: "It is restarted", Resume: "It is resumed", Stop: "It is stopped", Allow: "Allowed", Deny: "Denied",
}

// anyNonce is on buttons that may be pressed repeatedly. No nonce of the others has a zero.
const anyNonce = "000000"

// buttonsInRow is how many fit side by side on a phone.
const buttonsInRow = 3

func (i *Incident) buttons(p Policy) (list []notify.Button) {
	if i.State == Resolved || i.Facts.Unheard {
		return nil
	}
	for _, v := range []Verb{Allow, Deny, Ack, Restart, Resume, Snooze, Stop, Details} {
		label := strings.ToUpper(string(v[:1])) + string(v[1:])
		shown, b := i.offers(v), notify.Button{Label: label, Callback: notify.Callback{Incident: i.ID, Verb: string(v), Nonce: anyNonce}}
		switch v {
		case Allow, Deny:
			shown, b.NeedsExact = shown && !p.PIV, v == Allow
		case Ack:
			shown = i.State != Acknowledged || i.Snoozed
		case Snooze:
			b.Label += " " + span(snoozeFor)
		case Details:
			shown = !i.Expanded
		}
		if v.Acts() {
			b.Callback.Nonce = i.Nonce
		}
		if shown && b.Callback.Nonce != "" {
			list = append(list, b)
		}
	}
	return list
}

// keyboard is the buttons in rows.
func (i *Incident) keyboard(p Policy) [][]notify.Button {
	return slices.Collect(slices.Chunk(i.buttons(p), buttonsInRow))
}

// offers reports whether a verb makes sense for the incident, even if its button has no nonce.
func (i *Incident) offers(v Verb) bool {
	switch v {
	case Allow:
		return i.Facts.asks()
	case Deny:
		return i.Facts.Request != ""
	case Restart:
		return i.Facts.Restart
	case Resume:
		return i.Facts.Resume
	case Stop:
		return i.Facts.Stop
	case Ack, Snooze, Details:
		return true
	}
	return false
}

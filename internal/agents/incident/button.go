package incident

import "slices"

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

// labels are the buttons' texts.
var labels = map[Verb]string{
	Ack: "Ack", Snooze: "Snooze", Details: "Details", Restart: "Restart", Resume: "Resume", Stop: "Stop",
	Allow: "Allow", Deny: "Deny",
}

// doing is the answer to the press of a button that acts on the agent.
var doing = map[Verb]string{
	Restart: "It is restarted", Resume: "It is resumed", Stop: "It is stopped", Allow: "Allowed", Deny: "Denied",
}

// Button is a button of a message.
type Button struct {
	Verb  Verb
	Label string
	Nonce string // one-time nonce; "": it can be pressed repeatedly
	// NeedsExact says that the button is shown only if the message shows all of its Exact.
	NeedsExact bool
}

func (i *Incident) buttons(p Policy) []Button {
	if i.State == Resolved || i.Facts.Unheard {
		return nil
	}
	var verbs []Verb
	for _, v := range []Verb{Allow, Deny} {
		if i.offers(v) && !p.PIV {
			verbs = append(verbs, v)
		}
	}
	if i.State != Acknowledged || i.Snoozed {
		verbs = append(verbs, Ack)
	}
	for _, v := range []struct {
		verb Verb
		can  bool
	}{
		{Restart, i.Facts.Restart}, {Resume, i.Facts.Resume}, {Snooze, true}, {Stop, i.Facts.Stop}, {Details, !i.Expanded},
	} {
		if v.can {
			verbs = append(verbs, v.verb)
		}
	}
	var list []Button
	for _, v := range verbs {
		b := Button{Verb: v, Label: labels[v], NeedsExact: v == Allow}
		if v == Snooze {
			b.Label += " " + span(snoozeFor)
		}
		if v.Acts() {
			if b.Nonce = i.Nonce; b.Nonce == "" {
				continue
			}
		}
		list = append(list, b)
	}
	return list
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

package incident

import (
	"cmp"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// askTogether is what is so of each agent in a list of requests.
const askTogether = "agents wait for a permission"

// lineLimit is how many characters of its details a line shows.
const lineLimit = 160

// line is a request for a permission as a part of a list, since agents often ask at the same moment. The list has those of one kind,
// and title is what is so of each. Other trouble that agents have together is one incident, see [Mass].
func (i *Incident) line(p Policy, now time.Time, kind, title string) notify.Line {
	if p.PIV || i.Key.Class != "waiting_permission" {
		return notify.Line{}
	}
	text := i.Facts.Name
	if status := i.status(p, now); status != plainOpen {
		text += ": " + status
	}
	answered := i.Answered != "" && i.Facts.Request == ""
	if i.State != Resolved && !answered {
		text += ": " + cmp.Or(i.Facts.Input, shorten(i.Facts.Details, lineLimit))
	}
	l := notify.Line{
		Kind: kind, Mark: i.mark(), Title: title, Text: text, Note: "Each in full (outlive agent list" + p.Home + ")",
		Over: i.State == Resolved || answered,
	}
	for _, b := range i.buttons(p) {
		if v := Verb(b.Callback.Verb); v == Allow || v == Deny { // they decide, and say about whom
			b.Label += " " + i.Facts.Name
			l.Buttons = append(l.Buttons, b)
		}
	}
	return l
}

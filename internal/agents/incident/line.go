package incident

import (
	"cmp"
	"time"
)

// Line is a message as a part of a list of those of one kind. The zero value: it is always a message of its own.
type Line struct {
	Kind  string // of those that belong together
	Mark  string // before the title
	Title string // what is so of each, behind their number
	Text  string
	Note  string // below the list
	Over  bool   // the title is not so any more
}

// lineLimit is how many characters of its details a line shows.
const lineLimit = 160

// line is a request for a permission in a list: agents often ask at the same moment. Other trouble that agents have together
// is one incident, see [Mass].
func (i *Incident) line(p Policy, now time.Time, kind, title string) Line {
	if p.PIV || i.Key.Class != "waiting_permission" {
		return Line{}
	}
	text := i.Facts.Name
	if status := i.status(p, now); status != plainOpen {
		text += ": " + status
	}
	answered := i.Answered != "" && i.Facts.Request == ""
	if i.State != Resolved && !answered {
		text += ": " + cmp.Or(i.Facts.Input, shorten(i.Facts.Details, lineLimit))
	}
	return Line{Kind: kind, Mark: i.mark(), Title: title, Text: text, Note: "Each in full (outlive agent list" + p.Home + ")", Over: i.State == Resolved || answered}
}

// The lines of an incident's message, of its reminder, and of its end.
func (i *Incident) lineOpen(p Policy, now time.Time) Line {
	return i.line(p, now, "permission", "agents wait for a permission")
}

func (i *Incident) lineAgain(p Policy, now time.Time) Line {
	return i.line(p, now, "permission again", "agents wait for a permission")
}

func (i *Incident) lineEnded(p Policy, now time.Time) Line {
	l := i.line(p, now, "permission over", "agents work again")
	l.Over = false
	return l
}

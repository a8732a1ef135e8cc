package incident

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// Tally is what was done about one agent in the period of a digest.
type Tally struct {
	Name       string
	Acts       int // nudges, interrupts and starts
	Starts     int // of these: process starts
	Recoveries int // acts that were followed by new evidence
	Told       int // incidents
}

// Digest is the daily summary: minor events, and what was done.
type Digest struct {
	From, To  time.Time
	Incidents []Incident // those open at some time in the period, the oldest first
	Tallies   []Tally
}

// digestLimit is how many incidents a digest lists.
const digestLimit = 30

// Empty reports that there is nothing to report.
func (d Digest) Empty() bool {
	return len(d.Incidents) == 0 && !slices.ContainsFunc(d.Tallies, func(t Tally) bool { return t.Acts+t.Told > 0 })
}

// Message formats the digest. Critical events were reported at once and are only counted.
func (d Digest) Message(p Policy) notify.Message {
	open, critical := 0, 0
	var lines []string
	for _, i := range d.Incidents {
		if i.State != Resolved {
			open++
		}
		if i.critical() {
			critical++
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", p.at(i.Opened, d.To), i.Trouble(), i.status(p, d.To)))
	}
	m := titled(fmt.Sprintf("☀️ Digest since %s", p.at(d.From, d.To)))
	add(&m, "Incidents", fmt.Sprintf("%d, %d of them critical, %d still open", len(d.Incidents), critical, open))
	for _, t := range d.Tallies {
		if t.Acts+t.Told > 0 {
			add(&m, t.Name, fmt.Sprintf("%d steps taken, %d of them starts; worked again %d×; you were told %d×", t.Acts, t.Starts, t.Recoveries, t.Told))
		}
	}
	if more := len(lines) - digestLimit; more > 0 {
		lines = append(lines[:digestLimit], fmt.Sprintf("and %d more", more))
	}
	addBody(&m, strings.Join(lines, "\n"))
	return m
}

package cli

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
)

// toldWhom says who was notified of an open incident, and by which channels that fails, and why.
func toldWhom(view monitor.View, i incident.Incident) string {
	failing := ""
	for _, u := range view.Unsent[i.ID] {
		failing += "; not by " + u.Channel + ": " + u.Error + nextTry(u.Next, view.At)
	}
	switch {
	case i.State == incident.Acknowledged:
		return "acknowledged by " + i.AckedBy + ", no reminders until " + clockOf(i.AckedUntil, view.At)
	case i.NotifiedAt.IsZero() && i.Facts.Shared != "":
		return "the fleet tells of it"
	case i.NotifiedAt.IsZero() && i.Facts.Severity == incident.Info:
		return "nobody is told: it stands in the daily summary"
	case i.NotifiedAt.IsZero():
		return "nobody could be told yet" + failing
	case i.State == incident.Expired:
		return "you were told at " + clockOf(i.NotifiedAt, view.At) + ", and nobody has answered" + failing
	}
	return "you were told at " + clockOf(i.NotifiedAt, view.At) + failing
}

// nextTry is when a message is tried again.
func nextTry(at, now time.Time) string {
	switch {
	case at.IsZero():
		return "; it is not tried again"
	case !at.After(now):
		return ""
	}
	return ", tried again at " + at.Local().Format("15:04:05")
}

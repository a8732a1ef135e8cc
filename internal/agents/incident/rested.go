package incident

import "github.com/outlive-mcp/outlive/internal/agents/notify"

// Work says what is known about the work of an agent that has stopped working.
type Work uint8

// The values of Work.
const (
	WorkUnknown Work = iota // it is not configured how finished work is recognised
	WorkLeft                // the mark of finished work is missing
	WorkDone
)

// Rested is the message that an agent has finished, or rests. It needs no action. last is the agent's last text.
func Rested(name string, work Work, details, last string) notify.Message {
	titles := map[Work]string{WorkUnknown: "⏸ " + name + " rests", WorkLeft: "⏸ " + name + " rests with work left", WorkDone: "✅ " + name + " has finished"}
	m := titled(titles[work])
	add(&m, "Details", shorten(details, detailsLimit))
	addBody(&m, shorten(last, bodyLimit))
	return m
}

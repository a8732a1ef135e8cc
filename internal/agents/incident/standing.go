package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// Standing is the present state of one agent, for the answer to /status.
type Standing struct {
	Name     string
	State    string    // in words, such as "works" or "waits for an answer"
	Since    time.Time // zero: not known
	Details  string    // what is wrong; "": nothing is
	Waits    bool      // for a human, who was notified
	Terminal string    // the person at its terminal; "": nobody
}

// Limits of the answer, so that it fits into one message.
const (
	standingLimit = 40  // agents
	aboutLimit    = 160 // characters about one agent
)

// Status is the answer to /status: every agent, those that wait for a human first. lost says why the registry cannot
// be used.
func Status(list []Standing, lost string, p Policy, now time.Time) notify.Message {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Standing) int { return cmp.Compare(rank(a), rank(b)) })
	waiting := 0
	for _, s := range list {
		if s.Waits {
			waiting++
		}
	}
	title := fmt.Sprintf("%d agents", len(list))
	switch {
	case len(list) == 0:
		title = "No agent is declared"
	case len(list) == 1:
		title = "1 agent"
	}
	switch {
	case waiting == 1:
		title += ", 1 waits for you"
	case waiting > 1:
		title += fmt.Sprintf(", %d wait for you", waiting)
	case len(list) > 0:
		title += ", nothing waits for you"
	}
	m := titled("📋 " + title)
	for _, s := range list[:min(len(list), standingLimit)] {
		add(&m, s.Name, s.text(p, now))
	}
	if more := len(list) - standingLimit; more > 0 {
		add(&m, "More", fmt.Sprintf("%d others (outlive agent list%s)", more, p.Home))
	}
	add(&m, "Registry", shorten(lost, aboutLimit))
	if waiting > 0 {
		addBody(&m, "Answer in the message that told you of it: by its buttons, or by a reply.")
	}
	return m
}

func rank(s Standing) int {
	switch {
	case s.Waits:
		return 0
	case s.Details != "":
		return 1
	}
	return 2
}

func (s Standing) text(p Policy, now time.Time) string {
	text := s.State
	if !s.Since.IsZero() && now.Sub(s.Since) >= time.Minute {
		text += fmt.Sprintf(" since %s (%s)", p.at(s.Since, now), span(now.Sub(s.Since)))
	}
	if s.Details != "" {
		text += ": " + shorten(s.Details, aboutLimit)
	}
	if s.Terminal != "" {
		text += "; at its terminal: " + s.Terminal
	}
	return text
}

// Help is the answer to a message that the bot does not understand.
func Help() notify.Message {
	m := titled("I watch over your agents, and tell you when one needs you.")
	addBody(&m, `/status: how every agent is, and what waits for you
/status NAME: the same of one
NAME: TEXT gives the agent NAME a text
To answer an agent's question, reply to the message that told you of it. Its buttons do the rest.`)
	return m
}

// Handed reports the outcome of a text that a person has written for an agent.
func Handed(name, outcome string, done bool) notify.Message {
	if done {
		return titled(name + " was given your text")
	}
	return titled(name + " did not get your text: " + outcome)
}

// Unanswered says that the reply to a question has not reached its agent.
func Unanswered(name, outcome string) notify.Message {
	return titled(name + " did not get your answer: " + outcome)
}

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

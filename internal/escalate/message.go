package escalate

import (
	"fmt"
	"strings"
	"time"
)

// Message is what a human is shown. A channel decides how: title and field names in bold, buttons as buttons.
type Message struct {
	Title   string
	Fields  []Field
	Body    string
	Buttons []Button
}

// Field is one line of a message.
type Field struct{ Name, Value string }

// Text is the message without any markup, in S4's form: the title, an empty line, the fields.
func (m Message) Text() string {
	var b strings.Builder
	b.WriteString(m.Title)
	if len(m.Fields) > 0 {
		b.WriteString("\n")
	}
	for _, f := range m.Fields {
		b.WriteString("\n" + f.Name + ": " + f.Value)
	}
	if m.Body != "" {
		b.WriteString("\n\n" + m.Body)
	}
	return b.String()
}

// add appends a field that has a value.
func (m *Message) add(name, value string) {
	if value != "" {
		m.Fields = append(m.Fields, Field{name, value})
	}
}

// How much of a text a message shows, in characters.
const (
	detailsLimit  = 1500 // of the details (S4's monitor: the rest is in the improvement log)
	bodyLimit     = 600  // of the body, and
	expandedLimit = 2000 // after Details was pressed
)

func shorten(s string, limit int) string {
	n := 0
	for at := range s {
		if n++; n > limit {
			return s[:at] + "…"
		}
	}
	return s
}

// span prints a duration as people say it: 45s, 12m, 3h, 1h30m.
func span(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	s := strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// at prints a time as the clock on the wall shows it, with the date if it is not of the same day.
func (p Policy) at(t, now time.Time) string {
	t = t.In(p.location())
	if y, m, d := now.In(p.location()).Date(); t.Day() != d || t.Month() != m || t.Year() != y {
		return t.Format("2006-01-02 15:04")
	}
	return t.Format("15:04")
}

// classWords are the classes for people; others are shown with spaces in place of underscores.
var classWords = map[string]string{
	"waiting_permission": "waits for a permission", "waiting_question": "waits for an answer",
	"waiting_other": "waits for a human", "startup_blocked": "is stuck while starting",
	"crashed": "has crashed", "exited_unfinished": "has ended with its work undone",
	"model_silent": "gets no answer from its model", "tool_hung": "hangs in a tool", "loop": "goes round in circles",
	"no_progress": "makes no progress", "heartbeat_lost": "shows no sign of life", "rate_limited": "is rate limited",
	"api_backoff": "is turned away by its API", "auth_expired": "is logged out", "budget_exceeded": "is over its budget",
	"execution_error": "has an error", "human_required": "needs a human", "context_exhausted": "is out of context",
	"orphaned": "has lost its parent", Mass: "fail together",
	"unreadable": "has an entry that cannot be read", "vanished": "has vanished from the registry",
	"unsure": "may be another process", "manifest": "has a manifest that cannot be read",
	"contradiction": "shows what cannot be true together", "no_evidence": "shows nothing at all",
	"orchestrator_crashed": "has crashed", "session_hung": "hangs", "agent_waiting_for_input": "waits for a human",
	"monitor_blind": "cannot be judged",
}

func words(class string) string {
	if w, ok := classWords[class]; ok {
		return w
	}
	return strings.ReplaceAll(class, "_", " ")
}

// Compose is the message of an incident as it is now.
func Compose(i Incident, p Policy, now time.Time) Message {
	f := i.Facts
	if p.S4 {
		m := S4Message(f)
		m.Buttons = i.buttons(p)
		if i.State != Open && i.State != Notified {
			m.add("Status", i.status(p, now))
		}
		return m
	}
	m := Message{Title: i.mark() + " " + i.title(), Buttons: i.buttons(p)}
	m.add("Status", i.status(p, now))
	m.add("Phase", f.Phase)
	if i.Key.Class != Mass {
		m.add("Stall", strings.TrimSuffix(fmt.Sprintf("%s (%s)", i.Key.Class, f.Stall), " ()"))
	}
	m.add("Agents", strings.Join(f.Members, ", "))
	if !f.Since.IsZero() {
		m.add("Since", fmt.Sprintf("%s (%s)", p.at(f.Since, now), span(max(i.end(now).Sub(f.Since), 0))))
	}
	m.add("Details", shorten(f.Details, detailsLimit))
	m.add("Done", f.Action)
	if f.Max > 0 {
		m.add("Starts", fmt.Sprintf("%d/%d", f.Used, f.Max))
	}
	limit := bodyLimit
	if i.Expanded {
		limit = expandedLimit
	}
	m.Body = shorten(f.Body, limit)
	return m
}

func (i *Incident) mark() string {
	switch {
	case i.State == Resolved:
		return "🟢"
	case i.critical():
		return "🔴"
	case i.Facts.Severity == Warning:
		return "🟠"
	}
	return "🔵"
}

func (i *Incident) title() string {
	if i.Key.Class == Mass {
		return fmt.Sprintf("%d agents of %s %s", len(i.Facts.Members), i.Facts.Name, words(Mass))
	}
	return i.Facts.Name + " " + words(i.Key.Class)
}

func (i *Incident) end(now time.Time) time.Time {
	if i.State == Resolved {
		return i.Resolved
	}
	return now
}

// status is the line that says how far it is.
func (i *Incident) status(p Policy, now time.Time) string {
	var s string
	switch i.State {
	case Open, Notified:
		s = "open"
		if i.Tier > 0 {
			s = fmt.Sprintf("open, tier %d", i.Tier+1)
		}
	case Acknowledged:
		s = fmt.Sprintf("acknowledged by %s %s", i.AckedBy, p.at(i.AckedAt, now))
		if i.Snoozed {
			s = fmt.Sprintf("snoozed by %s", i.AckedBy)
		}
		s += ", until " + p.at(i.AckedUntil, now)
	case Expired:
		s = "open, nobody has answered"
	case Resolved:
		s = strings.TrimSuffix(fmt.Sprintf("resolved %s, %s", p.at(i.Resolved, now), i.Ending), ", ")
	}
	if i.Reopened > 0 {
		s += fmt.Sprintf("; came back %d×", i.Reopened)
	}
	if i.Done.Verb != "" {
		s += fmt.Sprintf("; %s by %s %s", i.Done.Verb, i.Done.By, p.at(i.Done.At, now))
	}
	return s
}

// reminder is the short message that makes a sound again.
func (i *Incident) reminder(p Policy, now time.Time) Message {
	m := Message{Title: fmt.Sprintf("%s Still open, %s: %s", i.mark(), span(now.Sub(i.Opened)), i.title()), Buttons: i.buttons(p)}
	m.add("Details", shorten(i.Facts.Details, bodyLimit))
	return m
}

// ended is the short message that tells of the end.
func (i *Incident) ended(p Policy, now time.Time) Message {
	if p.S4 {
		return S4Recovered(i.Facts, i.Resolved.Sub(i.Opened))
	}
	m := Message{Title: "🟢 Recovered: " + i.Facts.Name}
	m.add("Recovered", strings.TrimSuffix(fmt.Sprintf("%s, %s", p.at(i.Resolved, now), i.Ending), ", "))
	m.add("Stall", fmt.Sprintf("%s, after %s", i.Key.Class, span(i.Resolved.Sub(i.Opened))))
	return m
}

// S4Message is S4's template of an escalation.
func S4Message(f Facts) Message {
	return Message{Title: "🔴 Supervisor Escalation", Fields: []Field{
		{"Project", f.Name}, {"Phase", f.Phase}, {"Stall Type", f.Stall}, {"Details", shorten(f.Details, detailsLimit)},
		{"Action Taken", f.Action}, {"Restarts", fmt.Sprintf("%d/%d", f.Used, f.Max)},
	}}
}

// S4Recovered tells in the same style that it is over.
func S4Recovered(f Facts, after time.Duration) Message {
	return Message{Title: "🟢 Recovered", Fields: []Field{
		{"Project", f.Name}, {"Stall Type", fmt.Sprintf("%s, after %s", f.Stall, after.Round(time.Second))},
	}}
}

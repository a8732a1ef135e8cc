package escalate

import (
	"cmp"
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
	// Exact is the part of Body that wants a permission and must be shown whole. "": nothing does.
	Exact string
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
	besideLimit   = 300  // of the details beside an input that must be shown whole
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
	"waiting_other": "waits for you at its terminal", "startup_blocked": "is stuck while starting", "stopped": "has a stopped process",
	"crashed": "has crashed", "exited_unfinished": "has ended with its work undone",
	"model_silent": "gets no answer from its model", "tool_hung": "hangs in a tool", "loop": "goes round in circles",
	"background_task_dead": "waits for a background task that is dead",
	"no_progress":          "makes no progress", "heartbeat_lost": "shows no sign of life", "rate_limited": "is rate limited",
	"api_backoff": "gets errors from its model's service", "api_failed": "cannot reach its model", "auth_expired": "is logged out",
	"credit_exhausted": "has no credit left", "budget_exceeded": "is over its budget",
	"execution_error": "has an error", "human_required": "needs you", "context_exhausted": "is out of context",
	"orphaned": "goes on without its terminal", Mass: "fail together",
	"unreadable": "has an entry that cannot be read", "vanished": "has vanished from the registry",
	"unsure": "cannot be told from another process", "manifest": "has a manifest that cannot be read",
	"contradiction": "shows signs that contradict each other", "no_evidence": "shows nothing at all",
	"orchestrator_crashed": "has crashed", "session_hung": "hangs", "agent_waiting_for_input": "waits for a human",
	"monitor_blind": "cannot be judged",
}

// Words are a class as people read it behind a name, such as "has crashed".
func Words(class string) string {
	if w, ok := classWords[class]; ok {
		return w
	}
	return strings.ReplaceAll(class, "_", " ")
}

// doneWords are what was done about an agent, by the ladder's rungs.
var doneWords = map[string]string{
	"observe": "looked again", "hold": "waited", "nudge": "told to go on", "ask_phone": "asked you", "kill_tool": "its tool was ended",
	"interrupt": "interrupted", "resume": "resumed", "restart": "restarted", "fresh": "a new session was begun",
}

// DoneWords are a rung of the ladder as people read it, such as "restarted".
func DoneWords(rung string) string { return cmp.Or(doneWords[rung], rung) }

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
	if i.State == Resolved && i.Recovered { // else the title still says it
		m.add("Before", i.trouble())
	}
	if status := i.status(p, now); status != plainOpen { // the message itself says as much
		m.add("Status", status)
	}
	m.add("Phase", f.Phase)
	m.add("Agents", strings.Join(f.Members, ", "))
	m.add("Since", i.since(p, now))
	details := detailsLimit
	if f.asks() {
		details = besideLimit
	}
	m.add("Details", shorten(f.Details, details))
	m.add("Done", f.Action)
	m.add("To do", i.todo())
	if f.Unasked != "" && i.State != Resolved {
		m.add("Allow", "cannot be allowed from here: "+f.Unasked+"; decide in the agent's terminal")
	}
	if f.Unheard && i.State != Resolved {
		m.add("Buttons", "answers are not heard now; on the machine itself, outlive ack and outlive agent work")
	}
	if f.Max > 0 {
		m.add("Starts", fmt.Sprintf("%d of %d", f.Used, f.Max))
	}
	i.fill(&m)
	return m
}

// fill sets the body: an input that wants a permission whole, anything else as far as there is room for it.
func (i *Incident) fill(m *Message) {
	f := i.Facts
	if f.asks() {
		m.Body, m.Exact = f.Input, f.Input
		return
	}
	limit := bodyLimit
	if i.Expanded {
		limit = expandedLimit
	}
	m.Body = shorten(f.Body, limit)
}

func (i *Incident) mark() string {
	switch {
	case i.State == Resolved && i.Recovered:
		return "🟢"
	case i.State == Resolved:
		return "⚪"
	case i.critical():
		return "🔴"
	case i.Facts.Severity == Warning:
		return "🟠"
	}
	return "🔵"
}

// title says how it is now: an incident that has ended is no trouble any more.
func (i *Incident) title() string {
	switch {
	case i.State != Resolved:
		return i.trouble()
	case !i.Recovered:
		return "Over: " + i.trouble()
	case i.Key.Class == Mass:
		shared, _ := i.shared()
		return "Agents" + shared + " work again"
	}
	return i.Facts.Name + " works again"
}

// trouble is what is wrong, or was.
func (i *Incident) trouble() string {
	if i.Key.Class == Mass {
		shared, cause := i.shared()
		return fmt.Sprintf("%d agents%s %s%s", len(i.Facts.Members), shared, Words(Mass), cause)
	}
	return i.Facts.Name + " " + Words(i.Key.Class)
}

// shared is what the agents of a mass share, for people, and the cause of their trouble. The key is "host:" or "account:", a
// name, and the cause behind another colon.
func (i *Incident) shared() (with, cause string) {
	kind, name, _ := strings.Cut(i.Key.Agent, ":")
	if at := strings.LastIndex(name, ":"); at >= 0 {
		name, cause = name[:at], " ("+strings.ReplaceAll(name[at+1:], "_", " ")+")"
	}
	if kind == "account" {
		return " with the account of " + name, cause
	}
	return " on " + name, cause
}

// since is when it began, and how long that is, unless that is nothing.
func (i *Incident) since(p Policy, now time.Time) string {
	if i.Facts.Since.IsZero() {
		return ""
	}
	text := p.at(i.Facts.Since, now)
	if d := i.end(now).Sub(i.Facts.Since); d >= time.Minute {
		text += " (" + span(d) + ")"
	}
	return text
}

func (i *Incident) end(now time.Time) time.Time {
	if i.State == Resolved {
		return i.Resolved
	}
	return now
}

// plainOpen is the status of an incident of which there is nothing more to say.
const plainOpen = "open"

// status is the line that says how far it is.
func (i *Incident) status(p Policy, now time.Time) string {
	var s string
	switch i.State {
	case Open, Notified:
		s = plainOpen
		if i.Tier > 0 {
			s = "open; nobody has answered yet, so others are told too"
		}
	case Acknowledged:
		s = fmt.Sprintf("acknowledged by %s at %s", i.AckedBy, p.at(i.AckedAt, now))
		if i.Snoozed {
			s = fmt.Sprintf("snoozed by %s", i.AckedBy)
		}
		s += ", no reminders until " + p.at(i.AckedUntil, now)
	case Expired:
		s = "open; nobody has answered, and there are no more reminders"
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
	if i.Facts.Request != "" && i.Facts.Request != i.Rung {
		m.Title = fmt.Sprintf("%s %s, another one", i.mark(), i.title())
	}
	if i.Facts.asks() {
		i.fill(&m) // its buttons are here, too
	} else {
		m.add("Details", shorten(i.Facts.Details, bodyLimit))
		m.add("To do", i.todo())
	}
	return m
}

// ended is the short message that tells of the end.
func (i *Incident) ended(p Policy, now time.Time) Message {
	if p.S4 {
		return S4Recovered(i.Facts, i.Resolved.Sub(i.Opened))
	}
	m := Message{Title: i.mark() + " " + i.title()}
	m.add("Since", strings.TrimSuffix(fmt.Sprintf("%s, %s", p.at(i.Resolved, now), i.Ending), ", "))
	m.add("Before", fmt.Sprintf("%s, for %s", i.trouble(), span(i.Resolved.Sub(i.Opened))))
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

package incident

import (
	"fmt"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
)

// titled begins a message with its title.
func titled(title string) (m notify.Message) {
	m.Text.WriteBold(title)
	return m
}

// add appends a field, unless its value is empty.
func add(m *notify.Message, name, value string) {
	if value != "" {
		m.Text.WriteField(name, value)
	}
}

// addBody appends a longer text behind the fields.
func addBody(m *notify.Message, text string) {
	if text != "" {
		m.Text.Write("\n\n" + text)
	}
}

// Maximum lengths of texts in a message, in characters.
const (
	detailsLimit  = 1500 // the details (PIV's monitor: the rest is in the improvement log)
	bodyLimit     = 600  // the body
	expandedLimit = 2000 // the body after Details was pressed
	besideLimit   = 300  // the details next to an input that must be shown completely
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

// span formats a duration for people: 45s, 12m, 3h, 1h30m.
func span(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return recovery.FormatDuration(d.Round(time.Minute))
}

// at formats a time in local time.
func (p Policy) at(t, now time.Time) string { return TimeOf(t.In(p.location()), now) }

// TimeOf formats a time by its own zone, with the date if now is another day there.
func TimeOf(t, now time.Time) string {
	if now = now.In(t.Location()); t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("2006-01-02 15:04")
	}
	return t.Format("15:04")
}

// Compose returns the message of an incident in its present state.
func Compose(i Incident, p Policy, now time.Time) notify.Message {
	f := i.Facts
	if p.PIV {
		m := PIVMessage(f)
		m.Buttons = i.keyboard(p)
		if i.State != Open && i.State != Notified {
			add(&m, "Status", i.status(p, now))
		}
		return m
	}
	m := titled(i.mark() + " " + i.title())
	m.Buttons, m.Line = i.keyboard(p), i.line(p, now, "permission", askTogether)
	if i.State == Resolved && i.Recovered { // otherwise the title contains it
		add(&m, "Before", i.Trouble())
	}
	if status := i.status(p, now); status != plainOpen { // otherwise the message itself shows it
		add(&m, "Status", status)
	}
	add(&m, "Phase", f.Phase)
	add(&m, "Agents", strings.Join(f.Members, ", "))
	add(&m, "Since", i.since(p, now))
	details := detailsLimit
	if f.asks() {
		details = besideLimit
	}
	add(&m, "Details", shorten(f.Details, details))
	add(&m, "Done", f.Action)
	add(&m, "To do", i.todo(p))
	if f.Unasked != "" && i.State != Resolved {
		add(&m, "Allow", "cannot be allowed from here: "+f.Unasked+"; decide in the agent's terminal")
	}
	if f.Unheard && i.State != Resolved {
		add(&m, "Buttons", "answers are not heard now; they can be given on the machine itself (outlive ack"+p.Home+", outlive agent list"+p.Home+")")
	}
	add(&m, "Starts", f.starts())
	i.fill(&m)
	return m
}

// starts says how many starts are used, and that they are those of this agent, because other texts may count starts
// differently. "": starts are not counted.
func (f *Facts) starts() string {
	if f.Max == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d", f.Used, f.Max)
	if f.Used > f.Max { // people have started it, too, or the budget was made smaller
		text = fmt.Sprintf("%d, %d allowed", f.Used, f.Max)
	}
	switch {
	case f.PerPhase && f.Phase != "":
		text += " in this phase"
	case f.Window > 0:
		text += " in " + span(f.Window)
	}
	return text + ", for this problem"
}

// fill sets the body: an input that needs a permission completely, anything else as far as it fits.
func (i *Incident) fill(m *notify.Message) {
	f := i.Facts
	if f.asks() {
		m.Exact = f.Input
		addBody(m, f.Input)
		return
	}
	limit := bodyLimit
	if i.Expanded {
		limit = expandedLimit
	}
	addBody(m, shorten(f.Body, limit))
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

// title describes the present state: an ended incident is no trouble any more.
func (i *Incident) title() string {
	switch {
	case i.State != Resolved:
		return i.Trouble()
	case !i.Recovered:
		return "Over: " + i.Trouble()
	case i.Key.Class == Mass:
		shared, _ := i.shared()
		return "Agents" + shared + " work again"
	}
	return i.Facts.Name + " works again"
}

// Trouble says in words what is wrong, or was.
func (i *Incident) Trouble() string {
	if i.Key.Class == Mass {
		shared, cause := i.shared()
		return fmt.Sprintf("%d agents%s %s%s", len(i.Facts.Members), shared, Words(Mass), cause)
	}
	return i.Facts.Name + " " + Words(i.Key.Class)
}

// shared says what the agents of a mass incident share, and the cause of their trouble. The key is "host:" or
// "account:", a name, and after another colon the cause.
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

// since says when it began and, from a minute on, how long it has lasted; "" if the beginning is unknown.
func (i *Incident) since(p Policy, now time.Time) string {
	if i.Facts.Since.IsZero() {
		return ""
	}
	text := p.at(i.Facts.Since, now)
	until := now
	if i.State == Resolved {
		until = i.Resolved
	}
	if d := until.Sub(i.Facts.Since); d >= time.Minute {
		text += " (" + span(d) + ")"
	}
	return text
}

// plainOpen is the status of an incident without further information.
const plainOpen = "open"

// status is the line about the incident's state.
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
func (i *Incident) reminder(p Policy, now time.Time) notify.Message {
	title := fmt.Sprintf("%s Still open, %s: %s", i.mark(), span(now.Sub(i.Opened)), i.title())
	if i.Facts.Request != "" && i.Facts.Request != i.Rung {
		title = fmt.Sprintf("%s %s, another one", i.mark(), i.title())
	}
	m := titled(title)
	m.Buttons, m.Line = i.keyboard(p), i.line(p, now, "permission again", askTogether)
	if i.Facts.asks() {
		i.fill(&m) // its buttons are shown here, too
	} else {
		add(&m, "Details", shorten(i.Facts.Details, bodyLimit))
		add(&m, "To do", i.todo(p))
	}
	return m
}

// ended is the short message about the incident's end.
func (i *Incident) ended(p Policy, now time.Time) notify.Message {
	if p.PIV {
		return PIVRecovered(i.Facts, i.Resolved.Sub(i.Opened))
	}
	m := titled(i.mark() + " " + i.title())
	m.Line = i.line(p, now, "permission over", "agents work again")
	m.Line.Over = false
	add(&m, "Since", strings.TrimSuffix(fmt.Sprintf("%s, %s", p.at(i.Resolved, now), i.Ending), ", "))
	add(&m, "Before", fmt.Sprintf("%s, for %s", i.Trouble(), span(i.Resolved.Sub(i.Opened))))
	return m
}

// PIVMessage is an escalation in PIV's template (PIV-11), which has all of its lines, also the empty ones.
func PIVMessage(f Facts) notify.Message {
	m := titled("🔴 Supervisor Escalation")
	for _, field := range [][2]string{
		{"Project", f.Name}, {"Phase", f.Phase}, {"Stall Type", f.Stall}, {"Details", shorten(f.Details, detailsLimit)},
		{"Action Taken", f.Action}, {"Restarts", fmt.Sprintf("%d/%d", f.Used, f.Max)},
	} {
		m.Text.WriteField(field[0], field[1])
	}
	return m
}

// PIVRecovered reports the end of the trouble in the same style.
func PIVRecovered(f Facts, after time.Duration) notify.Message {
	m := titled("🟢 Recovered")
	m.Text.WriteField("Project", f.Name)
	m.Text.WriteField("Stall Type", fmt.Sprintf("%s, after %s", f.Stall, after.Round(time.Second)))
	return m
}

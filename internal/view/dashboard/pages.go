package dashboard

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"html/template"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	eventsShown = 300
	logShown    = 32 << 10 // bytes of the end of a log
	logLines    = 200
)

// page makes the sections of one kind of page; key says of what. false: there is no such thing.
type page func(m *maker, key string) (heading string, found bool)

// maker renders the sections of one page.
type maker struct {
	d        *Dashboard
	State    overview.State
	sections []section
}

// shown is what a template gets.
type shown struct {
	overview.State
	Control bool
	CSRF    string
	Path    string
	Of      any
	Rows    []part
}

func (d *Dashboard) render(p page, s overview.State, key string) (heading string, list []section, found bool) {
	m := &maker{d: d, State: s}
	heading, found = p(m, key)
	return heading, m.sections, found
}

// text executes a template; what cannot be rendered is our own mistake, and said in its place.
func (m *maker) text(name string, of any, rows []part) template.HTML {
	var b bytes.Buffer
	v := shown{State: m.State, Control: m.d.opts.Control != nil, CSRF: m.d.door.form, Of: of, Rows: rows}
	if err := m.d.pages.ExecuteTemplate(&b, name, v); err != nil {
		return template.HTML(template.HTMLEscapeString(err.Error()))
	}
	return template.HTML(b.String())
}

// add adds a section without rows.
func (m *maker) add(id, name string, of any) {
	html := m.text(name, of, nil)
	m.sections = append(m.sections, section{part: part{id, html}, shape: string(html)})
}

// addRows adds a section whose rows change by themselves.
func (m *maker) addRows(id, name string, of any, rows []part) {
	var shape strings.Builder
	for _, r := range rows {
		shape.WriteString(r.ID + " ")
	}
	empty := m.text(name, of, nil)
	m.sections = append(m.sections, section{part{id, m.text(name, of, rows)}, rows, shape.String() + string(empty)})
}

// idOf is an element's id for any key.
func idOf(kind, key string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // it never fails
	return fmt.Sprintf("%s-%x", kind, h.Sum64())
}

func rowsOf[T any](m *maker, kind string, list []T, key func(T) string) []part {
	rows := make([]part, len(list))
	for n, one := range list {
		rows[n] = part{idOf(kind, key(one)), m.text(kind, one, nil)}
	}
	return rows
}

// attention is what is wrong now.
type attention struct {
	Servers   []overview.Server
	Agents    []overview.Agent
	Incidents []overview.Incident
	Hosts     []overview.Host
}

func overviewPage(m *maker, _ string) (string, bool) {
	s := m.State
	var a attention
	told := map[string]bool{}
	for _, i := range s.Incidents {
		if i.Waits() {
			a.Incidents = append(a.Incidents, i)
			told[i.Agent] = true
		}
	}
	for _, one := range s.Servers {
		if one.Health.Wrong() && !(one.Gateway && one.Health != overview.Bad) {
			a.Servers = append(a.Servers, one)
		}
	}
	for _, one := range s.Agents {
		if one.Health.Wrong() && !told[one.Key] {
			a.Agents = append(a.Agents, one)
		}
	}
	for _, one := range s.Hosts {
		if one.Health.Wrong() {
			a.Hosts = append(a.Hosts, one)
		}
	}
	m.add("attention", "attention", a)
	if len(s.Hosts) > 0 {
		m.addRows("hosts", "hosts", len(s.Hosts), rowsOf(m, "host-row", s.Hosts, func(o overview.Host) string { return o.Name }))
	}
	m.addRows("servers", "servers", len(s.Servers), rowsOf(m, "server-row", s.Servers, func(o overview.Server) string { return o.Key }))
	m.addRows("agents", "agents", len(s.Agents), rowsOf(m, "agent-row", s.Agents, func(o overview.Agent) string { return o.Key }))
	return "Overview", true
}

func serverPage(m *maker, key string) (string, bool) {
	at := slices.IndexFunc(m.State.Servers, func(o overview.Server) bool { return o.Key == key })
	if at < 0 {
		m.add("gone", "gone", key)
		return key, false
	}
	one := m.State.Servers[at]
	m.add("standing", "server", one)
	if one.Gateway {
		var its []overview.Server
		for _, o := range m.State.Servers {
			if o.Of == key {
				its = append(its, o)
			}
		}
		m.addRows("servers", "servers", len(its), rowsOf(m, "server-row", its, func(o overview.Server) string { return o.Key }))
		return one.Name, true
	}
	m.add("restarts", "restarts", one)
	m.add("calls", "calls", one)
	m.add("details", "server-details", one)
	if one.Host != "" {
		m.add("log", "log-there", "outlive logs --hosts "+one.Host+" "+overview.There(one.Host, one.Key))
		return one.Name, true
	}
	text, err := tail(one.LogPath)
	m.add("log", "log", output{"What it writes to stderr", one.LogPath, text, err})
	return one.Name, true
}

func agentPage(m *maker, key string) (string, bool) {
	at := slices.IndexFunc(m.State.Agents, func(o overview.Agent) bool { return o.Key == key })
	if at < 0 {
		m.add("gone", "gone", key)
		return key, false
	}
	one := m.State.Agents[at]
	m.add("standing", "agent", one)
	var its []overview.Incident
	for _, i := range m.State.Incidents {
		if i.Agent == key {
			its = append(its, i)
		}
	}
	m.addRows("incidents", "incidents", its, rowsOf(m, "incident", its, func(i overview.Incident) string { return i.ID }))
	m.add("done", "done", one)
	m.add("evidence", "evidence", one)
	if one.Output != "" && m.d.opts.AgentText != nil {
		text, err := m.d.opts.AgentText(one.Output)
		m.add("log", "log", output{"What it writes", one.Output, lastLines(text), err})
	}
	return one.Name, true
}

func incidentsPage(m *maker, _ string) (string, bool) {
	list := m.State.Incidents
	m.addRows("incidents", "incidents", list, rowsOf(m, "incident", list, func(i overview.Incident) string { return i.ID }))
	return "Incidents", true
}

func eventsPage(m *maker, _ string) (string, bool) {
	m.add("events", "events", m.State.Events[:min(eventsShown, len(m.State.Events))])
	return "Events", true
}

// output is the end of a log.
type output struct {
	Title, Path, Text string
	Err               error
}

// tail is the end of a log; of one that is not there it is empty.
func tail(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	text := make([]byte, min(st.Size(), logShown))
	n, err := f.ReadAt(text, st.Size()-int64(len(text)))
	if n == len(text) {
		err = nil
	}
	return lastLines(string(text[:n])), err
}

// lastLines are the last lines of a text, without what would not be shown.
func lastLines(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	lines := strings.Split(strings.TrimRight(clean, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-logLines):], "\n")
}

// functions are what templates call.
var functions = template.FuncMap{
	"shape": shape, "word": word, "clock": clock, "stamp": stamp, "lasting": lasting, "bytes": size, "strip": stripSVG, "axis": axisSVG,
	"id": idOf, "count": count, "healthWord": healthWord, "rowID": idOf, "cost": func(usd float64) string { return fmt.Sprintf("$%.2f", usd) },
	"attach": attachCommand, "source": sourceWord, "ms": func(d time.Duration) string { return took(d) }, "form": func(s shown, of any) shown { s.Of = of; return s },
}

// attachCommand is what joins an agent's terminal.
func attachCommand(a overview.Agent) string {
	if a.Host != "" {
		return "ssh -t " + a.Host + " outlive agent attach " + overview.There(a.Host, a.Key)
	}
	return "outlive agent attach " + a.Key
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("(%d!) ", n)
}

// shape is a health without colour.
func shape(h overview.Health) string {
	return [...]string{"?", "○", "●", "◐", "▲", "✖"}[h]
}

// healthWord is a health in words.
func healthWord(h overview.Health) string {
	return [...]string{"nothing known", "not needed", "well", "starting", "trouble", "broken"}[h]
}

// word is a state for people: that of a server as status has it.
func word(state string) string {
	switch state {
	case "backoff":
		return "waits for its next start"
	case "failed":
		return "given up"
	}
	return state
}

// sourceWord is who asked for a restart.
func sourceWord(r overview.Renewal) string {
	if unplanned(r) {
		return "nobody"
	}
	return r.Source
}

// clock is a time of day, with its date if it is another day's.
func clock(t, now time.Time) string {
	if t.IsZero() {
		return "–"
	}
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return t.Format("2 Jan 15:04")
	}
	return t.Format("15:04:05")
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// lasting is how long something lasts, in one or two units.
func lasting(from, to time.Time) string { return took(to.Sub(from)) }

func took(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// size is a number of bytes.
func size(n int64) string {
	switch {
	case n <= 0:
		return "–"
	case n < 10<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

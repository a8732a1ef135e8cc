package dashboard

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const eventsShown = 300

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
	m.add("attention", "attention", a)
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
	text, err := collect.Tail(one.LogPath)
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
		m.add("log", "log", output{"What it writes", one.Output, collect.LastLines(text), err})
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

// functions are what templates call.
var functions = template.FuncMap{
	"shape": overview.Health.Shape, "word": overview.StateWord, "clock": overview.Clock, "stamp": stamp, "bytes": overview.Size, "strip": stripSVG, "axis": axisSVG,
	"id": idOf, "count": count, "healthWord": overview.Health.Word, "rowID": idOf, "cost": func(usd float64) string { return fmt.Sprintf("$%.2f", usd) },
	"source": overview.Renewal.Asker, "ms": overview.Took, "form": func(s shown, of any) shown { s.Of = of; return s },
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("(%d!) ", n)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

package dashboard

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"html/template"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	eventsShown  = 300
	eventsRead   = 2000      // of which these are made
	logsSearched = 3         // of servers with the name that events are shown of
	nightShown   = 100       // changes of one agent
	actsBefore   = time.Hour // before an incident, what was done belongs to it
)

// page makes the sections of one kind of page; key says of what, query how. false: there is no such thing.
type page func(m *maker, key string, query url.Values) (heading string, found bool)

// maker renders the sections of one page.
type maker struct {
	d        *Dashboard
	State    overview.State
	sections []section

	was, rows map[string]row // of the page as it was, and as it is
}

// shown is what a template gets.
type shown struct {
	overview.State
	Control bool
	CSRF    string
	Of      any
	Rows    []part
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
	m.sections = append(m.sections, section{ID: id, whole: func() template.HTML { return html }, shape: sumOf(string(html))})
}

// addRows adds a section whose rows change by themselves.
func (m *maker) addRows(id, name string, of any, rows []part) {
	var shape strings.Builder
	for _, r := range rows {
		shape.WriteString(r.ID + " ")
	}
	shape.WriteString(string(m.text(name, of, nil)))
	whole := sync.OnceValue(func() template.HTML { return m.text(name, of, rows) })
	m.sections = append(m.sections, section{ID: id, whole: whole, Rows: rows, shape: sumOf(shape.String())})
}

// idOf is an element's id for any key.
func idOf(kind, key string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // it never fails
	return fmt.Sprintf("%s-%x", kind, h.Sum64())
}

// rowsOf renders rows, of which those that show the same as before are kept. A row shows nothing but its value, and times beside today's date.
func rowsOf[T any](m *maker, kind string, list []T, key func(T) string) []part {
	rows := make([]part, len(list))
	day := m.State.At.Local().Format(time.DateOnly)
	for n, one := range list {
		id := idOf(kind, key(one))
		r := m.was[id]
		if r.day != day || !reflect.DeepEqual(r.of, any(one)) {
			html := m.text(kind, one, nil)
			r = row{part{id, html, sumOf(string(html))}, one, day}
		}
		rows[n], m.rows[id] = r.part, r
	}
	return rows
}

// serverRow is what the table of servers shows of one.
type serverRow struct {
	Key, Name, Of, State, Why, URL string
	Gateway                        bool
	Health                         overview.Health
	Since                          time.Time
	Restarts                       int // in the last 24 hours, as in the strip
	Memory                         string
	Clients                        []string
	Strip                          []overview.Span
	Spark                          template.HTML
}

func serverRows(m *maker, list []overview.Server) []part {
	rows := make([]serverRow, len(list))
	for n, o := range list {
		rows[n] = serverRow{o.Key, o.Name, o.Of, o.State, o.Why, o.URL, o.Gateway, o.Health, o.Since, len(o.Renewals), overview.Size(o.Memory), o.Clients, o.Strip, sparkSVG(o.Curve, m.State.At)}
	}
	return rowsOf(m, "server-row", rows, func(o serverRow) string { return o.Key })
}

// agentRow is what the table of agents shows of one.
type agentRow struct {
	Key, Name, Kind, State, Why, SignFrom string
	Health                                overview.Health
	Since, SignAt                         time.Time
	CostUSD                               float64
	Strip                                 []overview.Span
}

func agentRows(m *maker, list []overview.Agent) []part {
	rows := make([]agentRow, len(list))
	for n, o := range list {
		rows[n] = agentRow{o.Key, o.Name, o.Kind, o.State, "", o.SignFrom, o.Health, o.Since, o.SignAt, o.CostUSD, o.Strip}
		if o.Health.Wrong() || o.Class == "unobserved" { // of others it says how long ago something was
			rows[n].Why = o.Why
		}
	}
	return rowsOf(m, "agent-row", rows, func(o agentRow) string { return o.Key })
}

func overviewPage(m *maker, _ string, _ url.Values) (string, bool) {
	s := m.State
	m.add("attention", "attention", attentionOf(s))
	if len(s.Hosts) > 0 {
		m.addRows("hosts", "hosts", len(s.Hosts), rowsOf(m, "host-row", s.Hosts, func(o overview.Host) string { return o.Name }))
	}
	m.addRows("servers", "servers", len(s.Servers), serverRows(m, s.Servers))
	m.addRows("agents", "agents", len(s.Agents), agentRows(m, s.Agents))
	return "Overview", true
}

func serverPage(m *maker, key string, query url.Values) (string, bool) {
	at := slices.IndexFunc(m.State.Servers, func(o overview.Server) bool { return o.Key == key })
	if at < 0 {
		m.add("gone", "gone", key)
		return key, false
	}
	one := m.State.Servers[at]
	one.Calls = slices.Clone(one.Calls)
	m.add("standing", "server", one)
	if one.Gateway {
		var its []overview.Server
		for _, o := range m.State.Servers {
			if o.Of == key {
				its = append(its, o)
			}
		}
		m.addRows("servers", "servers", len(its), serverRows(m, its))
		return one.Name, true
	}
	m.addKnown(one, query)
	m.add("search", "search", one)
	if one.Host != "" {
		m.add("log", "log-there", logsCommand(one))
		return one.Name, true
	}
	if one.LogPath == "" && one.State == control.NoAnswer {
		m.add("log", "not-known", "log") // it has never said where that is
		return one.Name, true
	}
	text, err := collect.Tail(one.LogPath)
	m.add("log", "log", output{"What it writes to stderr", one.LogPath, text, logsCommand(one), err})
	return one.Name, true
}

// addKnown adds what is known of a server that answers. Of another nothing is said: it has counted, and does not tell.
func (m *maker) addKnown(one overview.Server, query url.Values) {
	if one.State == control.NoAnswer {
		for _, id := range []string{"curves", "restarts", "calls", "details"} {
			m.add(id, "not-known", id)
		}
		return
	}
	p := periodOf(query.Get("last"), one, m.State.At)
	m.add("curves", "curves", curvesOf(one, p, m.State.At))
	m.add("restarts", "restarts", restartsOf(one, p, m.State.At))
	slices.SortStableFunc(one.Calls, func(a, b backend.Calls) int { return cmp.Compare(b.Total(), a.Total()) })
	m.add("calls", "calls", one)
	m.add("details", "server-details", one)
}

// restartsShown is what the section of restarts shows.
type restartsShown struct {
	Server overview.Server
	Period period
	List   []overview.Renewal // in that time, the newest first
}

func restartsOf(s overview.Server, p period, now time.Time) restartsShown {
	return restartsShown{s, p, slices.DeleteFunc(slices.Clone(s.Renewals), func(r overview.Renewal) bool { return now.Sub(r.At) > p.last })}
}

func agentPage(m *maker, key string, _ url.Values) (string, bool) {
	at := slices.IndexFunc(m.State.Agents, func(o overview.Agent) bool { return o.Key == key })
	if at < 0 {
		m.add("gone", "gone", key)
		return key, false
	}
	one := m.State.Agents[at]
	m.add("standing", "agent", one)
	var its []overview.Incident
	for _, i := range m.State.Incidents {
		if i.About(key) {
			its = append(its, i)
		}
	}
	none := "None in the last 24 hours."
	if len(one.Acts) > 0 {
		none += " What went wrong outlive has dealt with by itself: it stands below."
	}
	m.addIncidents(group{ID: "incidents", Title: "Incidents", None: none}, its)
	done := one
	done.Acts = slices.Clone(one.Acts)
	slices.Reverse(done.Acts) // the newest first
	m.add("done", "done", done)
	night := slices.Clone(one.History)
	slices.Reverse(night) // the newest first
	m.add("night", "night", night[:min(nightShown, len(night))])
	m.add("evidence", "evidence", one)
	if one.Output != "" && m.d.opts.AgentText != nil {
		text, err := m.d.opts.AgentText(one.Output)
		m.add("log", "log", output{"What it writes", one.Output, collect.LastLines(text), "outlive agent logs " + one.Key, err})
	}
	return one.Name, true
}

func incidentsPage(m *maker, _ string, _ url.Values) (string, bool) {
	var waiting, acknowledged, over []overview.Incident
	for _, i := range m.State.Incidents {
		switch {
		case i.Waits():
			waiting = append(waiting, i)
		case i.Open():
			acknowledged = append(acknowledged, i)
		default:
			over = append(over, i)
		}
	}
	m.addIncidents(group{ID: "waiting", Title: "Open: somebody has to look", None: "None.", Live: true}, waiting)
	m.addIncidents(group{ID: "acknowledged", Title: "Acknowledged: somebody deals with it", None: "None."}, acknowledged)
	m.add("others", "others", besides(m.State.Attention(), acknowledged))
	m.addIncidents(group{ID: "over", Title: "Over, in the last 24 hours", None: "None."}, over)
	return "Incidents", true
}

// group is a list of incidents.
type group struct {
	ID, Title, None string
	Live            bool // what comes is read out
	N               int
}

func (m *maker) addIncidents(g group, list []overview.Incident) {
	g.N = len(list)
	rows := make([]part, len(list))
	for n, i := range list { // they show what was done about the agent, too
		html := m.text("incident", i, nil)
		rows[n] = part{idOf("incident", i.ID), html, sumOf(string(html))}
	}
	m.addRows(g.ID, "incidents", g, rows)
}

// doneAbout is what outlive has done since an incident has begun, or a little before it; "" if it is of several agents, or over.
func doneAbout(i overview.Incident, agents []overview.Agent, now time.Time) string {
	at := slices.IndexFunc(agents, func(a overview.Agent) bool { return a.Key == i.Agent })
	if at < 0 || !i.Open() {
		return ""
	}
	type said struct {
		text  string
		times int
		last  time.Time
	}
	var list []said
	for _, act := range agents[at].Acts {
		if act.At.Before(i.Opened.Add(-actsBefore)) {
			continue
		}
		n := slices.IndexFunc(list, func(one said) bool { return one.text == act.Text })
		if n < 0 {
			n, list = len(list), append(list, said{text: act.Text})
		}
		list[n].times, list[n].last = list[n].times+1, act.At
	}
	var done []string
	for _, one := range list {
		text := one.text
		if one.times > 1 {
			text += fmt.Sprintf(": %d ×, last", one.times)
		}
		done = append(done, text+" at "+overview.Clock(one.last, now))
	}
	if done == nil {
		return "has done nothing about it: it waits for you"
	}
	return strings.Join(done, "; ")
}

// eventsAsked is what the page of events shows: which, and what the boxes above them say.
type eventsAsked struct {
	About, Level, Text string
	Levels             []string
	N                  int // that are shown
}

// eventsPage shows the events that the query asks for, the newest first.
func eventsPage(m *maker, _ string, v url.Values) (string, bool) {
	asked := eventsAsked{About: strings.TrimSpace(v.Get("about")), Level: cmp.Or(strings.ToUpper(v.Get("level")), "INFO"), Text: v.Get("text"), Levels: overview.Levels}
	only := overview.Filter{About: strings.Fields(asked.About), Level: asked.Level, Text: asked.Text, Brief: asked.Level != overview.Levels[0]}
	folded := overview.Fold(m.d.opts.Source.Events(only, eventsRead))
	folded = folded[:min(eventsShown, len(folded))]
	asked.N = len(folded)
	m.add("filter", "filter", asked)
	m.addRows("events", "events", asked, rowsOf(m, "event-row", folded, eventKey))
	m.add("found", "found", m.said(only))
	return "Events", true
}

// said is what servers of this machine have written with the text of a filter that names them.
func (m *maker) said(only overview.Filter) (list []output) {
	if len(only.About) == 0 || strings.TrimSpace(only.Text) == "" {
		return nil
	}
	for _, one := range m.State.Servers {
		if one.LogPath == "" || !one.Named(only.About) {
			continue
		}
		text, err := collect.Search(one.LogPath, only.Text)
		if list = append(list, output{one.Name, one.LogPath, text, logsCommand(one), err}); len(list) == logsSearched {
			break
		}
	}
	return list
}

// eventKey stays the same while the event is repeated.
func eventKey(r overview.Repeated) string {
	e := r.Last
	return strconv.Itoa(e.PID) + string(e.Type) + strconv.FormatInt(r.First.UnixNano(), 36) + e.Host + e.Instance + e.Server + e.Agent + cmp.Or(e.Reason, e.Message)
}

// output is the end of a log.
type output struct {
	Title, Path, Text string
	Command           string // that shows all of it
	Err               error
}

// functions are what templates call.
var functions = template.FuncMap{
	"shape": overview.Health.Shape, "word": overview.StateWord, "clock": overview.Clock, "stamp": stamp, "bytes": overview.Size, "strip": stripSVG, "stripRow": stripRowSVG, "axis": axisSVG,
	"healthWord": overview.Health.Word, "rowID": idOf, "cost": func(usd float64) string { return fmt.Sprintf("$%.2f", usd) },
	"well": overview.WellText, "tried": overview.Server.Tried, "ends": endsOf, "turn": turnOf, "date": dateText,
	"ended": endedText, "logs": logsCommand, "attach": attachCommand, "source": overview.Renewal.Asker, "ms": latencyText, "until": until, "doneAbout": doneAbout, "span": spanOf, "eventKey": eventKey, "serverOf": serverOf,
	"form": func(s shown, of any) shown { s.Of = of; return s },
}

// turnOf is who had to deal with an agent that stood so; the sign says the same. "": nobody.
func turnOf(h overview.Health) string {
	switch h {
	case overview.Warn:
		return "left to outlive"
	case overview.Bad:
		return "left to a person"
	}
	return ""
}

// logsCommand shows what a server writes.
func logsCommand(s overview.Server) string {
	if s.Host != "" {
		return "outlive logs --hosts " + s.Host + " " + overview.There(s.Host, s.Key)
	}
	return "outlive logs " + s.Key
}

// attachCommand is what joins an agent's terminal.
func attachCommand(a overview.Agent) string {
	if a.Host != "" {
		return "ssh -t " + a.Host + " outlive agent attach " + overview.There(a.Host, a.Key)
	}
	return "outlive agent attach " + a.Key
}

// until is the end of something; what goes on has none yet.
func until(t, now time.Time) string {
	if !t.Before(now) {
		return "now"
	}
	return overview.Clock(t, now)
}

// spanOf is how long something lasts that goes on; to the minute, so that a page does not change all the time.
func spanOf(from, to, now time.Time) string {
	if !to.Before(now) {
		if to = now.Truncate(time.Minute); to.Sub(from) < time.Minute {
			return "less than 1 min"
		}
	}
	return overview.Took(max(0, to.Sub(from)))
}

// endedText is how calls ended that did not end well; of others nothing.
func endedText(c backend.Calls) string {
	var words []string
	for _, one := range []struct {
		n    int64
		word string
	}{{c.ToolError, "tool error"}, {c.Errors, "error"}, {c.Refused, "refused"}, {c.Unknown, "outcome unknown"}, {c.TimedOut, "timed out"}, {c.Cancelled, "cancelled"}} {
		if one.n > 0 {
			words = append(words, fmt.Sprintf("%d × %s", one.n, one.word))
		}
	}
	return cmp.Or(strings.Join(words, ", "), "–")
}

// latencyText is how long calls took; of those that came to no end, nothing.
func latencyText(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return overview.Took(d)
}

// dateText is the day and the time; the page's script writes the same.
func dateText(t time.Time) string { return t.Local().Format("Mon 2 Jan, 15:04:05") }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/curve"
	"github.com/outlive-mcp/outlive/internal/view/overview"
	"github.com/outlive-mcp/outlive/internal/view/terminal"
)

// pane is a list of the screen, in the order from above.
type pane uint8

const (
	incidentPane pane = iota
	serverPane
	agentPane
	panes
)

// row is one thing in a pane. Exactly one of the pointers is set.
type row struct {
	key    string
	health overview.Health
	name   string
	state  string
	since  string
	more   string // why, or what else is worth a glance
	counts string // of a server, in columns: calls of the last minute, how long they took, memory, restarts
	spark  string // of a server: its calls in the last minutes
	facts  []string

	incident *overview.Incident
	server   *overview.Server
	agent    *overview.Agent
}

// matches reports whether each word of a filter is in what the row says.
func (r row) matches(filter string) bool {
	text := strings.ToLower(strings.Join(append([]string{r.name, r.state, r.health.Word(), r.more}, r.facts...), " "))
	for word := range strings.FieldsSeq(strings.ToLower(filter)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

func rowsOf(s overview.State) (all [panes][]row) {
	for _, i := range s.Incidents {
		r := row{key: i.ID, health: i.Health(), name: i.Title, state: terminal.IncidentState(i), since: clock(i.Since(), s.At), incident: &i}
		r.facts = terminal.IncidentFacts(i, s)
		r.more = joined(i.Details)
		all[incidentPane] = append(all[incidentPane], r)
	}
	for _, one := range s.Servers {
		r := row{key: one.Key, health: one.Health, name: one.Name, state: overview.StateWord(one.State), since: clock(one.Since, s.At), server: &one}
		if one.Of != "" {
			r.name = "  " + one.Name
		}
		r.facts = terminal.ServerFacts(one, s)
		r.counts, r.spark = countsOf(one, s.At)
		r.more = joined(one.Why)
		if r.more == "" && one.Restarts > 0 {
			r.more = "restarted " + overview.Times(one.Restarts)
		} else if r.more == "" && one.Gateway {
			r.more = "gateway"
		}
		all[serverPane] = append(all[serverPane], r)
	}
	for _, a := range s.Agents {
		r := row{key: a.Key, health: a.Health, name: a.Name, state: a.State, since: clock(a.Since, s.At), agent: &a}
		r.facts = terminal.AgentFacts(a, s)
		if r.more = joined(a.Why); !a.Health.Wrong() && strings.Trim(a.LastSign, "-") != "" {
			r.more = "last sign: " + oneLine(a.LastSign)
		}
		all[agentPane] = append(all[agentPane], r)
	}
	return all
}

// sparkMinutes is how far back the small curve of calls goes.
const sparkMinutes = 12

// countsOf are a server's last minutes; "" of a gateway.
func countsOf(s overview.Server, now time.Time) (counts, calls string) {
	if s.Gateway {
		return "", ""
	}
	rate, p99, again := "", "", ""
	if s.Curve != nil {
		points := s.Curve.Last(sparkMinutes, now)
		calls = spark(points)
		last := points[len(points)-1]
		if !last.Known {
			last = points[len(points)-2] // it has just ended, and was not asked for yet
		}
		if last.Known {
			rate = fmt.Sprintf("%.0f/min", last.Calls)
			if last.P99 > 0 {
				p99 = overview.Took(curve.Took(last.P99))
			}
		}
	}
	if s.Restarts > 0 {
		again = "↻ " + strconv.Itoa(s.Restarts)
	}
	return fmt.Sprintf("%7s  %7s  %8s  %s", rate, p99, overview.Size(s.Memory), again), calls
}

// spark is a curve of calls, a letter a minute; a minute of which nothing is known is empty.
func spark(points []curve.Point) string {
	const bars = "▁▂▃▄▅▆▇█"
	most := float32(0)
	for _, o := range points {
		most = max(most, o.Calls)
	}
	var b strings.Builder
	for _, o := range points {
		switch {
		case !o.Known:
			b.WriteByte(' ')
		case most == 0:
			b.WriteString("▁")
		default:
			b.WriteRune([]rune(bars)[int(o.Calls/most*7)])
		}
	}
	return b.String()
}

// joined are a text's lines on one, as a terminal may show them.
func joined(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = oneLine(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " / ")
}

// clock is when something began; "": not known.
func clock(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return overview.Clock(t, now)
}

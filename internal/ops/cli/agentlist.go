package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// agentRecord is an agent as list and show give it to programs. Its names are stable.
type agentRecord struct {
	Name       string            `json:"name"`
	Key        string            `json:"key"` // of the registry: what the other verbs take
	Kind       string            `json:"kind"`
	Path       string            `json:"path,omitempty"`
	State      string            `json:"state"`           // the class of the diagnosis
	Stall      string            `json:"stall,omitempty"` // its coarse type, where something is wrong
	Rule       string            `json:"rule"`
	Confidence string            `json:"confidence"`
	Details    string            `json:"details"`
	Since      *time.Time        `json:"since,omitempty"` // when this state began, as far as is known
	Until      *time.Time        `json:"until,omitempty"` // when it ends by itself, such as a limit
	Action     string            `json:"action,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	Paused     bool              `json:"paused,omitempty"`
	Stopped    bool              `json:"stopped,omitempty"` // by a person
	PID        int               `json:"pid,omitempty"`
	Process    string            `json:"process,omitempty"` // alive, dead, unsure
	Session    string            `json:"session,omitempty"`
	Terminal   bool              `json:"terminal,omitempty"` // outlive agent attach can join it
	Joined     []agentrun.Joined `json:"attached,omitempty"` // who has
	LastSign   *signRecord       `json:"last_sign,omitempty"`
	Waits      []string          `json:"waits_for,omitempty"` // tool calls of MCP servers that outlive keeps alive
	Unread     []string          `json:"unread,omitempty"`    // what could not be read of it, and why: nothing is ended on that
	Incidents  []incidentRecord  `json:"incidents"`
	Text       *agentShown       `json:"text,omitempty"` // of agent list
}

// agentShown is what the table shows of an agent, and what stands below it where something is wrong.
type agentShown struct {
	State    string            `json:"state"`
	Since    string            `json:"since"`
	Process  string            `json:"process"`
	LastSign string            `json:"last_sign"`
	Incident string            `json:"incident"`
	Trouble  []overview.Aspect `json:"trouble,omitempty"`
}

// signRecord is the youngest sign of life.
type signRecord struct {
	At   time.Time `json:"at"`
	From string    `json:"from"` // heartbeat, session, output
}

// incidentRecord is something that a human was told of, or is to be.
type incidentRecord struct {
	ID         string     `json:"id"`
	Agent      string     `json:"agent"`
	Server     string     `json:"server,omitempty"` // the MCP server that it is about, by the name that commands take
	Class      string     `json:"class"`
	Severity   string     `json:"severity"`
	State      string     `json:"state"`
	Opened     time.Time  `json:"opened"`
	Details    string     `json:"details"`
	AckedBy    string     `json:"acked_by,omitempty"`
	AckedUntil *time.Time `json:"acked_until,omitempty"`
}

// homeRecord is everything of a home.
type homeRecord struct {
	Home     string        `json:"home"`
	Registry string        `json:"registry"`
	Monitor  int           `json:"monitor_pid"`              // 0: none runs
	Trouble  string        `json:"registry_error,omitempty"` // the last good copy is shown then
	At       time.Time     `json:"at"`
	Agents   []agentRecord `json:"agents"`
	Notes    []string      `json:"notes,omitempty"` // what else stands below the table
}

const agentListLong = `Show all agents of a home as the monitor sees them now: one row each. Below the table stands, for each agent in trouble, what
it is, what was done about it, what the monitor would do now, what is asked of you, and the commands for it. The names that the
records and the registry have for states and steps are in --json and in outlive agent explain.

EXIT STATUS
  0  shown, whatever state they are in
  1  the home could not be read, or a host did not answer`

func newAgentList(io streams) *cobra.Command {
	var home string
	var asJSON bool
	var on hostFlags
	cmd := &cobra.Command{
		Use:         "list",
		Short:       "Show all agents: what each does, since when, and what is wrong",
		Long:        agentListLong,
		Args:        takes(0, 0),
		Annotations: map[string]string{forOthers: "json home"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if on.given() {
				return on.agents(cmd.Context(), io.out, home, asJSON)
			}
			o, view, err := inspectHome(cmd.Context(), home)
			if err != nil {
				return err
			}
			h := homeRecordOf(o, view)
			if asJSON {
				return encodeJSON(io.out, h)
			}
			return printAgents(io.out, h)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as one JSON object; with --hosts an array of them")
	defineHome(cmd.Flags(), &home)
	on.define(cmd)
	return cmd
}

func homeRecordOf(o monitor.Options, view monitor.View) homeRecord {
	h := homeRecord{Home: o.Home, Registry: registryOf(o), Monitor: view.Running, Trouble: view.Lost, At: view.At.Round(0), Agents: []agentRecord{}}
	for _, f := range view.Findings {
		r := agentRecordOf(f, view.At)
		r.Text = agentShownOf(o, view, f)
		h.Agents = append(h.Agents, r)
	}
	h.Notes = notesOf(o, view)
	return h
}

func agentShownOf(o monitor.Options, view monitor.View, f monitor.Finding) *agentShown {
	t := &agentShown{
		State: stateWord(f), Since: sinceText(f, view.At), Process: processText(f), LastSign: signText(f.Evidence),
		Incident: incidentText(incidentsOf(view, f), view.At),
	}
	if !f.Diagnosis.Well() {
		t.Trouble = troubleAspects(o, view, f)
	}
	return t
}

func agentRecordOf(f monitor.Finding, at time.Time) agentRecord {
	v := f.Diagnosis
	r := agentRecord{
		Name: f.Name, Key: f.Key, Kind: string(f.Kind), Path: f.Path, State: string(v.Class), Stall: string(v.Stall), Rule: v.Rule,
		Confidence: string(v.Confidence), Details: v.Details, Paused: f.Evidence.Paused, Stopped: f.Stopped, PID: f.Process.PID,
		Process: string(f.Evidence.Process.Life), Session: f.Session, Terminal: f.Joinable, Joined: f.Joined, Waits: f.Evidence.Waits(), Unread: f.Evidence.Unread, Incidents: []incidentRecord{},
	}
	if !v.Well() {
		r.Action, r.Reason = f.Action, f.Decision.Reason
	}
	if !f.Since.IsZero() {
		r.Since = &f.Since
	}
	if v.Hold > 0 {
		until := at.Add(time.Duration(v.Hold)).Round(0)
		r.Until = &until
	}
	if age, from, ok := lastSign(f.Evidence); ok {
		r.LastSign = &signRecord{at.Add(-age).Round(0), from}
	}
	for _, i := range f.Incidents {
		r.Incidents = append(r.Incidents, incidentRecordOf(i))
	}
	return r
}

func incidentRecordOf(i incident.Incident) incidentRecord {
	r := incidentRecord{
		ID: i.ID, Agent: i.Key.Agent, Server: i.Key.Server(), Class: i.Key.Class, Severity: string(i.Facts.Severity), State: string(i.State),
		Opened: i.Opened, Details: i.Facts.Details,
	}
	if i.State == incident.Acknowledged {
		r.AckedBy, r.AckedUntil = i.AckedBy, &i.AckedUntil
	}
	return r
}

// lastSign is the age of the youngest sign of life, and what it is.
func lastSign(e diagnose.Evidence) (age time.Duration, from string, ok bool) {
	take := func(a diagnose.Span, of string) {
		if a >= 0 && (!ok || time.Duration(a) < age) {
			age, from, ok = time.Duration(a), of, true
		}
	}
	if e.Beat.Has {
		take(e.Beat.Age, "heartbeat")
	}
	for _, s := range e.Sessions {
		for _, a := range []diagnose.Span{s.LastAge, s.StatusAge} {
			if a > 0 { // 0: the session does not say
				take(a, "session")
			}
		}
	}
	if e.Output.Known {
		take(e.Output.Age, "output")
	}
	return age, from, ok
}

func printAgents(w io.Writer, h homeRecord) error {
	if h.Trouble != "" {
		fmt.Fprintln(w, lostRegistry(h))
	}
	if len(h.Agents) == 0 {
		_, err := fmt.Fprintf(w, "No agent is declared in %s.\nDeclare one: outlive agent add NAME, or find those that run: outlive agent scan\n", h.Registry)
		return err
	}
	var rows [][]string
	for _, r := range h.Agents {
		rows = append(rows, agentRow(r, ""))
	}
	if err := printTable(w, agentHeading, rows); err != nil {
		return err
	}
	if err := printTroubles(w, h, ""); err != nil {
		return err
	}
	if len(h.Notes) > 0 {
		fmt.Fprintln(w, "\n"+strings.Join(h.Notes, "\n"))
	}
	return nil
}

func lostRegistry(h homeRecord) string {
	return "registry: " + h.Trouble + "; the last good copy, if there is one, is used"
}

var agentHeading = []string{"NAME", "KIND", "STATE", "SINCE", "PROCESS", "LAST SIGN", "INCIDENT"}

// agentRow is an agent's row; prefix is what its name begins with on another machine.
func agentRow(r agentRecord, prefix string) []string {
	t := cmp.Or(r.Text, &agentShown{State: r.State, Since: "-", Process: "-", LastSign: "-", Incident: "-"}) // of an older outlive
	row := []string{prefix + r.Key, r.Kind, t.State, t.Since, t.Process, t.LastSign, t.Incident}
	for n := range row {
		row[n] = logline.Printable(row[n])
	}
	return row
}

// printTroubles writes what is wrong with each agent that is in trouble.
func printTroubles(w io.Writer, h homeRecord, prefix string) error {
	for _, r := range h.Agents {
		if r.Text == nil || len(r.Text.Trouble) == 0 {
			continue
		}
		fmt.Fprintln(w, "\n"+headline(prefix+r.Key, r.Text.State, r.Text.Since))
		if err := printAspects(w, r.Text.Trouble); err != nil {
			return err
		}
	}
	return nil
}

// noMonitor is how the line begins that is about no agent.
const noMonitor = "No monitor runs here"

// notesOf are lines below the table.
func notesOf(o monitor.Options, view monitor.View) (list []string) {
	add := func(format string, args ...any) { list = append(list, logline.Printable(fmt.Sprintf(format, args...))) }
	for _, f := range view.Findings {
		if waits := f.Evidence.Waits(); len(waits) > 0 && f.Diagnosis.Well() { // else it stands with the trouble
			add("%s: waits for %s", f.Key, strings.Join(waits, "; "))
		}
		for _, why := range f.Evidence.Unread {
			add("%s: not all that it shows can be read, so it is not ended: %s", f.Key, why)
		}
		if text := joinedText(f.Joined, view.At); text != "" {
			add("%s: at its terminal: %s", f.Key, text)
		}
	}
	for _, i := range view.Incidents {
		if incident.AboutServer(i.Key.Class) {
			add("%s: %s", i.Trouble(), cmp.Or(i.Facts.ToDo, i.Facts.Details))
		}
	}
	for _, warning := range view.Registry.Warned() {
		add("registry: %s", warning)
	}
	if view.Running == 0 {
		add(noMonitor+": nothing is done, and nobody is told. Start it: outlive monitor%s", homeFlag(o.Home))
	}
	return list
}

// stateWord is what an agent is called in a table: its class, and why it is not watched where that is so.
func stateWord(f monitor.Finding) string {
	if f.Diagnosis.Class == diagnose.NotWatched {
		return cmp.Or(logline.Printable(f.Evidence.Status), string(f.Diagnosis.Class))
	}
	if v := f.Diagnosis; v.Class == diagnose.RateLimited && v.Hold > 0 {
		return "limit, resets in " + briefly(time.Duration(v.Hold))
	}
	return incident.Words(string(f.Diagnosis.Class))
}

// sinceText is for how long an agent has stood as it does.
func sinceText(f monitor.Finding, at time.Time) string {
	if f.Since.IsZero() || !f.Since.Before(at) {
		return "-"
	}
	return briefly(at.Sub(f.Since))
}

func processText(f monitor.Finding) string {
	switch {
	case f.Process != (process.Identity{}):
		return fmt.Sprint(f.Process.PID)
	case f.Evidence.Process.Life != diagnose.Unknown:
		return string(f.Evidence.Process.Life)
	}
	return "-"
}

func signText(e diagnose.Evidence) string {
	age, from, ok := lastSign(e)
	if !ok {
		return "-"
	}
	return briefly(age) + " ago (" + from + ")"
}

// incidentText is who was told of an agent's incidents.
func incidentText(list []incident.Incident, now time.Time) string {
	var words []string
	for _, i := range list {
		switch {
		case i.State == incident.Acknowledged:
			words = append(words, "acknowledged by "+logline.Printable(i.AckedBy))
		case i.NotifiedAt.IsZero():
			words = append(words, "nobody told yet")
		default:
			words = append(words, "told "+briefly(now.Sub(i.NotifiedAt))+" ago")
		}
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}

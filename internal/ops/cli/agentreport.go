package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

const agentReportLong = `Show what has happened to each agent of a home lately: what the monitor did, what people were told, what it has cost, and what
waits for a person now. Costs and tokens are those of the sessions that go on, from their beginning, and only as far as the
agent's CLI writes them. What is older than 30 days is forgotten.

EXIT STATUS
  0  shown
  1  the home could not be read
  2  a mistake in the command line`

// reportRecord is a report for programs. Its names are stable.
type reportRecord struct {
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to"`
	Agents []agentReport `json:"agents"`
	// Waits are the incidents of all agents, and of many at once, that are not over.
	Waits []incidentRecord `json:"waits"`
}

// agentReport is one agent in a report.
type agentReport struct {
	Name      string           `json:"name"`
	Kind      string           `json:"kind"`
	State     string           `json:"state"`
	Acts      []recovery.Act   `json:"acts"`
	Incidents []incidentRecord `json:"incidents"`
	CostUSD   float64          `json:"cost_usd,omitempty"` // 0: not known
	Tokens    int64            `json:"tokens,omitempty"`   // the same

	state string // for people
	lines []reportLine
}

// reportLine is something that happened.
type reportLine struct {
	at   time.Time
	text string
}

func newAgentReport(io streams) *cobra.Command {
	var home string
	var since time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Show what happened to all agents lately, what it cost, and what waits for you",
		Long:  agentReportLong,
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since <= 0 {
				return fail(exitUsage, "--since %s: must be above 0", since)
			}
			o, err := lookOptions(home)
			if err != nil {
				return err
			}
			view, err := monitor.InspectSince(cmd.Context(), o, time.Now().Add(-since))
			if err != nil {
				return &exitError{exitFailure, err}
			}
			r := reportOf(view, since)
			if asJSON {
				return encodeJSON(io.out, r)
			}
			return printReport(io.out, o, view, r)
		},
	}
	cmd.Flags().DurationVar(&since, "since", 12*time.Hour, "how far back")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as one JSON object")
	defineHome(cmd.Flags(), &home)
	return cmd
}

func reportOf(view monitor.View, since time.Duration) reportRecord {
	r := reportRecord{From: view.At.Add(-since).Round(0), To: view.At.Round(0), Agents: []agentReport{}, Waits: []incidentRecord{}}
	for _, f := range view.Findings {
		a := agentReport{Name: f.Key, Kind: string(f.Kind), State: string(f.Diagnosis.Class), Acts: []recovery.Act{}, Incidents: []incidentRecord{}, state: stateWord(f)}
		for _, s := range f.Evidence.Sessions {
			a.CostUSD += s.CostUSD
			a.Tokens += s.Tokens
		}
		for n, act := range f.Acts {
			if act.At.Before(r.From) || act.Refunded {
				continue
			}
			a.Acts = append(a.Acts, act)
			a.lines = append(a.lines, reportLine{act.At, doneWhy(act) + prefixed("; ", effectText(effectOf(f, n, r.To), r.To))})
		}
		for _, i := range view.Past {
			if i.Key.Agent == f.Key {
				a.Incidents = append(a.Incidents, incidentRecordOf(i))
				a.lines = append(a.lines, reportLine{i.Opened, toldText(i, r.To)})
			}
		}
		r.Agents = append(r.Agents, a)
	}
	for _, i := range view.Incidents {
		r.Waits = append(r.Waits, incidentRecordOf(i))
	}
	return r
}

// doneWhy is what was done, and why.
func doneWhy(a recovery.Act) string {
	text := incident.DoneWords(string(a.Rung))
	switch a.Asked {
	case "start":
		text = "started"
	case "say":
		text = "given a text"
	}
	if a.Asked != "" || a.Stall == "" {
		return text + " by hand"
	}
	return text + ", because it " + incident.Words(a.Class)
}

// effectOf is what came of an agent's n-th act.
func effectOf(f monitor.Finding, n int, now time.Time) recovery.Effect {
	var trouble time.Time
	if !f.Diagnosis.Well() {
		trouble = cmp.Or(f.Since, now)
	}
	return recovery.EffectOf(f.Acts, n, trouble, now)
}

// effectText is what came of an act, for people; "": nothing was seen.
func effectText(e recovery.Effect, now time.Time) string {
	switch {
	case e.Again.IsZero():
		return ""
	case !e.Helped.IsZero():
		return "it worked again at " + clockOf(e.Again, now)
	case e.Over:
		return "it worked again for " + briefly(e.Lasted) + " only"
	}
	return "it has worked again since " + clockOf(e.Again, now)
}

// toldText is one incident for people.
func toldText(i incident.Incident, now time.Time) string {
	text := "you were told: it "
	if i.NotifiedAt.IsZero() {
		text = "nobody could be told: it "
	}
	text += incident.Words(i.Key.Class) + ": " + i.Facts.Details
	switch i.State {
	case incident.Resolved:
		text += strings.TrimSuffix("; over at "+clockOf(i.Resolved, now)+", "+i.Ending, ", ")
	case incident.Acknowledged:
		text += "; acknowledged by " + i.AckedBy
	}
	return text
}

func printReport(w io.Writer, o monitor.Options, view monitor.View, r reportRecord) error {
	if len(r.Agents) == 0 {
		_, err := fmt.Fprintf(w, "No agent is declared in %s.\n", registryOf(o))
		return err
	}
	fmt.Fprintf(w, "The last %s, %s to %s\n", briefly(r.To.Sub(r.From)), r.From.Local().Format("2006-01-02 15:04"), r.To.Local().Format("2006-01-02 15:04"))
	for _, a := range r.Agents {
		fmt.Fprintf(w, "\n%s (%s): %s\n", logline.Printable(a.Name), a.Kind, a.state)
		for _, l := range slices.SortedStableFunc(slices.Values(a.lines), func(a, b reportLine) int { return a.at.Compare(b.at) }) {
			fmt.Fprintf(w, "  %s  %s\n", clockOf(l.at, r.To), logline.Printable(l.text))
		}
		if len(a.lines) == 0 {
			fmt.Fprintln(w, "  nothing happened")
		}
		var cost []string
		if a.CostUSD > 0 {
			cost = append(cost, fmt.Sprintf("$%.2f", a.CostUSD))
		}
		if a.Tokens > 0 {
			cost = append(cost, fmt.Sprintf("%d tokens", a.Tokens))
		}
		if len(cost) > 0 {
			fmt.Fprintln(w, "  cost of its sessions so far: "+strings.Join(cost, ", "))
		}
	}
	if err := printWaits(w, o, view); err != nil {
		return err
	}
	if view.Running == 0 {
		fmt.Fprintln(w, "No monitor runs here: nothing is done, and nobody is told. Start it: outlive monitor"+homeFlag(o.Home))
	}
	return nil
}

// askedOfMany is what is asked of a person about agents that fail together: all have the trouble that one of them has.
func askedOfMany(view monitor.View, i incident.Incident) string {
	for _, f := range view.Findings {
		if slices.Contains(i.Facts.Members, f.Name) && !f.Diagnosis.Well() {
			return incident.ToDo(string(f.Diagnosis.Class), f.Key, waysTo(view, f, string(f.Diagnosis.Class)))
		}
	}
	return ""
}

// printWaits writes what waits for a person now, with what is asked and the commands for it.
func printWaits(w io.Writer, o monitor.Options, view monitor.View) error {
	fmt.Fprintf(w, "\nWaits for you: %d\n", len(view.Incidents))
	for _, i := range view.Incidents {
		fmt.Fprintf(w, "\n%s, since %s (%s)\n", logline.Printable(i.Trouble()), clockOf(i.Began(), view.At), briefly(view.At.Sub(i.Began())))
		list := []aspect{{Name: "what", Text: i.Facts.Details}, {Name: "done", Text: toldWhom(view, i)}}
		if at := slices.IndexFunc(view.Findings, func(f monitor.Finding) bool { return f.Key == i.Key.Agent }); at >= 0 {
			list = append(list, askedOf(o, view, view.Findings[at], i.Key.Class)...)
		} else if i.State != incident.Acknowledged {
			list = append(list, aspect{Name: "agents", Text: strings.Join(i.Facts.Members, ", ")}, aspect{Name: "to do", Text: cmp.Or(i.Facts.ToDo, askedOfMany(view, i))}, aspect{Name: "next", Text: ackCommand(o, i)})
		}
		list = slices.DeleteFunc(list, func(a aspect) bool { return a.Text == "" })
		if err := printAspects(w, list); err != nil {
			return err
		}
	}
	return nil
}

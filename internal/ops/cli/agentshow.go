package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// shownRecord is everything of one agent for programs.
type shownRecord struct {
	agentRecord
	Evidence diagnose.Evidence `json:"evidence"`
	Used     int               `json:"budget_used"` // starts, of Max
	Max      int               `json:"budget_max"`  // 0: none is needed now
	Window   string            `json:"budget_window,omitempty"`
	Acts     []recovery.Act    `json:"acts"`
	Ping     string            `json:"ping,omitempty"`
}

// explainedRecord is a diagnosis with its reasons for programs.
type explainedRecord struct {
	Name      string             `json:"name"`
	Diagnosis diagnose.Diagnosis `json:"verdict"`
	Steps     []diagnose.Step    `json:"steps"`
	Evidence  diagnose.Evidence  `json:"evidence"`
	Action    string             `json:"action"`
	Reason    string             `json:"reason,omitempty"`
	LeftOut   []string           `json:"left_out,omitempty"` // steps that cannot be done, and why
	Used      int                `json:"budget_used"`
	Max       int                `json:"budget_max"`
}

const agentExplainLong = `Show why an agent is judged as it is: what is wrong, what was done and what the monitor would do about it, what is asked of
you, how sure that is, every rule with its answer down to the one that decided, and what was seen. In brackets are the names
that the records and the registry use.

EXIT STATUS
  0  shown
  1  no such agent, or the home could not be read`

func newAgentShow(io streams) *cobra.Command {
	return newLook("show", "Show everything that is known of one agent", `Show everything that is known of one agent: its state, process and session, what was done about it and what is left of
its budget, its open incidents, and the address that takes its pings.

EXIT STATUS
  0  shown
  1  no such agent, or the home could not be read`,
		func(ctx context.Context, o monitor.Options, view monitor.View, f monitor.Finding, asJSON bool) error {
			ping, err := pingAddress(ctx, o, view, f)
			if err != nil {
				return err
			}
			if asJSON {
				return encodeJSON(io.out, shownRecordOf(f, view.At, ping))
			}
			return printAgent(io.out, f, view, ping)
		})
}

func newAgentExplain(io streams) *cobra.Command {
	return newLook("explain", "Show why an agent is judged as it is, and what would be done", agentExplainLong,
		func(_ context.Context, o monitor.Options, view monitor.View, f monitor.Finding, asJSON bool) error {
			if asJSON {
				return encodeJSON(io.out, explainedRecord{
					Name: f.Key, Diagnosis: f.Diagnosis, Steps: diagnose.Explain(f.Evidence, f.Policy).Steps, Evidence: f.Evidence, Action: f.Action,
					Reason: f.Decision.Reason, LeftOut: f.Decision.LeftOut, Used: f.Decision.Budget.Used, Max: f.Decision.Budget.Max,
				})
			}
			return printExplained(io.out, o, view, f)
		})
}

// printExplained is the diagnosis first, then what is done and asked, then how the diagnosis came about.
func printExplained(w io.Writer, o monitor.Options, view monitor.View, f monitor.Finding) error {
	fmt.Fprintln(w, headline(f.Key, stateWord(f), sinceText(f, view.At)))
	list := []aspect{{Name: "what", Text: f.Diagnosis.Details}, {Name: "would do", Text: wouldDo(f)}}
	if !f.Diagnosis.Well() {
		list = troubleAspects(o, view, f)
		for i, why := range f.Decision.LeftOut {
			list = append(list, aspect{Name: onFirst(i, "cannot do"), Text: leftOutText(why)})
		}
	}
	if err := printAspects(w, append(list, aspect{Name: "sure", Text: sureText(f.Diagnosis)})); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nWhat was seen:")
	for _, line := range evidenceLines(f.Evidence) {
		fmt.Fprintln(w, "  "+logline.Printable(line))
	}
	fmt.Fprintln(w, "\nThe rules in their order, down to the one that decided (>):")
	fmt.Fprint(w, diagnose.Explain(f.Evidence, f.Policy))
	return nil
}

// newLook is a verb that looks at one agent.
func newLook(verb, short, long string, show func(context.Context, monitor.Options, monitor.View, monitor.Finding, bool) error) *cobra.Command {
	var home string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   verb + " NAME",
		Short: short,
		Long:  long,
		Args:  takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, view, err := inspectHome(cmd.Context(), home)
			if err != nil {
				return err
			}
			f, err := findingNamed(o, view, args[0])
			if err != nil {
				return err
			}
			return show(cmd.Context(), o, view, f, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as one JSON object")
	defineHome(cmd.Flags(), &home)
	return cmd
}

// pingAddress is where an agent's pings go; "" where nobody takes any.
func pingAddress(ctx context.Context, o monitor.Options, view monitor.View, f monitor.Finding) (string, error) {
	if view.Registry == nil || view.Registry.Listen == "" {
		return "", nil
	}
	secret, err := monitor.PingSecret(ctx, o)
	if err != nil {
		return "", fail(exitFailure, "%w", err)
	}
	return "http://" + view.Registry.Listen + "/ping/" + monitor.PingUUID(secret, f.Key), nil
}

func shownRecordOf(f monitor.Finding, at time.Time, ping string) shownRecord {
	b := f.Decision.Budget
	r := shownRecord{agentRecord: agentRecordOf(f, at), Evidence: f.Evidence, Used: b.Used, Max: b.Max, Acts: f.Acts, Ping: ping}
	if b.Window > 0 {
		r.Window = b.Window.String()
	}
	if r.Acts == nil {
		r.Acts = []recovery.Act{}
	}
	return r
}

func printAgent(w io.Writer, f monitor.Finding, view monitor.View, ping string) error {
	var rows [][]string
	row := func(name, format string, args ...any) {
		rows = append(rows, []string{name, logline.Printable(fmt.Sprintf(format, args...))})
	}
	v := f.Diagnosis
	row("agent", "%s (%s)", f.Key, f.Kind)
	if f.Name != f.Key {
		row("name", "%s", f.Name)
	}
	row("directory", "%s", cmp.Or(f.Path, "-"))
	state := fmt.Sprintf("%s (%s, rule %s, %s confidence)", stateWord(f), v.Class, v.Rule, v.Confidence)
	if since := sinceText(f, view.At); since != "-" {
		state += ", for " + since
	}
	row("state", "%s", state)
	row("", "%s", v.Details)
	row("would do", "%s", wouldDo(f))
	row("process", "%s", cmp.Or(f.Evidence.Process.Detail, "not known"))
	row("session", "%s", cmp.Or(f.Session, "-"))
	switch text := joinedText(f.Joined, view.At); {
	case text != "":
		row("terminal", "%s", text)
	case f.Joinable:
		row("terminal", "nobody is at it; join it: outlive agent attach %s", f.Key)
	}
	row("last sign", "%s", signText(f.Evidence))
	if f.Phase != "" {
		row("phase", "%s", f.Phase)
	}
	if ping != "" {
		row("pings", "%s", ping)
	} else if view.Registry != nil {
		row("pings", "not taken: the registry has no listen address")
	}
	for i, a := range f.Acts {
		row(onFirst(i, "done"), "%s", actText(a, effectOf(f, i, view.At), view.At))
	}
	for i, inc := range f.Incidents {
		row(onFirst(i, "incidents"), "%s", incidentLine(inc, view.At))
	}
	return (&columns{to: w}).write(rows)
}

// onFirst is the name of a row's group on its first row only.
func onFirst(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

// wouldDo is what the monitor does now, and why.
func wouldDo(f monitor.Finding) string {
	if f.Diagnosis.Well() {
		return "nothing: nothing is wrong"
	}
	s := incident.DoWords(f.Action)
	if f.Decision.Reason != "" {
		s += ": " + f.Decision.Reason
	}
	if b := f.Decision.Budget; b.Max > 0 {
		s += fmt.Sprintf(" (%d of %d starts for this problem used", b.Used, b.Max)
		if b.Window > 0 {
			s += " in " + briefly(b.Window)
		}
		s += ")"
	}
	return s
}

func actText(a recovery.Act, e recovery.Effect, now time.Time) string {
	s := fmt.Sprintf("%s, %s ago", doneWhy(a), briefly(now.Sub(a.At)))
	if a.Refunded {
		return s + ", not done in the end"
	}
	return s + prefixed(", ", effectText(e, now))
}

func incidentLine(i incident.Incident, now time.Time) string {
	s := fmt.Sprintf("%s  %s %s, %s, for %s", i.ID, i.Facts.Severity, i.Key.Class, i.State, briefly(now.Sub(i.Opened)))
	if i.State == incident.Acknowledged {
		s += fmt.Sprintf(" (by %s, %s left)", i.AckedBy, briefly(i.AckedUntil.Sub(now)))
	}
	return s
}

// evidenceLines are what was seen, one line for each source.
func evidenceLines(e diagnose.Evidence) []string {
	lines := []string{"registry: " + e.Status}
	add := func(there bool, format string, args ...any) {
		if there {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	add(e.Grace != "", "grace: %s", e.Grace)
	b := e.Beat
	when := briefly(time.Duration(b.Age)) + " ago"
	if b.Age < 0 {
		when = briefly(-time.Duration(b.Age)) + " in the future: a clock is wrong"
	}
	add(b.Has, "heartbeat: %s%s%s", when, prefixed(", ", string(b.State)), prefixed(", ", b.Note))
	process := "process: " + cmp.Or(e.Process.Detail, string(e.Process.Life))
	if e.Process.Age > 0 { // not known of one that has ended
		process += ", started " + briefly(time.Duration(e.Process.Age)) + " ago"
	}
	add(e.Process.Life != diagnose.Unknown, "%s", process)
	add(e.Exit.Known, "exit: code %d%s", e.Exit.Code, prefixed(", signal ", e.Exit.Signal))
	for _, s := range e.Sessions {
		lines = append(lines, sessionLine(s))
	}
	for _, call := range e.Waits() {
		lines = append(lines, "waits for: "+call)
	}
	for _, h := range e.Hooks {
		add(true, "permission asked %s ago: %s %s", briefly(time.Duration(h.Age)), h.Tool, h.Text)
	}
	add(e.Title.Text != "", "terminal's title: %q", e.Title.Text)
	add(e.Output.Known, "output: %s ago", briefly(time.Duration(e.Output.Age)))
	add(e.CPU.Known, "descendants: %.1f %% of a core", 100*e.CPU.Share)
	add(e.Manifest.Has, "manifest: %d failures pending, %d blocking notifications", len(e.Manifest.Failures), len(e.Manifest.Blocking))
	for _, why := range e.Unread {
		add(true, "cannot be read: %s", why)
	}
	return lines
}

func sessionLine(s diagnose.Session) string {
	line := fmt.Sprintf("session: %s %s", s.Kind, s.ID)
	line += prefixed(", ", string(s.Status)) + prefixed(" for ", string(s.WaitingFor))
	if s.Open != "" {
		line += fmt.Sprintf(", open %s for %s", s.Open, briefly(time.Duration(s.OpenAge))) + prefixed(": ", strings.TrimSpace(s.Tool+" "+s.OpenText))
	}
	if s.Error.Kind != "" {
		line += ", error (" + string(s.Error.Kind) + ")" + prefixed(": ", s.Error.Text)
	}
	if s.Unwritten {
		return line + fmt.Sprintf(", so for %s, no record of it", briefly(time.Duration(s.StatusAge)))
	}
	return line + fmt.Sprintf(", last record %s ago", briefly(time.Duration(s.LastAge)))
}

// prefixed is a text behind what leads to it, or nothing.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

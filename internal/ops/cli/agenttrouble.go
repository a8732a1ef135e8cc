package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// aspect is one line about an agent. One without a name continues the one before it.
type aspect = overview.Aspect

// printAspects writes the lines below the agent's.
func printAspects(w io.Writer, list []aspect) error {
	var rows [][]string
	for _, a := range list {
		rows = append(rows, []string{"  " + logline.Printable(a.Name), logline.Printable(a.Text)})
	}
	return (&columns{to: w}).write(rows)
}

// headline is an agent's name with its state and how long it has been so.
func headline(name, state, since string) string {
	text := name + ": " + state
	if since != "-" {
		text += ", for " + since
	}
	return logline.Printable(text)
}

// troubleAspects are what a notified person needs to know: the trouble, what was done, what follows, what to do, and the
// commands.
func troubleAspects(o monitor.Options, view monitor.View, f monitor.Finding) []aspect {
	list := []aspect{{Name: "what", Text: f.Diagnosis.Details}}
	if text := doneSoFar(view, f); text != "" {
		list = append(list, aspect{Name: "done", Text: text})
	}
	list = append(list, aspect{Name: "would do", Text: wouldDo(f)})
	if !humansTurn(view, f) && !onlyAnswered(f) && view.Running != 0 {
		return append(list, aspect{Name: "to do", Text: "nothing: the monitor deals with it"})
	}
	return append(list, askedOf(o, view, f, string(f.Diagnosis.Class))...)
}

// humansTurn reports whether a person was notified of the agent's trouble, or would be now.
func humansTurn(view monitor.View, f monitor.Finding) bool {
	return len(incidentsOf(view, f)) > 0 || f.Decision.Rung.Tells()
}

// onlyAnswered reports whether nothing but a person's answer helps the agent, whoever was notified of it so far.
func onlyAnswered(f monitor.Finding) bool {
	return slices.Contains([]diagnose.Class{diagnose.WaitingPermission, diagnose.WaitingQuestion, diagnose.WaitingOther}, f.Diagnosis.Class)
}

// waysTo are the ways in which a person reaches an agent in a class of trouble. A message that was not sent takes no reply.
func waysTo(view monitor.View, f monitor.Finding, class string) incident.Ways {
	w := f.Ways
	for _, i := range incidentsOf(view, f) {
		if i.Key.Class == class {
			w = i.Facts.Ways
			w.NoReplies = w.NoReplies || i.NotifiedAt.IsZero()
			return w
		}
	}
	w.NoReplies = true
	return w
}

// incidentsOf are an agent's open incidents, including those of several agents.
func incidentsOf(view monitor.View, f monitor.Finding) []incident.Incident {
	list := slices.Clone(f.Incidents)
	for _, i := range view.Incidents {
		if i.Key.Class == incident.Mass && !f.Diagnosis.Well() && slices.Contains(i.Facts.Members, f.Name) {
			list = append(list, i)
		}
	}
	return list
}

// askedOf is what a person should do about an agent's trouble, with the commands.
func askedOf(o monitor.Options, view monitor.View, f monitor.Finding, class string) []aspect {
	var list []aspect
	todo := incident.ToDo(class, incident.Quoted(f.Key)+homeFlag(o.Home), waysTo(view, f, class))
	if todo != "" {
		list = append(list, aspect{Name: "to do", Text: todo})
	}
	for i, command := range nextCommands(o, view, f, strings.Contains(todo, "start it again")) {
		list = append(list, aspect{Name: onFirst(i, "next"), Text: command})
	}
	return list
}

// nextCommands are useful commands for an agent in trouble, the most likely first. again says that it may need a restart
// although it runs.
func nextCommands(o monitor.Options, view monitor.View, f monitor.Finding, again bool) []string {
	name := incident.Quoted(f.Key) + homeFlag(o.Home)
	var list []string
	if f.Joinable {
		list = append(list, "outlive agent attach "+name)
	}
	ended := f.Evidence.Process.Life == diagnose.Dead
	if again || ended {
		list = append(list, startCommands(view, f, name, ended)...)
	}
	for _, i := range incidentsOf(view, f) {
		if i.State != incident.Acknowledged {
			return append(list, ackCommand(o, i))
		}
	}
	return list
}

// withStart adds the command that starts an agent again, where its registry declares one, to what a person should do about it.
func withStart(view monitor.View, f monitor.Finding, name, todo string) string {
	const again = "start it again"
	if view.Registry == nil || !strings.Contains(todo, again) || strings.Contains(todo, again+" (") {
		return todo
	}
	if _, declared := view.Registry.Agent(f.Key); !declared {
		return todo
	}
	how := "as you have started it: its declaration has no command"
	if commands := startCommands(view, f, name, f.Evidence.Process.Life == diagnose.Dead); len(commands) > 0 {
		how = commands[0]
	}
	return strings.Replace(todo, again, again+" ("+how+")", 1)
}

// ackCommand acknowledges an incident: all of its agent, or one of many agents.
func ackCommand(o monitor.Options, i incident.Incident) string {
	name := incident.Quoted(i.Key.Agent)
	if i.Key.Class == incident.Mass || incident.AboutServer(i.Key.Class) {
		name = i.ID
	}
	return "outlive ack " + name + homeFlag(o.Home) + "   # no reminders for four hours"
}

// startCommands start an agent again, if its declaration allows it.
func startCommands(view monitor.View, f monitor.Finding, name string, ended bool) []string {
	if view.Registry == nil {
		return nil
	}
	a, _ := view.Registry.Agent(f.Key)
	switch {
	case len(a.Start.Resume) > 0 && f.Session != "":
		return []string{"outlive agent resume " + name}
	case len(a.Start.Cmd) > 0 && ended:
		return []string{"outlive agent start " + name}
	case len(a.Start.Cmd) > 0:
		return []string{"outlive agent restart " + name}
	}
	return nil
}

// doneSoFar is what was done about an agent's present trouble, and who was notified.
func doneSoFar(view monitor.View, f monitor.Finding) string {
	var done []string
	now := view.At
	for _, a := range f.Acts {
		if a.Class == string(f.Diagnosis.Class) && !a.Refunded && !a.At.Before(f.Since) {
			words := incident.DoneWords(string(a.Rung)) + " at "
			if a.Rung == recovery.Hold {
				words = "waits since "
			}
			done = append(done, words+clockOf(a.At, now))
		}
	}
	for _, i := range incidentsOf(view, f) {
		done = append(done, toldWhom(view, i))
	}
	return strings.Join(done, ", ")
}

// clockOf is a time of day, with the date where it is of another day.
func clockOf(t, now time.Time) string { return incident.TimeOf(t.Local(), now) }

// tierWords are the kinds of evidence for people.
var tierWords = map[diagnose.Tier]string{
	diagnose.Hook: "it, its hooks or its owner say so", diagnose.File: "its CLI's own files show it",
	diagnose.Process: "the system's table of processes shows it", diagnose.Guess: "it is concluded, from silence or from a text",
}

// sureText is the confidence of a diagnosis, its evidence, and its names in the records.
func sureText(v diagnose.Diagnosis) string {
	names := "rule " + v.Rule + ", " + string(v.Class)
	if v.Stall != diagnose.NoStall {
		names += ", " + string(v.Stall)
	}
	text := fmt.Sprintf("%s confidence: %s (%s)", v.Confidence, cmp.Or(tierWords[v.Tier], string(v.Tier)), names)
	return text + prefixed("; less sure than usual: ", v.Doubt)
}

// leftOutText is why a step cannot be done, with its name in the registry behind the words.
func leftOutText(why string) string {
	step, rest, _ := strings.Cut(why, " ")
	if words := incident.DoingWords(step); words != "" {
		return words + " (" + step + ") " + rest
	}
	return why
}

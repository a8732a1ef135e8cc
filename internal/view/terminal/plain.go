package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// Lines are an overview in sentences: the summary first, then what cannot be seen, incidents, servers and agents. What changes all
// the time, such as memory, is left out.
func Lines(s overview.State) []string {
	list := []string{Summary(s)}
	for _, text := range Trouble(s) {
		list = append(list, "Not seen: "+logline.Printable(text))
	}
	for _, i := range s.Incidents {
		list = append(list, "Incident "+sentence(i.Title+", "+IncidentState(i), IncidentFacts(i, s)))
	}
	for _, one := range s.Servers {
		word := "Server "
		if one.Gateway {
			word = "Gateway "
		}
		list = append(list, word+sentence(one.Key+": "+StateOf(one.State, one.Health), ServerFacts(one, s)))
	}
	for _, a := range s.Agents {
		list = append(list, "Agent "+sentence(a.Name+": "+StateOf(a.State, a.Health), AgentFacts(a, s)))
	}
	return list
}

// Summary is everything in a few words.
func Summary(s overview.State) string {
	servers := 0 // that are no gateway
	for _, one := range s.Servers {
		if !one.Gateway && !one.Gone {
			servers++
		}
	}
	return fmt.Sprintf("%s; %s, %s", Wrong(s), plural(servers, "server"), plural(len(s.Agents), "agent"))
}

// Wrong is how much is wrong, and waits for a person.
func Wrong(s overview.State) string {
	text := "nothing is wrong"
	if s.Wrong > 0 {
		text = fmt.Sprintf("%d wrong", s.Wrong)
	}
	switch {
	case s.Waiting == 1:
		text += ", 1 waits for you"
	case s.Waiting > 1:
		text += fmt.Sprintf(", %d wait for you", s.Waiting)
	}
	return text
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Trouble is what could not be looked at, which machines do not answer, and that nobody looks after the agents.
func Trouble(s overview.State) []string {
	list := s.Trouble[:len(s.Trouble):len(s.Trouble)]
	for _, h := range s.Hosts {
		if h.Health.Wrong() || h.Why != "" {
			list = append(list, h.Name+": "+h.State+": "+strings.ReplaceAll(h.Why, "\n", "; "))
		}
	}
	if s.Unwatched() {
		list = append(list, "no monitor runs: nothing is done, nobody is told. Start: outlive monitor")
	}
	return list
}

// StateOf is a state with its health, where the one does not say the other.
func StateOf(state string, h overview.Health) string {
	word := overview.StateWord(state)
	if h.Wrong() && h.Word() != word {
		return word + " (" + h.Word() + ")"
	}
	return word
}

// IncidentState is how an incident stands.
func IncidentState(i overview.Incident) string {
	switch {
	case i.Waits():
		return "waits for you"
	case i.Open():
		return i.State
	}
	return "over"
}

// IncidentFacts are what there is to say of an incident: since when, what is wrong, what was done, what is to be done.
func IncidentFacts(i overview.Incident, s overview.State) (facts []string) {
	since := "since " + overview.Clock(i.Since(), s.At)
	if !i.Open() {
		since = "from " + overview.Clock(i.Since(), s.At) + " to " + overview.Clock(i.Resolved, s.At)
	}
	facts = appendText(facts, "", since)
	facts = appendText(facts, "", i.Details)
	told := i.Told
	for _, a := range s.Agents {
		for _, one := range a.Aspects {
			if i.Open() && a.Key == i.Agent && one.Name == "done" {
				facts = appendText(facts, "outlive: ", one.Text)
				if strings.Contains(one.Text, told) {
					told = "" // it has been said
				}
			}
		}
	}
	if i.Open() && !i.Waits() && !i.Until.IsZero() {
		facts = appendText(facts, "", "acknowledged by "+i.By+" until "+overview.Clock(i.Until, s.At))
	}
	facts = appendText(facts, "", told)
	facts = appendText(facts, "", i.Ending)
	return appendText(facts, "to do: ", i.ToDo)
}

// ServerFacts are what there is to say of a server.
func ServerFacts(one overview.Server, s overview.State) (facts []string) {
	since := "since " + overview.Clock(one.Since, s.At)
	if one.Gone {
		return appendText([]string{"at " + overview.Clock(one.Since, s.At) + " or just before"}, "", one.Why)
	}
	if one.Since.IsZero() {
		since = "since when is not known"
	} else if one.State == "no answer" {
		since = "last heard of at " + overview.Clock(one.Since, s.At)
	}
	facts = appendText(facts, "", since)
	facts = appendText(facts, "", overview.WellText(one.Strip, one.Since, s.At))
	facts = appendText(facts, "", one.Why)
	if one.Health.Wrong() {
		facts = appendText(facts, "outlive ", one.Tried(s.At))
	} else if one.Restarts > 0 {
		text := fmt.Sprintf("outlive has restarted it %d ×", one.Restarts)
		if len(one.Renewals) > 0 {
			text += ", last " + one.Renewals[0].Text(s.At)
		}
		facts = appendText(facts, "", text)
	}
	if one.Queued > 0 {
		facts = appendText(facts, "", plural(one.Queued, "request")+" wait for it")
	}
	facts = appendText(facts, "client: ", strings.Join(one.Clients, ", "))
	return appendText(facts, "at ", one.URL)
}

// aspectWords are the aspects of an agent that are worth a line, and what stands before each.
var aspectWords = [][2]string{{"done", "outlive: "}, {"would do", "it would: "}, {"to do", "to do: "}, {"next", "next: "}}

// AgentFacts are what there is to say of an agent.
func AgentFacts(a overview.Agent, s overview.State) (facts []string) {
	if !a.Since.IsZero() {
		facts = appendText(facts, "", "since "+overview.Clock(a.Since, s.At))
		facts = appendText(facts, "", overview.WellText(a.Strip, a.Since, s.At))
	}
	facts = appendText(facts, "", a.Why)
	for _, w := range aspectWords {
		for _, one := range a.Aspects {
			if one.Name == w[0] {
				facts = appendText(facts, w[1], one.Text)
			}
		}
	}
	done := slices.ContainsFunc(a.Aspects, func(one overview.Aspect) bool { return one.Name == "done" })
	if n := len(a.Acts); n > 0 && !done {
		last := a.Acts[n-1]
		text := overview.Clock(last.At, s.At) + ": " + last.Text
		if last.Effect != "" {
			text += "; " + last.Effect
		}
		facts = appendText(facts, "last done: ", text)
	}
	return facts
}

// appendText adds a text in one line, unless it is empty.
func appendText(list []string, before, text string) []string {
	var words []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			words = append(words, strings.TrimRight(logline.Printable(line), "."))
		}
	}
	if words == nil {
		return list
	}
	return append(list, before+strings.Join(words, " / "))
}

// sentence puts facts after what they are about.
func sentence(about string, facts []string) string {
	return strings.Join(append([]string{logline.Printable(about)}, facts...), "; ") + "."
}

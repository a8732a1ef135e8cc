package monitor

import (
	"fmt"
	"strings"
	"time"
)

// endingGroups are the headings of the document, in its order.
var endingGroups = []string{"At work", "Finished, at rest, or left", "Interrupted by a person", "Asks", "Shows a dialog", "Held up by a limit",
	"Cannot reach its model", "Cannot log in or pay", "Its conversation is too long", "Other errors", "Hangs or repeats itself", "Its process has ended"}

// endingsDocument is docs/AGENT-ENDINGS.md.
func endingsDocument(all []ending, seen map[string]endingSeen) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# How an agent's session ends, and what the monitor does

%d sessions of Claude Code and Codex, each with what their own files show at one moment, what `+"`outlive monitor`"+` calls it, and what it
does in the hours after that while nothing changes. The agents are declared as `+"`outlive agent add`"+` does it: with a command that starts
and one that resumes them, and a phone. Unless the case says otherwise, nobody has typed in the session lately: within 30 minutes after
somebody has, nothing is ever ended.

Each case is a file of internal/agents/monitor/testdata/endings, and `+"`go test ./internal/agents/monitor -run TestEndings`"+` judges them
all; with `+"`-update`"+` it writes this document. *Recorded* is what the real CLI has written while it spoke to a mock model, *program* is a
record in that format with a text that stands in the CLI's own program, *report* is one with a text that users have reported, or made
after what they say in the issue that is named, and *written* one that was made up in that format.

Times are counted from the last thing that the session has shown. *Tells* is a message on the phone, *resumes* goes on with the same
session, *restarts* begins anew with the command that starts it. What is left out is not done.
`, len(all))
	for _, group := range endingGroups {
		fmt.Fprintf(&b, "\n## %s\n\n| case | CLI | how it ended | diagnosis | what outlive does | source |\n|---|---|---|---|---|---|\n", group)
		for _, e := range all {
			if e.Group != group {
				continue
			}
			s := seen[e.name]
			diagnosis := fmt.Sprintf("`%s`", s.diagnosis.Class)
			if !s.until.IsZero() {
				diagnosis += fmt.Sprintf(", for %s", short(s.until.Sub(s.last)))
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", e.name, map[string]string{"claude": "Claude", "codex": "Codex"}[e.CLI], e.story, diagnosis, s.does(), e.Source)
		}
	}
	return b.String()
}

// does are the steps in words.
func (s endingSeen) does() string {
	words := map[string]string{"told": "tells", "resume": "resumes", "restart": "restarts", "end": "ends it"}
	var list []string
	for _, step := range s.steps {
		name, after, _ := strings.Cut(step, " ")
		if after == "0s" {
			after = "at once"
		} else {
			after = "after " + after
		}
		list = append(list, words[name]+" "+after)
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// short is a time to the minute, for people.
func short(d time.Duration) string {
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

package diagnose

import (
	"fmt"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

func hookAsks(e *Evidence, _ Policy) answer {
	if len(e.Hooks) == 0 {
		return no("its hook holds no request")
	}
	oldest := e.Hooks[0]
	for _, r := range e.Hooks[1:] {
		if r.Age > oldest.Age {
			oldest = r
		}
	}
	why := fmt.Sprintf("it asks for permission: %s %s, since %s", oldest.Tool, oldest.Text, oldest.Age.brief())
	if more := len(e.Hooks) - 1; more > 0 {
		why += fmt.Sprintf(", and %d more", more)
	}
	return yes(oldest.Age, "%s", why)
}

// overtaken reports whether a session was at work so long after the latest beat that the beat is outdated.
func (e *Evidence) overtaken(after Span) bool {
	for _, s := range e.Sessions {
		if s.busy() && s.LastAge.plus(after) < e.Beat.Age {
			return true
		}
	}
	return false
}

// says reports whether the latest beat is of this process and has this state, and nothing newer contradicts it.
func (e *Evidence) says(s State) bool {
	return e.Beat.Has && e.Beat.State == s && !e.Process.AfterBeat && !e.overtaken(later)
}

func beatWaits(e *Evidence, _ Policy) answer {
	if !e.says(Waits) {
		return no("it does not call itself waiting")
	}
	return yes(e.Beat.Age, "it says that it waits%s; %s", noted(e.Beat.Note), e.heard())
}

func beatStuck(e *Evidence, _ Policy) answer {
	if !e.says(Stuck) {
		return no("it does not call itself stuck")
	}
	return yes(e.Beat.Age, "it says that it is stuck%s; %s", noted(e.Beat.Note), e.heard())
}

func noted(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func blocking(e *Evidence, _ Policy) answer {
	if len(e.Manifest.Blocking) == 0 {
		return no("the manifest has no blocking notification that waits")
	}
	return yes(0, "%s; %s", e.Manifest.Blocking[0], e.heard())
}

func sessionAsksPermission(e *Evidence, _ Policy) answer {
	for _, s := range e.Sessions {
		if s.Status == agentcli.Waiting && s.WaitingFor == agentcli.ForPermission {
			return yes(s.StatusAge, "%s waits for permission%s; %s", s.name(), noted(s.openText()), e.heard())
		}
	}
	if e.Title.Status == agentcli.Waiting {
		return yes(e.Title.Age, "its terminal's title is %q; %s", e.Title.Text, e.heard())
	}
	return no("no session waits for permission")
}

func sessionAsks(e *Evidence, _ Policy) answer {
	for _, s := range e.Sessions {
		switch {
		case s.Open == agentcli.Question, s.Open == agentcli.Plan:
			return yes(s.OpenAge, "%s has asked%s; %s", s.name(), noted(s.openText()), e.heard())
		case s.Status == agentcli.Waiting && s.WaitingFor != agentcli.ForPermission && s.WaitingFor != agentcli.ForDialog:
			return yes(s.StatusAge, "%s waits for an answer%s; %s", s.name(), noted(s.openText()), e.heard())
		}
	}
	return no("no session waits for an answer")
}

// Asked is what the agent asks a person. "": nothing, or what it asks is not known yet: a status is written before the question.
func (e *Evidence) Asked() string {
	if len(e.Hooks) > 0 {
		return e.Hooks[0].Tool + " " + e.Hooks[0].Text
	}
	for _, s := range e.Sessions {
		if s.Open == agentcli.Question || s.Open == agentcli.Plan || s.Status == agentcli.Waiting {
			return s.openText()
		}
	}
	return ""
}

// sessionDialog comes after every error that a session shows, because a CLI may show a dialog on top of the error
// (measured: Claude Code 2.1.330 offers another mode after its last retry). If the turn is over, nothing waits for
// the dialog.
func sessionDialog(e *Evidence, _ Policy) answer {
	for _, s := range e.Sessions {
		if s.showsDialog() && !s.Ended && !s.mayEnd() {
			return yes(s.StatusAge, "%s shows a dialog%s%s; %s", s.name(), noted(s.openText()), e.onTitle(), e.heard())
		}
	}
	return no("no session shows a dialog")
}

// escalatedCall: the call that may ask for a permission may have been allowed and be running, so it must have been silent
// for a while.
func escalatedCall(e *Evidence, p Policy) answer {
	for _, s := range e.Sessions {
		if s.Open == agentcli.Permission && s.OpenAge > p.Waiting {
			return yes(s.OpenAge, "%s has called %s %s, which may wait for a permission, and nothing came back%s; %s", s.name(), s.Tool, ago(s.OpenAge), noted(s.OpenText), e.heard())
		}
	}
	return no("no call for more rights is open for more than %s", p.Waiting)
}

// endedAsking: that a text is a question is inferred from its form, and polite agents often end with one. If another
// session works on, nothing waits for the answer.
func endedAsking(e *Evidence, p Policy) answer {
	for i := range e.Sessions {
		s := &e.Sessions[i]
		if s.Ended && s.EndedAsking && s.Status != agentcli.Busy && s.LastAge > p.Waiting && !e.worksOn(p, s) {
			return yes(s.LastAge, "%s has ended its turn %s with a question%s; %s", s.name(), ago(s.LastAge), noted(s.LastText), e.heard())
		}
	}
	return no("no turn has ended with a question more than %s ago", p.Waiting)
}

func (s Session) name() string {
	if s.Kind == "" {
		return "its session"
	}
	return "its " + string(s.Kind) + " session"
}

func (s Session) openText() string {
	if s.OpenText != "" {
		return s.OpenText
	}
	return s.Tool
}

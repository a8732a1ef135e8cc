package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// homeWatch looks at a monitor's home for an overview, and hears of the ends of its agents.
type homeWatch struct {
	given string
	exits *process.Exits // nil: it looks once
}

// seeHome has the home looked at too, unless other machines are looked at only. Its result ends that.
func seeHome(what *collect.Options, given string) (done func()) {
	if what.Dirs == nil {
		return func() {}
	}
	h := &homeWatch{given: given, exits: process.NewExits()}
	what.Home, what.HomeNews = h.look, h.exits.C
	return h.exits.Close
}

// look finds nothing where there is no home.
func (h *homeWatch) look(ctx context.Context) (*overview.Home, error) {
	o, err := lookOptions(h.given)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(o.Home); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	view, err := monitor.InspectSince(ctx, o, time.Now().Add(-overview.Day))
	if err != nil {
		return nil, fmt.Errorf("agents of %s: %w", o.Home, err)
	}
	if h.exits != nil {
		var ids []process.Identity
		for _, f := range view.Findings {
			if f.Process != (process.Identity{}) {
				ids = append(ids, f.Process)
			}
		}
		h.exits.Watch(ids)
	}
	return homeOf(o, view), nil
}

// homeOf is a home in the words of an overview.
func homeOf(o monitor.Options, view monitor.View) *overview.Home {
	h := &overview.Home{Path: o.Home, Monitor: view.Running, Channels: view.Channels, Trouble: view.Lost, At: view.At}
	for _, p := range view.Watched {
		h.Watched = append(h.Watched, overview.Period(p))
	}
	if last := len(h.Watched) - 1; last >= 0 && view.Running != 0 {
		h.Watched[last].To = view.At // it is written down once a minute
	}
	for _, f := range view.Findings {
		h.Agents = append(h.Agents, seenAgent(o, view, f))
	}
	seen := map[string]bool{}
	for _, i := range append(view.Incidents[:len(view.Incidents):len(view.Incidents)], view.Past...) {
		if !seen[i.ID] {
			seen[i.ID] = true
			h.Incidents = append(h.Incidents, seenIncident(o, view, i))
		}
	}
	return h
}

func seenAgent(o monitor.Options, view monitor.View, f monitor.Finding) overview.Agent {
	a := overview.Agent{
		Key: f.Key, Name: f.Name, Kind: string(f.Kind), Dir: f.Path, Class: string(f.Diagnosis.Class), State: stateWord(f), Health: agentHealth(view, f),
		Since: f.Since, Why: f.Diagnosis.Details, PID: f.Process.PID, Session: f.Session, Joinable: f.Joinable, LastSign: signText(f.Evidence), Evidence: evidenceLines(f.Evidence),
	}
	a.Aspects = []overview.Aspect{{Name: "sure", Text: sureText(f.Diagnosis)}}
	if !f.Diagnosis.Well() {
		a.Aspects = append(a.Aspects, troubleAspects(o, view, f)...)
	}
	for n, act := range f.Acts {
		if e := effectOf(f, n, view.At); !act.Refunded {
			a.Acts = append(a.Acts, overview.Act{At: act.At, Step: string(act.Rung), Text: doneWhy(act), Again: e.Again, Helped: e.Helped, Effect: effectText(e, view.At)})
		}
	}
	if age, from, ok := lastSign(f.Evidence); ok {
		a.SignAt, a.SignFrom = view.At.Add(-age).Round(time.Second), from
	}
	for _, v := range view.Verdicts[f.Key] {
		a.History = append(a.History, stood(v))
	}
	for _, s := range f.Evidence.Sessions {
		a.CostUSD += s.CostUSD
		a.Tokens += s.Tokens
	}
	if path := agentrun.LogPath(o.Home, f.Key); fileThere(path) {
		a.Output = path
	}
	return a
}

// stood is a verdict of earlier.
func stood(v monitor.Verdict) overview.Standing {
	s := overview.Standing{From: v.At, Health: overview.Warn, State: incident.Words(string(v.Class)), Why: v.Details}
	switch v.Standing {
	case monitor.Well:
		s.Health, s.State, s.Why = overview.Good, "well", "" // what it did then is not kept
	case monitor.Rests:
		s.Health = overview.Idle
	}
	return s
}

func fileThere(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// agentHealth is how an agent stands, at a glance.
func agentHealth(view monitor.View, f monitor.Finding) overview.Health {
	switch {
	case f.Diagnosis.Class == diagnose.NotWatched, f.Stopped, f.Evidence.Paused:
		return overview.Idle
	case f.Diagnosis.Well():
		return overview.Good
	case humansTurn(view, f):
		return overview.Bad
	}
	return overview.Warn
}

func seenIncident(o monitor.Options, view monitor.View, i incident.Incident) overview.Incident {
	s := overview.Incident{
		ID: i.ID, Class: i.Key.Class, Untold: len(i.Failing) > 0, Refused: len(i.Failing) > 0 && len(i.Failing) == len(i.Channels), Case: i.Facts.Case, Title: i.Trouble(), Details: i.Facts.Details, Severity: string(i.Facts.Severity), State: string(i.State), Opened: i.Opened, Began: i.Began(),
		Resolved: i.Resolved, Ending: i.Ending, Told: toldWhom(view, i), By: i.AckedBy, Until: i.AckedUntil, Server: i.Key.Server(),
	}
	for _, f := range view.Findings {
		if f.Key == i.Key.Agent {
			if s.Open() && string(f.Diagnosis.Class) == i.Key.Class && i.Facts.Request == "" {
				s.Details = cmp.Or(f.Diagnosis.Details, s.Details) // as it is now: ages in what the incident began with stand still
			}
			name := incident.Quoted(f.Key) + homeFlag(o.Home)
			s.Agent, s.ToDo = f.Key, withStart(view, f, name, incident.ToDo(i.Key.Class, name, waysTo(view, f, i.Key.Class)))
		}
		if i.Facts.Case == "" && slices.Contains(i.Facts.Members, f.Key) { // a case of the fleet names others' agents, too
			s.Members = append(s.Members, f.Key)
		}
	}
	if s.Agent == "" {
		s.ToDo = cmp.Or(i.Facts.ToDo, askedOfMany(view, i))
		if members := strings.Join(i.Facts.Members, ", "); members != "" {
			s.Details = strings.TrimPrefix(s.Details+": "+members, ": ")
		}
	}
	if !s.Open() {
		s.ToDo, s.Told = "", ""
		return s
	}
	for _, b := range []struct {
		verb  incident.Verb
		label string
		can   bool
	}{
		{incident.Allow, "Allow: " + i.Facts.Input, i.Facts.Request != "" && i.Facts.Input != ""},
		{incident.Deny, "Deny", i.Facts.Request != "" && i.Facts.Input != ""},
		{incident.Ack, "Acknowledge", i.State != incident.Acknowledged},
		{incident.Snooze, "Snooze", i.State != incident.Acknowledged},
		{incident.Restart, "Restart", i.Facts.Restart}, {incident.Resume, "Resume", i.Facts.Resume}, {incident.Stop, "Stop", i.Facts.Stop},
	} {
		if b.can {
			one := overview.Button{Verb: string(b.verb), Label: b.label}
			if b.verb == incident.Allow || b.verb == incident.Deny {
				one.Target = i.Facts.Request
			}
			s.Buttons = append(s.Buttons, one)
		}
	}
	return s
}

// pressed asks the monitor for what a button of an incident stands for. target is the permission request that was shown.
func pressed(ctx context.Context, home, id, verb, target string) (string, error) {
	o, view, err := inspectHome(ctx, home)
	if err != nil {
		return "", err
	}
	for _, i := range view.Incidents {
		if i.ID != id {
			continue
		}
		at := slices.IndexFunc(seenIncident(o, view, i).Buttons, func(b overview.Button) bool { return b.Verb == verb })
		if at < 0 {
			return "", fmt.Errorf("incident %s has no button %q now: look at it again", id, verb)
		}
		r := monitor.UserRequest{Verb: verb, Agent: i.Key.Agent}
		switch incident.Verb(verb) {
		case incident.Ack, incident.Snooze:
			r.Target = i.ID
		case incident.Allow, incident.Deny:
			if r.Target = target; target == "" || target != i.Facts.Request {
				return "", errors.New("it asks for something else by now: look at it again")
			}
		}
		return (&requestFlags{home: home}).ask(ctx, o, r)
	}
	return "", fmt.Errorf("incident %s is over", id)
}

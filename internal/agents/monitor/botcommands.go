package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// Rate limits for answers to messages that are written to the bot: a flood, or another bot, does not get an answer each
// time.
const (
	helpEvery   = time.Minute
	statusEvery = 3 * time.Second
)

// verbStatus asks for the state of the agents named in the request's text, of all if there is none.
const verbStatus = "status"

// Say implements [notify.Applier]: it answers /status, gives an agent a text that begins with its name and a colon, and
// replies with help to anything else.
func (a *answers) Say(ctx context.Context, tx *sql.Tx, s notify.Said) error {
	p := a.m.seen.Load()
	now := a.m.opts.clock().Wall
	key, text := p.addressed(s)
	switch named := p.named(s.Text); {
	case key != "" && !a.m.mayDecide(s.From):
		a.m.opts.Logger.Warn("a text was not given to the agent: "+notListed, slog.String("agent", key), slog.String("by", s.Who()))
		return nil
	case key != "":
		_, err := addRequest(ctx, tx, UserRequest{Agent: key, Verb: verbSay, By: s.Who(), Text: text, Channel: s.Channel, Topic: s.Topic}, now)
		return err
	case s.Command == verbStatus && (len(named) > 0 || s.Text == ""), s.Command == "" && len(named) > 0:
		if due, err := dueNow(ctx, tx, "status answered", statusEvery, now); err != nil || !due {
			return err
		}
		_, err := addRequest(ctx, tx, UserRequest{Verb: verbStatus, By: s.Who(), Text: strings.Join(named, "\n"), Channel: s.Channel, Topic: s.Topic}, now)
		return err
	}
	due, err := dueNow(ctx, tx, "help answered", helpEvery, now)
	if err != nil || !due {
		return err
	}
	return a.m.reply(ctx, tx, fmt.Sprintf("help/%d", s.Update), s.Channel, s.Topic, incident.Help())
}

// addressed returns the agent and the text of "NAME: text"; "" if no agent is named.
func (p *snapshot) addressed(s notify.Said) (key, text string) {
	name, text, ok := strings.Cut(s.Text, ":")
	text = strings.TrimSpace(text)
	if !ok || s.Command != "" || text == "" {
		return "", ""
	}
	for _, a := range p.Agents {
		if strings.EqualFold(strings.TrimSpace(name), a.Key) {
			return a.Key, text
		}
	}
	return "", ""
}

func (p *snapshot) named(text string) (keys []string) {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
	})
	for _, a := range p.Agents {
		if slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(strings.TrimRight(w, "."), a.Key) }) {
			keys = append(keys, a.Key)
		}
	}
	return keys
}

// dueNow reports whether enough time has passed since an action was last done, and records it as done.
func dueNow(ctx context.Context, tx *sql.Tx, what string, every time.Duration, now time.Time) (bool, error) {
	var last time.Time
	if _, err := fact(ctx, tx, what, &last); err != nil {
		return false, err
	}
	if since := now.Sub(last); since >= 0 && since < every { // negative: the clock was set back
		return false, nil
	}
	return true, setFact(ctx, tx, what, now.Round(0))
}

// tellStanding answers requests for the agents' state: one message for each channel.
func (r *round) tellStanding(ctx context.Context, cases []*examined) error {
	list, err := r.store.userRequests(ctx)
	if err != nil {
		return err
	}
	for _, w := range list {
		if w.Verb != verbStatus {
			continue
		}
		var standing []incident.Standing
		for _, c := range cases {
			if w.Text == "" || slices.Contains(strings.Split(w.Text, "\n"), c.Key) {
				standing = append(standing, r.standing(c))
			}
		}
		p := incident.Policy{Home: r.opts.HomeFlag, Location: r.snapshot.Registry.Zone}
		text := incident.Status(standing, r.snapshot.Lost, p, r.now.Wall)
		err = errors.Join(err, r.store.do(ctx, func(tx *sql.Tx) error {
			return errors.Join(
				r.reply(ctx, tx, fmt.Sprintf("status/%d", w.ID), w.Channel, w.Topic, text),
				closeRequest(ctx, tx, w.ID, "told", r.now.Wall))
		}))
	}
	return err
}

// standing is an agent's state for people.
func (r *round) standing(c *examined) incident.Standing {
	s := incident.Standing{Name: c.Name, State: stateWords(c), Since: c.since}
	for _, i := range r.incidents.open(c.Key) {
		if i.State != incident.Acknowledged {
			s.Waits = true
		}
	}
	if v := c.diagnosis; !v.Well() {
		s.Details = v.Details
	}
	if len(c.subject.joined) > 0 {
		s.Terminal = c.subject.joined[0].Who
		if more := len(c.subject.joined) - 1; more > 0 {
			s.Terminal += fmt.Sprintf(" and %d more", more)
		}
	}
	return s
}

// stateWords is a state in words, with the reason if the agent is not watched.
func stateWords(c *examined) string {
	if c.diagnosis.Class == diagnose.NotWatched {
		if c.agentState.Stopped {
			return "was stopped by a person"
		}
		if c.evidence.Status != "" {
			return "is not watched: " + c.evidence.Status
		}
	}
	return incident.Words(string(c.diagnosis.Class))
}

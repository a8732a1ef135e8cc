package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/fleetcases"
	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/judge"
)

const (
	// tellLimit is how long the monitor may take until its message has arrived: it looks every 5 s, and a channel has 10 s for a message.
	tellLimit = 40 * time.Second
	tellLook  = 250 * time.Millisecond
	// recordEvery is how often it is looked whether what this machine has told of is over, whichever machine judges.
	recordEvery = 5 * time.Second
	// overKept is how long a case that is over stays in the file, for a monitor that does not run just then.
	overKept = time.Hour
	// unknownFor is how long a case may be unknown to the hub, which may have lost its disk, until it counts as over.
	unknownFor = 5 * time.Minute
)

// How the keys of incidents begin, by kind.
var prefixes = map[judge.Kind]string{judge.Silent: "machine:", judge.Machines: "machines:", judge.Shared: "shared:"}

// herald has this machine's monitor tell people what the judge has found. It implements judge.Teller.
type herald struct {
	m    *member
	path string

	mu      sync.Mutex
	cases   []fleetcases.Case    // that this machine tells of, or has told of
	missing map[string]time.Time // since when the hub does not know of a case, by its id
}

func newHerald(m *member) *herald {
	return &herald{m: m, path: m.casesFile(), missing: map[string]time.Time{}}
}

// load reads what an earlier run has told of.
func (h *herald) load() (err error) {
	h.cases, err = fleetcases.Read(h.path)
	return err
}

// about is what the monitor's case is for the judge.
func about(t fleetcases.Case) (c judge.Case) {
	for kind, prefix := range prefixes {
		if subject, is := strings.CutPrefix(t.Agent, prefix); is {
			c.Kind, c.Subject = kind, subject
		}
	}
	return c
}

// reach is whom the monitor here can tell.
func (h *herald) reach() judge.Reach {
	switch home := h.m.publisher.home(); {
	case home == nil || home.Monitor == 0:
		return judge.Nobody
	case home.Channels == 0:
		return judge.Views
	}
	return judge.People
}

// Tell implements judge.Teller: it returns when the monitor's message has arrived, or where there is no channel when the monitor shows it.
func (h *herald) Tell(ctx context.Context, c judge.Case, repeated bool) error {
	id, err := h.open(c, repeated)
	if err != nil {
		return fmt.Errorf("%w: %w", judge.ErrNotSent, err)
	}
	h.m.log.Info("the monitor here is to tell of the fleet", "what", c.Kind, "of", c.Subject, "standing", c.Standing)
	late := time.After(tellLimit)
	for {
		shown, arrived, refused := h.seen(id)
		switch {
		case shown && (arrived || h.reach() == judge.Views):
			return nil
		case refused:
			h.withdraw(id)
			return fmt.Errorf("%w: the monitor's channels refuse it", judge.ErrNotSent)
		}
		select {
		case <-ctx.Done():
			h.withdraw(id)
			return context.Cause(ctx)
		case <-late:
			h.withdraw(id)
			return errors.New("the monitor here has not told of it in time")
		case <-time.After(tellLook):
		}
	}
}

// seen is how far the monitor has come with a case.
func (h *herald) seen(id string) (shown, arrived, refused bool) {
	home := h.m.publisher.home()
	if home == nil {
		return false, false, false
	}
	for _, i := range home.Incidents {
		if i.Case == id && i.Open() {
			return true, i.State != "open", i.State == "open" && i.Refused
		}
	}
	return false, false, false
}

// open has the monitor open an incident, and returns the case's id.
func (h *herald) open(c judge.Case, repeated bool) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := caseOf(c)
	for _, t := range h.cases {
		if t.Agent == next.Agent && t.Over == "" {
			return t.ID, nil
		}
	}
	if repeated {
		next.Details += " (another machine was about to tell of it and may have done so)"
	}
	h.cases = append(h.cases, next)
	if err := h.write(); err != nil {
		h.cases = h.cases[:len(h.cases)-1] // it is another machine's, and must not be written later
		return "", err
	}
	return next.ID, nil
}

// caseOf is a case in the words of a monitor.
func caseOf(c judge.Case) fleetcases.Case {
	one := fleetcases.Case{ID: rand.Text()[:12], Agent: prefixes[c.Kind] + c.Subject, Since: c.Since, Details: details(c.Kind, c.Standing, c.Agents)}
	if one.Since.IsZero() {
		one.Since = time.Now().UTC().Round(time.Second)
	}
	switch c.Kind {
	case judge.Shared:
		one.Class, one.Name, one.Members = "shared_cause", causeName(c.Subject), c.Agents
		return one
	case judge.Machines:
		one.Name = fmt.Sprintf("A group of %d machines", len(c.Agents)) + some(c.Agents)
	default:
		one.Name = "The machine " + c.Subject
	}
	switch c.Standing {
	case judge.Gone:
		one.Class = "machine_gone"
	case judge.CutOff:
		one.Class = "machine_cut_off"
	default:
		one.Class = "machine_silent"
	}
	return one
}

// namesShown is how many machines of a group a title names.
const namesShown = 5

// some are the first of some names, in brackets.
func some(names []string) string {
	if more := len(names) - namesShown; more > 0 {
		return fmt.Sprintf(" (%s and %d more)", strings.Join(names[:namesShown], ", "), more)
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// details say more of a case. agents are those that share a cause, or several machines.
func details(kind judge.Kind, s judge.Standing, agents []string) string {
	if kind == judge.Shared {
		return sharedBy(agents)
	}
	text := "nobody answers; how the connection has ended is not known"
	switch s {
	case judge.Gone:
		text = "the connection was closed without a word: outlive fleet join was killed there, or the machine went down"
	case judge.CutOff:
		text = "the connection fell silent: the machine is off, asleep or cut off; which of these cannot be known from here"
	}
	if kind == judge.Machines {
		return strings.Join(agents, ", ") + ": " + text
	}
	return text
}

// causeName is a cause for people: "account:claude:limit" is the account of claude.
func causeName(cause string) string {
	rest, account := strings.CutPrefix(cause, "account:")
	name, trouble, ok := strings.Cut(rest, ":")
	if !account || !ok {
		return cause
	}
	return "The account of " + name + " (" + trouble + ")"
}

// sharedBy says how many machines have agents with a trouble. An agent is "host/agent".
func sharedBy(agents []string) string {
	machines := map[string]bool{}
	for _, a := range agents {
		host, _, _ := strings.Cut(a, "/")
		machines[host] = true
	}
	if len(machines) == 1 {
		return "agents of one machine have this trouble"
	}
	return fmt.Sprintf("agents of %d machines have this trouble", len(machines))
}

// update notes who shares a cause, or is silent, now.
func (h *herald) update(id string, c judge.Case) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.IndexFunc(h.cases, func(t fleetcases.Case) bool { return t.ID == id && t.Over == "" })
	if at < 0 {
		return
	}
	t, next := &h.cases[at], caseOf(c)
	if group, _, _ := strings.Cut(t.Name, " ("); c.Kind == judge.Machines {
		next.Name = group + some(c.Agents)
	}
	if t.Name == next.Name && strings.HasPrefix(t.Details, next.Details) && slices.Equal(t.Members, next.Members) {
		return
	}
	t.Name, t.Details, t.Members = next.Name, next.Details, next.Members
	if err := h.write(); err != nil {
		h.m.log.Error("the monitor here cannot be told of a change", "error", err)
	}
}

func (h *herald) withdraw(id string) {
	h.end(id, fleetcases.Case{Over: "another machine tells of it", Withdrawn: true})
}

// end notes that a case is over, and how.
func (h *herald) end(id string, how fleetcases.Case) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := range h.cases {
		if t := &h.cases[n]; t.ID == id && t.Over == "" {
			t.Over, t.Recovered, t.Withdrawn, t.Ended = how.Over, how.Recovered, how.Withdrawn, time.Now().UTC()
		}
	}
	if err := h.write(); err != nil {
		h.m.log.Error("the monitor here cannot be told that something is over", "error", err)
	}
}

// write writes the file. The lock is held.
func (h *herald) write() error {
	h.cases = slices.DeleteFunc(h.cases, func(t fleetcases.Case) bool { return t.Over != "" && time.Since(t.Ended) > overKept })
	return fleetcases.Write(h.path, h.cases)
}

// casesFile is where the monitor here reads the cases of the fleet that it is to tell of.
func (s *settings) casesFile() string { return filepath.Join(s.state, "cases.json") }

// run looks now and then whether what was told of is over.
func (h *herald) run(ctx context.Context) {
	tick := time.NewTicker(recordEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		h.mu.Lock()
		open := slices.DeleteFunc(slices.Clone(h.cases), func(t fleetcases.Case) bool { return t.Over != "" })
		h.mu.Unlock()
		for _, t := range open {
			if how, over := h.isOver(ctx, t); over {
				h.end(t.ID, how)
			}
		}
	}
}

// isOver reports whether a case that this machine tells of is over, and how.
func (h *herald) isOver(ctx context.Context, t fleetcases.Case) (how fleetcases.Case, over bool) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	key := about(t).Key()
	entry, err := h.m.engine.Get(ctx, key)
	if errors.Is(err, engine.ErrNotFound) {
		if h.missing[t.ID].IsZero() {
			h.missing[t.ID] = time.Now()
		}
		return fleetcases.Case{Over: "the fleet does not know of it any more"}, time.Since(h.missing[t.ID]) > unknownFor
	}
	if err != nil {
		return how, false
	}
	r, err := judge.ReadRecord(key, entry.Value)
	if err != nil {
		return how, false
	}
	delete(h.missing, t.ID)
	switch {
	case r.State == judge.Over:
		return h.ending(ctx, r.Case)
	case r.State == judge.Sent && r.Message != h.m.Host:
		return fleetcases.Case{Over: "another machine tells of it", Withdrawn: true}, true
	case r.Kind != judge.Silent && r.State == judge.Sent:
		h.update(t.ID, r.Case)
	}
	return how, false
}

// ending is how a case has ended that is over; false: that cannot be known now.
func (h *herald) ending(ctx context.Context, c judge.Case) (fleetcases.Case, bool) {
	switch c.Kind {
	case judge.Shared:
		return fleetcases.Case{Over: "no agent has this trouble any more", Recovered: true}, true
	case judge.Machines:
		return fleetcases.Case{Over: "all of them are heard again", Recovered: true}, true
	}
	var d judge.Digest
	switch e, err := h.m.engine.Get(ctx, engine.Key(digestTable, c.Subject)); {
	case errors.Is(err, engine.ErrNotFound):
		return fleetcases.Case{Over: "it is in the fleet no more"}, true
	case err != nil:
		return fleetcases.Case{}, false
	case json.Unmarshal(e.Value, &d) == nil && d.Left:
		return fleetcases.Case{Over: "its outlive fleet join was ended", Recovered: true}, true
	}
	return fleetcases.Case{Over: "it is heard again", Recovered: true}, true
}

package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// A person is told of a server that does not mend itself, not of each failure.
const (
	// troubleFor is how long a server must be paused or failed.
	troubleFor = time.Minute
	// loginFor is how long one must want a login. That does not mend itself, and Claude Code 2.1.330 ends a server whose
	// handshake takes 30 s.
	loginFor = 5 * time.Second
	// startingFor is how long one may be started again and again, or not come up, without being called paused or failed.
	startingFor = 5 * time.Minute
	// steadyFor is how long one in trouble must be ready until it works again: one that crashes at each start is ready
	// between two crashes, too.
	steadyFor = 30 * time.Second
)

// troubled is since when a server is not ready, and why.
type troubled struct {
	At    time.Time `json:"at"`    // when it was first seen not to be ready
	Class string    `json:"class"` // of the incident; "": none yet
	Since time.Time `json:"since"` // of the class
	Why   string    `json:"why"`   // as the server last said while it was in the class
	ToDo  string    `json:"todo"`
	Ready time.Time `json:"ready,omitzero"` // since when it is ready again; zero: it is not
}

// classOf is the class of the incidents about a server in trouble. "": there are none about that trouble.
func classOf(t diagnose.ServerTrouble) string {
	if class := "server_" + string(t); incident.AboutServer(class) {
		return class
	}
	return ""
}

// lookAtTrouble notes since when servers are not ready. One that is tried again after a pause keeps its trouble until it
// has been ready for [steadyFor]: whatever is seen between two starts, such as a start that runs, ends no trouble.
func (k *kept) lookAtTrouble(now time.Time) {
	was := k.state.Trouble
	k.state.Trouble = map[string]troubled{}
	for i := range k.all {
		s := &k.all[i]
		t, known := was[s.Key]
		if !known || t.At.After(now) {
			t = troubled{At: now}
		}
		if in := t.next(s, now); in {
			k.state.Trouble[s.Key] = t
		}
	}
}

// next notes how the server stands now, and reports whether it is still in trouble.
func (t *troubled) next(s *Server, now time.Time) bool {
	class := classOf(s.Trouble)
	if class == "" && t.Class == "" && (s.Ready || s.Trouble != "") {
		return false
	}
	if s.Ready {
		if t.Ready.IsZero() || t.Ready.After(now) {
			t.Ready = now
		}
		return now.Sub(t.Ready) < steadyFor
	}
	t.Ready = time.Time{}
	if class == "" && t.Class == "" && now.Sub(t.At) >= startingFor {
		class = classOf(diagnose.ServerFailed)
	}
	switch {
	case class != "":
		if class != t.Class {
			t.Class, t.Since = class, now
		}
		t.Why, t.ToDo = s.Why, s.ToDo
	case t.Class == "":
		t.Why = s.Why
	}
	return true
}

// tellOfServers opens and closes the incidents about servers.
func (r *round) tellOfServers(ctx context.Context, cases []*examined) error {
	if r.kept.from == nil || r.kept.asked.IsZero() || !r.snapshot.declared() {
		return nil
	}
	var errs []error
	wanted := map[incident.Key]bool{}
	for i := range r.kept.all {
		s := &r.kept.all[i]
		t := r.kept.state.Trouble[s.Key]
		if t.Class == "" || r.clientGone(s) {
			continue
		}
		c := r.userOf(s, cases)
		key := serverIncident(s, c, t.Class)
		open := slices.ContainsFunc(r.incidents.list, func(i incident.Incident) bool { return i.Key == key && i.State != incident.Resolved })
		waits := c != nil && c.diagnosis.Class == diagnose.WaitingServer
		if wanted[key] = true; open || t.Ready.IsZero() && (waits || r.now.Wall.Sub(t.Since) >= patienceWith(t.Class)) {
			errs = append(errs, r.raiseServer(ctx, s, c, key, t))
		}
	}
	for _, i := range r.incidents.list {
		if _, _, is := i.Key.ServerAndUser(); is && i.State != incident.Resolved && !wanted[i.Key] && !r.kept.silent(i) && !r.stillMissed(i, cases) {
			errs = append(errs, r.incidents.tell(ctx, r.incidents.agentOf(i), i, r.endOfServer(i, cases), nil))
		}
	}
	return errors.Join(errs...)
}

// patienceWith is how long a server must be in the trouble of that class until people are told.
func patienceWith(class string) time.Duration {
	if class == classOf(diagnose.ServerLogin) {
		return loginFor
	}
	return troubleFor
}

// clientGone reports whether the client of a server has ended: then nobody needs it.
func (r *round) clientGone(s *Server) bool {
	if s.Client.PID == 0 {
		return false
	}
	_, lives := r.sources.entry(s.Client)
	return !lives
}

// userOf is the agent that uses a server; nil: none that is watched does.
func (r *round) userOf(s *Server, cases []*examined) *examined {
	for _, c := range cases {
		if c.subject.process != (process.Identity{}) && c.evidence.Watched && r.sources.servedBelow(s.Client, c.subject.process) {
			return c
		}
	}
	return nil
}

// serverIncident is the same for all processes of an agent that use a server of that name.
func serverIncident(s *Server, user *examined, class string) incident.Key {
	key := incident.ServerPrefix + s.Name + ":"
	if user != nil {
		key += user.Key
	}
	return incident.Key{Agent: key, Class: class}
}

// raiseServer tells people of a server that somebody must mend. One that no watched agent uses is told of in the daily
// summary, unless it is a gateway's, whose clients are not known.
func (r *round) raiseServer(ctx context.Context, s *Server, user *examined, key incident.Key, t troubled) error {
	f := incident.Facts{
		Name: "The MCP server " + s.Name, Stall: string(diagnose.Waiting), Severity: incident.SeverityOf(key.Class), Since: t.Since.Round(0),
		Details: r.opts.redact(cmp.Or(t.Why, s.Why, "it does not come up")), ToDo: t.ToDo, Unheard: r.unheard(r.now.Wall),
	}
	project := s.Name
	switch {
	case user != nil:
		f.Name += " of " + user.Name
		project = user.Name
		if user.diagnosis.Class == diagnose.WaitingServer {
			f.Severity = incident.Critical
			f.Details += "; " + user.diagnosis.Details
		}
	case s.Client.PID != 0:
		f.Severity = incident.Info
		f.Details += fmt.Sprintf("; its client is the process %d, which is no watched agent", s.Client.PID)
	}
	return r.incidents.raiseOther(ctx, key, f, project, key.Class, "server "+s.Name+": ")
}

// stillMissed reports whether an agent has given up its server, which wanted a login, and goes on without it: a person must
// log in all the same.
func (r *round) stillMissed(i incident.Incident, cases []*examined) bool {
	_, agent, _ := i.Key.ServerAndUser()
	if i.Key.Class != classOf(diagnose.ServerLogin) || agent == "" {
		return false
	}
	there := func(s Server) bool { return serverIncident(&s, r.userOf(&s, cases), i.Key.Class) == i.Key }
	lives := func(c *examined) bool {
		return c.Key == agent && c.evidence.Watched && c.evidence.Process.Life == diagnose.Alive
	}
	return !slices.ContainsFunc(r.kept.all, there) && slices.ContainsFunc(cases, lives)
}

// silent reports whether the outlive that keeps the incident's server runs, but does not tell how the server stands.
func (k *kept) silent(i incident.Incident) bool {
	return slices.ContainsFunc(k.all, func(s Server) bool {
		rest, is := strings.CutPrefix(i.Key.Agent, incident.ServerPrefix+s.Name)
		return s.Silent && is && (rest[0] == ':' || rest[0] == '/')
	})
}

// endOfServer is why an incident about a server is over: it works again, or nobody needs it any more.
func (r *round) endOfServer(i incident.Incident, cases []*examined) incident.Event {
	for k := range r.kept.all {
		s := &r.kept.all[k]
		if serverIncident(s, r.userOf(s, cases), i.Key.Class) != i.Key {
			continue
		}
		switch t := r.kept.state.Trouble[s.Key]; {
		case r.clientGone(s):
			return incident.Gone{Why: "its client has gone"}
		case s.Ready:
			return incident.Recovered{How: "it is ready"}
		case t.Class != "" && t.Class != i.Key.Class:
			return incident.Gone{Why: "it " + incident.Words(t.Class) + " now"}
		}
	}
	return incident.Gone{Why: "the outlive that kept it has ended"}
}

// serverTold reports whether people were told of the servers that the agent waits for.
func (r *round) serverTold(c *examined) bool {
	return slices.ContainsFunc(r.incidents.list, func(i incident.Incident) bool {
		_, agent, is := i.Key.ServerAndUser()
		return is && agent == c.Key && i.State != incident.Resolved
	})
}

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/host"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// ServerStatus is the state of one configured server with all its processes.
type ServerStatus struct {
	Name   string `json:"name"`
	Tools  int    `json:"tools"`            // that clients see; 0 also if nothing is known
	Modern bool   `json:"modern,omitempty"` // it speaks the modern era
	// Standing is what experience says of it: untested, usable or unusable. Why it is unusable is its Trouble.
	Standing string `json:"standing"`
	Trouble  string `json:"trouble,omitempty"`
	// Lacks is which of its lists clients do not see, or not to the end, and why, though it is used.
	Lacks string `json:"lacks,omitempty"`
	// Hidden are its resources that clients do not see.
	Hidden []HiddenResource `json:"hidden,omitempty"`
	// Since is when it began to stand as it does: to work, not to be needed, or not to work; of one that never worked, when
	// it was configured. Starts that fail in between do not set it anew.
	Since time.Time    `json:"since,omitzero"`
	Links []LinkStatus `json:"links"` // one for each process that is kept alive
	// Past is what was counted of processes that are not kept any more.
	Past backend.Counters `json:"past,omitzero"`
}

// Counted is everything that was counted of the server.
func (s ServerStatus) Counted() backend.Counters {
	sum := s.Past
	for _, l := range s.Links {
		sum.Merge(l.Counters)
	}
	return sum
}

// LinkStatus is the state of one kept server.
type LinkStatus struct {
	Client         string `json:"for,omitempty"`             // whose own process it is; empty: many use it
	View           string `json:"view,omitempty"`            // all that this client sees; empty: everything
	Phase          string `json:"phase"`                     // greeting, ready, failed, foreign (it does not speak the client's era), retired, ended
	HandshakeError string `json:"handshake_error,omitempty"` // why its last handshake failed
	Apart          string `json:"apart,omitempty"`           // of a shared server with several processes: why its clients have this one
	backend.Status
}

var phaseNames = [...]string{"greeting", "ready", "failed", "foreign", "retired", "ended"}

// Status tells how every server stands, in the order of the configuration. Any goroutine.
func (r *Runner) Status(ctx context.Context) ([]ServerStatus, error) {
	return lineloop.Ask(ctx, r.loop, r.ended, ErrEnded, func() []ServerStatus { return r.status(time.Now(), nil) })
}

// Used has the counts and the processes of the servers that clients have made use of. What the processes of the others use is not
// looked at. Any goroutine.
func (r *Runner) Used(ctx context.Context) ([]ServerStatus, error) {
	return lineloop.Ask(ctx, r.loop, r.ended, ErrEnded, r.used)
}

func (r *Runner) used() (all []ServerStatus) {
	now := time.Now()
	links, used := map[string][]*kept{}, map[string]bool{}
	for l, k := range r.kept {
		links[l.Name()] = append(links[l.Name()], k)
		used[l.Name()] = used[l.Name()] || k.host.Backend.Used()
	}
	for _, s := range r.gw.servers {
		one := ServerStatus{Name: s.Catalog.Name, Past: r.past[s.Catalog.Name]}
		if !used[one.Name] && !one.Past.Used() {
			continue
		}
		for _, k := range links[one.Name] {
			one.Links = append(one.Links, LinkStatus{Status: k.host.Backend.Status(now)})
		}
		all = append(all, one)
	}
	return all
}

// Last tells how every server stood at the end. Call it after Run has returned.
func (r *Runner) Last() []ServerStatus { return r.status(time.Now(), nil) }

// ErrEnded is returned after the gateway has ended.
var ErrEnded = errors.New("the gateway has ended")

// ErrNoServer is returned for a server that is not configured.
var ErrNoServer = errors.New("no server of that name")

// status tells it to a client, nil: to the user of this machine.
func (r *Runner) status(now time.Time, to *Session) []ServerStatus {
	all := make([]ServerStatus, len(r.gw.servers))
	for i, s := range r.gw.servers {
		all[i] = ServerStatus{Name: s.Catalog.Name, Modern: s.modern == speaks && !s.bridged, Links: []LinkStatus{}}
		all[i].Past = r.past[s.Catalog.Name]
		all[i].Standing, all[i].Trouble = s.standing.String(), s.trouble
		if lists := s.known.latest(); lists != nil {
			all[i].Tools = len(lists[mcp.Tools])
		}
	}
	for l, k := range r.kept {
		i := slices.IndexFunc(all, func(s ServerStatus) bool { return s.Name == l.Name() })
		if i < 0 || !l.scope.isKnownTo(to) {
			continue
		}
		if all[i].Lacks == "" {
			all[i].Lacks = l.lists.lacking()
		}
		if l.lists.all != nil {
			all[i].Tools = len(l.lists.all[mcp.Tools])
		}
		one := LinkStatus{Client: l.Client(), Apart: apart(l), Phase: phaseNames[l.phase], Status: k.host.Backend.Status(now)}
		if owner := l.scope.owner; owner != nil {
			one.View = owner.view
		}
		if l.trouble != nil && l.phase <= unsupported {
			one.HandshakeError = messageOf(l.trouble)
		}
		if hasView(to) && l.scope.owner == nil {
			one.Unanswered = nil // calls of others, too
		}
		all[i].Links = append(all[i].Links, one)
	}
	for i, some := range r.gw.hiddenNow() {
		all[i].Hidden = some
	}
	for i, s := range all {
		all[i].Since = r.gw.servers[i].sinceOf(s.Links)
		slices.SortFunc(s.Links, func(a, b LinkStatus) int { return cmp.Compare(a.ServerPID, b.ServerPID) })
	}
	return all
}

// Restart replaces every process of a server and returns when the new ones are ready, or why one is not. Any goroutine.
func (r *Runner) Restart(ctx context.Context, server string, source supervise.Source, reason string) error {
	all, err := lineloop.Ask(ctx, r.loop, r.ended, ErrEnded, func() []*kept { return r.keptOf(server, nil) })
	if err != nil {
		return err
	}
	if all == nil {
		return fmt.Errorf("%s: %w", server, ErrNoServer)
	}
	errs := make(chan error, len(all))
	for _, k := range all {
		go func() { errs <- k.host.Restart(ctx, source, reason) }()
	}
	var failed []error
	for range all {
		if err := <-errs; !errors.Is(err, host.ErrEnded) { // nobody needs it any more
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// keptOf returns the processes of a server that are kept alive and that a client knows. It is nil if there is no such server.
func (r *Runner) keptOf(name string, to *Session) []*kept {
	if !slices.ContainsFunc(r.gw.servers, func(s *server) bool { return s.Catalog.Name == name }) {
		return nil
	}
	all := []*kept{}
	for l, k := range r.kept {
		if l.Name() == name && k.opened && l.phase != retired && l.scope.isKnownTo(to) {
			all = append(all, k)
		}
	}
	return all
}

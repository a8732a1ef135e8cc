package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// attention is what is wrong now, as far as there is room for it.
type attention struct {
	overview.Attention
	Sum     string  // how many of how many; "": nothing
	Names   []named // which those are, the worst of each kind first
	Unnamed int     // that are left out there
	More    int     // that have no card
}

// named is something that is wrong, by its name. The line of these is seen first, however small the screen is.
type named struct {
	Name, Link string
	Health     overview.Health
}

// What the overview shows of what is wrong, at most: the rest is in its tables.
const (
	namesShown = 20
	cardsShown = 8 // of each kind
)

// attentionOf sums up what is wrong, and drops the cards for which there is no room.
func attentionOf(s overview.State) attention {
	a := attention{Attention: s.Attention()}
	var sums []string
	sum := func(wrong, all int, what string) {
		if all == 1 {
			what = strings.TrimSuffix(what, "s")
		}
		if wrong > 0 {
			sums = append(sums, fmt.Sprintf("%d of %d %s", wrong, all, what))
		}
	}
	wrong, all := 0, 0
	for _, one := range s.Servers {
		if one.Wrong() {
			wrong++
			a.Names = append(a.Names, named{one.Name, "/server/" + one.Key, one.Health})
		}
		if one.Wrong() || !one.Gateway && !one.Gone {
			all++
		}
	}
	sum(wrong, all, "servers")
	wrong = 0
	for _, one := range s.Agents {
		if one.Health.Wrong() {
			wrong++
			a.Names = append(a.Names, named{one.Name, "/agent/" + one.Key, one.Health})
		}
	}
	sum(wrong, len(s.Agents), "agents")
	for _, one := range a.Hosts {
		a.Names = append(a.Names, named{one.Name, "#hosts", one.Health})
	}
	sum(len(a.Hosts), len(s.Hosts), "machines")
	for _, i := range a.Incidents {
		one := serverOf(i, s.Servers)
		if (one == nil || !one.Health.Wrong()) && !slices.ContainsFunc(s.Agents, func(o overview.Agent) bool { return o.Health.Wrong() && i.About(o.Key) }) {
			a.Names = append(a.Names, named{i.Title, "/incidents", overview.Bad})
		}
	}
	a.Sum = cmp.Or(strings.Join(sums, ", "), "It waits for you")
	a.Unnamed = max(0, len(a.Names)-namesShown)
	a.Names = a.Names[:len(a.Names)-a.Unnamed]
	a.More = cut(&a.Incidents) + cut(&a.Servers) + cut(&a.Agents)
	return a
}

// cut drops what has no room for a card, and returns how many those are.
func cut[T any](list *[]T) int {
	all := len(*list)
	*list = (*list)[:min(cardsShown, all)]
	return all - len(*list)
}

// serverOf is the server that an incident is about; nil: none that is there.
func serverOf(i overview.Incident, all []overview.Server) *overview.Server {
	if at := slices.IndexFunc(all, i.AboutServer); at >= 0 {
		return &all[at]
	}
	return nil
}

// besides is what is wrong and has no open incident: neither one that waits nor one that is acknowledged.
func besides(a overview.Attention, acknowledged []overview.Incident) overview.Attention {
	a.Incidents = nil
	a.Servers = slices.DeleteFunc(a.Servers, func(o overview.Server) bool {
		return slices.ContainsFunc(acknowledged, func(i overview.Incident) bool { return i.AboutServer(o) })
	})
	a.Agents = slices.DeleteFunc(a.Agents, func(o overview.Agent) bool {
		return slices.ContainsFunc(acknowledged, func(i overview.Incident) bool { return i.About(o.Key) })
	})
	return a
}

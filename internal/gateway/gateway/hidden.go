package gateway

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// HiddenResource is a resource, or a template, that clients do not see, since another server has one with the same URI.
type HiddenResource struct {
	URI string `json:"uri"` // without secrets
	Of  string `json:"of"`  // the server whose resource is shown and read
}

const (
	// hiddenMost is of how many of a server's hidden resources the log tells.
	hiddenMost = 1000
	// hiddenNamed is how many of them one line names.
	hiddenNamed = 3
)

// tellHidden logs the resources that the clients of a view do not see, each once.
func (g *Gateway) tellHidden(v *catalog.View) {
	news := map[int][]string{}
	for _, h := range v.Hidden {
		s, of := g.servers[h.Server], g.servers[h.By].Catalog.Name
		if h.By == h.Server || s.hidden[h.Own] == of || len(s.hidden) >= hiddenMost {
			continue
		}
		if s.hidden == nil {
			s.hidden = map[string]string{}
		}
		s.hidden[h.Own] = of
		news[h.Server] = append(news[h.Server], fmt.Sprintf("%s (of %s)", secret.Redact(h.Own), of))
	}
	for i, s := range g.servers {
		if all := news[i]; len(all) > 0 {
			why := "resources of other servers have the same URI and are shown in their place: " + someOf(all)
			g.emit(event.ListMissing, slog.LevelWarn, s.Catalog.Name, "is used without some of its resources: "+why, slog.String(event.KeyReason, why))
		}
	}
}

// someOf are the first few of many, and how many more there are.
func someOf(all []string) string {
	if more := len(all) - hiddenNamed; more > 0 {
		return strings.Join(all[:hiddenNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(all, ", ")
}

// hiddenNow are the hidden resources of each server at present, by its index: those that any clients do not see.
func (g *Gateway) hiddenNow() map[int][]HiddenResource {
	all, counted := map[int][]HiddenResource{}, map[*catalog.View]bool{}
	for sc := range g.scopes {
		for _, sh := range sc.showings {
			if sh.view == nil || sh.stale || counted[sh.view] {
				continue
			}
			counted[sh.view] = true
			for _, h := range sh.view.Hidden {
				one := HiddenResource{secret.Redact(h.Own), g.servers[h.By].Catalog.Name}
				if h.By != h.Server && !slices.Contains(all[h.Server], one) {
					all[h.Server] = append(all[h.Server], one)
				}
			}
		}
	}
	for _, some := range all {
		slices.SortFunc(some, func(a, b HiddenResource) int { return cmp.Compare(a.URI, b.URI) })
	}
	return all
}

package cli

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
)

// apply puts a configuration's servers and views into effect. The lock that guards reading it is held, or nobody else
// has the endpoint yet.
func (g *endpoint) apply(servers []gateway.Server, views []config.View) {
	shown := make([]gateway.View, len(views))
	for i, v := range views {
		shown[i] = gateway.View{Name: v.Name, Servers: map[string]catalog.Filter{}, NoTools: v.NoTools}
		for _, s := range v.Servers {
			shown[i].Servers[s.Name] = catalog.Filter{Allow: s.Allow, Deny: s.Deny}
		}
	}
	g.SetServers(servers, shown...)
	g.front.Views = frontViews(views)
	if g.serving != nil {
		g.serving.SetViews(g.front.Views)
	}
}

// openFront makes the front, with the views as they are now.
func (g *endpoint) openFront() *streamhttp.Front {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serving = streamhttp.New(g.Hub(), g.front)
	return g.serving
}

// frontViews are the views as far as they say who sees them.
func frontViews(views []config.View) (all []streamhttp.View) {
	for _, v := range views {
		all = append(all, streamhttp.View{Name: v.Name, Bearer: v.Bearer, Subjects: v.Subjects})
	}
	return all
}

// checkView rejects a --view that nobody could see.
func (g *endpoint) checkView(file *config.File, address string) error {
	name := g.flags.view
	switch {
	case name == "":
		return nil
	case address != "":
		return fail(exitUsage, "--view is for a client on stdin and stdout; over HTTP clients choose one by its path, /mcp/%s, or their token does", name)
	case !slices.ContainsFunc(file.Views, func(v config.View) bool { return v.Name == name }):
		return fail(exitUsage, "--view %q: %s has no view of that name", name, file.Name)
	}
	return nil
}

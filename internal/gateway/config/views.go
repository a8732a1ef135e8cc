package config

import (
	"fmt"
	"slices"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// readViews reads the views, in the order of the file. servers are the file's own; nil: it has none.
func (r *reader) readViews(root, servers *tree.Node) {
	views := root.Good("views")
	if views == nil {
		return
	}
	var known []string
	if servers != nil {
		for _, f := range servers.Members() {
			known = append(known, f.Key)
		}
	}
	owners := map[string]string{} // of tokens
	for _, token := range root.Get("auth").Get("bearer").Texts() {
		owners[token] = "auth"
	}
	for _, f := range views.Members() {
		if f.Kind == tree.Null {
			r.Problem(f.KeyPos, "views."+fileerror.Shortened(f.Key)+" is empty", "add servers: those that it has")
		}
		if f.Bad || f.Kind != tree.Object {
			continue
		}
		v := View{
			Name: f.Key, Bearer: f.Get("bearer").Texts(), Subjects: f.Get("subjects").Texts(), NoTools: f.IsTrue("no_tools"),
			Servers: r.viewServers(f, known),
		}
		r.checkTokens(f, owners)
		if n := f.Good("subjects"); n != nil && root.Get("auth").Good("oauth") == nil {
			r.Problem(n.Pos, "subjects are those of JWTs, and no authorization server is named", "add auth: {oauth: …}, or give the view's clients a token: bearer")
		}
		r.file.Views = append(r.file.Views, v)
		if len(v.Bearer) > 0 && r.file.Auth == nil {
			r.file.Auth = &Auth{}
		}
	}
}

// viewServers reads which servers a view has: a list of names, or names with what is shown of each.
func (r *reader) viewServers(view *tree.Node, known []string) (all []ViewServer) {
	n := view.Get("servers")
	if n == nil || n.Bad && n.Kind != tree.Null {
		return nil
	}
	for _, f := range n.Members() {
		if r.isServer(f.KeyPos, f.Key, known) {
			all = append(all, ViewServer{Name: f.Key, Allow: f.Get("allow").Texts(), Deny: f.Get("deny").Texts()})
		}
	}
	names := entries(n)
	for _, item := range names {
		switch {
		case item.Bad || !r.isServer(item.Pos, item.Value, known):
		case slices.ContainsFunc(all, func(one ViewServer) bool { return one.Name == item.Value }):
			r.Problem(item.Pos, fmt.Sprintf("%q is there twice", fileerror.Shortened(item.Raw)), "remove one")
		default:
			all = append(all, ViewServer{Name: item.Value})
		}
	}
	if len(n.Members()) == 0 && len(names) == 0 {
		r.Problem(n.Pos, fmt.Sprintf("the view %s has no server", view.Key), "name those that it has: [one, two]")
	}
	return all
}

// entries are those of a list, or the one text that is given instead of a list.
func entries(n *tree.Node) []*tree.Node {
	if n.Kind == tree.Text {
		return []*tree.Node{n}
	}
	return n.Items()
}

// isServer reports a name that no server has.
func (r *reader) isServer(at fileerror.Pos, name string, known []string) bool {
	if slices.Contains(known, name) {
		return true
	}
	hint := fileerror.DidYouMean(name, known, nil)
	if hint == "" {
		hint = "name one of those below servers"
	}
	r.Problem(at, fmt.Sprintf("there is no server %q", fileerror.Shortened(name)), hint)
	return false
}

// checkTokens reports tokens that are said to see two things.
func (r *reader) checkTokens(view *tree.Node, owners map[string]string) {
	n := view.Good("bearer")
	if n == nil {
		return
	}
	for _, one := range entries(n) {
		if one.Bad || one.Value == "" {
			continue
		}
		switch owner, taken := owners[one.Value]; {
		case taken && owner == "auth":
			r.Problem(one.Pos, "this token of the view "+view.Key+" stands in auth, too, where it opens everything", "remove one, or make another token")
		case taken:
			r.Problem(one.Pos, "this token of the view "+view.Key+" is also one of the view "+owner, "make a token for each")
		}
		owners[one.Value] = view.Key
	}
}

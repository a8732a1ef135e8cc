package catalog

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// A part of everything: what is not selected is in no list and belongs to nobody; what is has the name that it has for
// everybody.
func TestSelection(t *testing.T) {
	servers := []Server{{Name: "a"}, {Name: "b", Filter: Filter{Deny: []string{"secret"}}, Rename: map[string]string{"list": "ls"}}}
	lists := []*Lists{
		{mcp.Tools: entries(mcp.Tools, "read", "write"), mcp.Prompts: entries(mcp.Prompts, "ask"), mcp.Resources: entries(mcp.Resources, "f:1", "g:1"),
			mcp.Templates: entries(mcp.Templates, "f:{n}")},
		{mcp.Tools: entries(mcp.Tools, "read", "list", "secret"), mcp.Prompts: entries(mcp.Prompts, "ask", "beg"), mcp.Resources: entries(mcp.Resources, "f:1", "h:1")},
	}
	type shown struct{ Tools, Prompts, Resources, Templates []string }
	for name, tc := range map[string]struct {
		sel  map[string]Filter
		want shown
	}{
		"nothing":          {map[string]Filter{}, shown{}},
		"unknown server":   {map[string]Filter{"c": {}}, shown{}},
		"the first":        {map[string]Filter{"a": {}}, shown{[]string{"read", "write"}, []string{"ask"}, []string{"f:1", "g:1"}, []string{"f:{n}"}}},
		"the second":       {map[string]Filter{"b": {}}, shown{[]string{"b_read", "ls"}, []string{"b_ask", "beg"}, []string{"f:1", "h:1"}, nil}},
		"allow":            {map[string]Filter{"a": {Allow: []string{"r*"}}}, shown{[]string{"read"}, nil, []string{"f:1", "g:1"}, []string{"f:{n}"}}},
		"deny":             {map[string]Filter{"a": {Allow: []string{"*"}, Deny: []string{"r*"}}}, shown{[]string{"write"}, []string{"ask"}, []string{"f:1", "g:1"}, []string{"f:{n}"}}},
		"own names":        {map[string]Filter{"b": {Allow: []string{"list"}}}, shown{[]string{"ls"}, nil, []string{"f:1", "h:1"}, nil}},
		"not the shown":    {map[string]Filter{"b": {Allow: []string{"ls", "b_read"}}}, shown{nil, nil, []string{"f:1", "h:1"}, nil}},
		"what is denied":   {map[string]Filter{"b": {Allow: []string{"secret"}}}, shown{nil, nil, []string{"f:1", "h:1"}, nil}},
		"an invalid allow": {map[string]Filter{"b": {Allow: []string{"["}}}, shown{nil, nil, []string{"f:1", "h:1"}, nil}},
		"an invalid deny":  {map[string]Filter{"b": {Deny: []string{"["}}}, shown{nil, nil, []string{"f:1", "h:1"}, nil}},
		"both":             {map[string]Filter{"a": {Allow: []string{"write"}}, "b": {Allow: []string{"read"}}}, shown{[]string{"write", "b_read"}, nil, []string{"f:1", "g:1", "h:1"}, []string{"f:{n}"}}},
	} {
		t.Run(name, func(t *testing.T) {
			v := New(OnCollision).Merge(servers, lists, Select(tc.sel))
			got := shown{seen(t, v, mcp.Tools), seen(t, v, mcp.Prompts), seen(t, v, mcp.Resources), seen(t, v, mcp.Templates)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			all := New(OnCollision).Merge(servers, lists, nil)
			for _, tool := range seen(t, all, mcp.Tools) {
				if _, _, found := v.Named(mcp.Tools, tool); found != slices.Contains(got.Tools, tool) {
					t.Errorf("%s is found: %v", tool, found)
				}
			}
			for uri, owner := range map[string]string{"f:2": "a", "g:1": "a", "h:1": "b"} {
				i, _, found := v.Owner(uri)
				if _, has := tc.sel[owner]; found != has || found && servers[i].Name != owner {
					t.Errorf("%s belongs to %d: %v", uri, i, found)
				}
			}
			for _, i := range v.Candidates("f:9") {
				if !Select(tc.sel).Has(servers[i].Name) {
					t.Errorf("server %d is a candidate", i)
				}
			}
		})
	}
}

// A user interface belongs to who shows its tool.
func TestSelectionOfInterfaces(t *testing.T) {
	items, _ := Items(mcp.Tools, []byte(`{"tools":[{"name":"draw","_meta":{"ui":{"resourceUri":"ui://x/1"}}},{"name":"read"}]}`))
	for glob, want := range map[string]bool{"draw": true, "read": false} {
		v := New(Always).Merge(plain("a"), []*Lists{{mcp.Tools: items}}, Select(map[string]Filter{"a": {Allow: []string{glob}}}))
		if _, _, found := v.Owner("ui://x/1"); found != want {
			t.Errorf("with %s: found %v", glob, found)
		}
	}
}

// Whoever sees the same gets the same View; another selection is another View, and going back finds the first.
func TestSelectionsAreRemembered(t *testing.T) {
	book, servers := New(Always), plain("a", "b")
	lists := []*Lists{tools("x", "y"), tools("z")}
	one := book.Merge(servers, lists, Select(map[string]Filter{"a": {}}))
	if book.Merge(servers, []*Lists{tools("x", "y"), tools("z", "new")}, Select(map[string]Filter{"a": {}})) != one {
		t.Error("a server that is not selected has made another View")
	}
	all := book.Merge(servers, lists, nil)
	if all == one || all.Same(mcp.Tools, one) || cmp.Equal(one.Digests(mcp.Tools), all.Digests(mcp.Tools)) {
		t.Error("a part is everything")
	}
	part := book.Merge(servers, lists, Select(map[string]Filter{"a": {Deny: []string{"y"}}}))
	if part == one || part.Same(mcp.Tools, one) {
		t.Error("two selections are one")
	}
}

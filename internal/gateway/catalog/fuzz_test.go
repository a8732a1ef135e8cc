package catalog

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Whatever a server sends as a list, the result is JSON with the same content, and every name leads back to its
// server.
func FuzzItems(f *testing.F) {
	for _, seed := range []string{
		`{"tools":[{"name":"a","inputSchema":{"name":"b"}},{"name":"a"},{"name":"\u00e9\ud800"}],"nextCursor":"x"}`,
		`{"resources":[{"uri":"file:///a"},{"uri":"\n"}],"nextCursor":null}`,
		`{"resourceTemplates":[{"uriTemplate":"a:{b}{+c}{/d*}{?e,f}"},{"uriTemplate":"{"},{"uriTemplate":"}{{}}"},{"uriTemplate":""}]}`,
		`{"prompts":[1,[],null,{"name":1},{"name":"x","name":"y"}, {"name":"q\"q"} ]}`,
		`{"tools":[{"name":"` + "\xff" + `"}]`,
		`{"tools":[{"_meta":{"ui":{"resourceUri":"ui://a"},"ui/resourceUri":"ui://b"},"name":"a","execution":{"taskSupport":"required"}}],"resources":[{"uri":"ui://a"}]}`,
	} {
		f.Add([]byte(seed), "file:///a")
	}
	f.Fuzz(func(t *testing.T, result []byte, uri string) {
		var lists Lists
		for l := range mcp.Lists {
			lists[l], _ = Items(l, result)
		}
		v := New(OnCollision).Merge(plain("s"), []*Lists{&lists}, nil)
		v.Candidates(uri)
		v.Owner(uri)
		for l := range mcp.Lists {
			page := mustPage(t, v, l, nil, 0)
			if json.Valid(result) && !json.Valid(page) {
				t.Fatalf("no JSON: %s", page)
			}
			again, _ := Items(l, page)
			hidden := 0
			for _, one := range v.Hidden {
				if one.List == l {
					hidden++
				}
			}
			for _, item := range lists[l] {
				if l == mcp.Tools && taskOnly(item) {
					hidden++
				}
			}
			if len(again) != len(v.shown[l]) || len(again)+hidden != len(lists[l]) {
				t.Fatalf("%d of %d entries are shown, %d hidden: %s", len(again), len(lists[l]), hidden, page)
			}
			for i, item := range again {
				place, ok := v.places[l][item.Own()] // no URI is changed: there is one server
				if !ok || place != i {
					t.Fatalf("%q is listed and leads nowhere", item.Own())
				}
				if l == mcp.Tools && !shownName.MatchString(item.Own()) {
					t.Fatalf("%q is not a name for a model", item.Own())
				}
				if !named(l) && item != v.shown[l][i].item {
					t.Fatalf("%s became %s", v.shown[l][i].item.Raw(), item.Raw())
				}
			}
		}
	})
}

// Every cursor of a client gets a page or ErrCursor.
func FuzzCursor(f *testing.F) {
	v := New(Never).Merge(plain("a"), []*Lists{tools("1", "2", "3")}, nil)
	f.Add([]byte(nil), 0)
	f.Add([]byte(`null`), 1)
	f.Add(jsonrpc.AppendQuoted(nil, v.cursor(mcp.Tools, 2)), -1)
	f.Add([]byte(`"eyJsIjoidG9vbHMifQ"`), 2)
	f.Fuzz(func(t *testing.T, cursor []byte, size int) {
		page, err := v.Page(mcp.Tools, cursor, size)
		if err != nil {
			if !errors.Is(err, ErrCursor) || page != nil {
				t.Fatalf("%s, %v", page, err)
			}
			return
		}
		if items, _ := Items(mcp.Tools, page); !json.Valid(page) || len(items) == 0 {
			t.Fatalf("page %s", page)
		}
	})
}

// A template never fits a URI exactly without having its literals, and never takes long.
func FuzzTemplate(f *testing.F) {
	f.Add("file:///{path}/x{?q}", "file:///a/x?q=1")
	f.Add("{+a}{+b}{+c}{+d}{+e}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	f.Add("{}{a{b}}", "{}")
	f.Add("\xff{a}", "\xff1")
	f.Fuzz(func(t *testing.T, text, uri string) {
		template := parseTemplate(text)
		if template.expandsTo(uri) && !template.resembles(uri) {
			t.Fatalf("%q expands to %q and does not resemble it", text, uri)
		}
	})
}

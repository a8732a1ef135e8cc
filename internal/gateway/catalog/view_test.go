package catalog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

func TestBytesStayAsTheyAre(t *testing.T) {
	raw := `{"tools":[ { "title" : "<T>\u00e9", "x":9007199254740993, "name" : "r\u0065ad", "inputSchema":{"name":"no","b":1,"a":2} ,"_meta":{}}, 1, {"name":2}, {"name":"w"}],"nextCursor":"n\"1"}`
	items, next := Items(mcp.Tools, []byte(raw))
	if string(next) != `"n\"1"` {
		t.Errorf("cursor %s", next)
	}
	if items[0].Own() != "read" {
		t.Errorf("own name %q", items[0].Own())
	}
	v := New(Always).Merge(plain("s"), []*Lists{{mcp.Tools: items, mcp.Prompts: entries(mcp.Prompts, "p")}}, nil)
	want := `{"tools":[{ "title" : "<T>\u00e9", "x":9007199254740993, "name" : "s_read", "inputSchema":{"name":"no","b":1,"a":2} ,"_meta":{}},{"name":"s_w"}]}`
	if diff := cmp.Diff(want, string(mustPage(t, v, mcp.Tools, nil, 0))); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		l    mcp.List
		want string
	}{
		{mcp.Prompts, `{"prompts":[{"name":"s_p"}]}`},
		{mcp.Resources, `{"resources":[]}`},
		{mcp.Templates, `{"resourceTemplates":[]}`},
	} {
		if diff := cmp.Diff(tc.want, string(mustPage(t, v, tc.l, []byte("null"), 0))); diff != "" {
			t.Error(diff)
		}
	}
	if server, own, ok := v.Named(mcp.Prompts, "s_p"); server != 0 || own != "p" || !ok {
		t.Error(server, own, ok)
	}
	if _, _, ok := v.Named(mcp.Tools, "s_p"); ok {
		t.Error("a prompt is called as a tool")
	}
}

func TestItemsOfWhatIsNoList(t *testing.T) {
	for _, result := range []string{``, `null`, `[]`, `{}`, `{"tools":{}}`, `{"tools":null,"nextCursor":null}`, `{"tools":["a",null,{},{"name":null}]}`, `{"tools":[{"name":"a"}`} {
		if items, next := Items(mcp.Tools, []byte(result)); len(items) != 0 || next != nil {
			t.Errorf("%s: %d items, cursor %s", result, len(items), next)
		}
	}
}

func TestFirstServerHasTheResource(t *testing.T) {
	v := New(Always).Merge(plain("a", "b", "c"), []*Lists{
		resources("file:///1", "x:1"),
		{mcp.Resources: entries(mcp.Resources, "file:///2", "file:///1", "file:///2"), mcp.Templates: entries(mcp.Templates, "y:{n}")},
		templates("y:{n}", "x:{n}", "{+any}", "no scheme"),
	}, nil)
	if diff := cmp.Diff([]string{"file:///1", "x:1", "file:///2"}, seen(t, v, mcp.Resources)); diff != "" {
		t.Error(diff)
	}
	hidden := []Hidden{{1, mcp.Resources, "file:///1", 0}, {1, mcp.Resources, "file:///2", 1}, {2, mcp.Templates, "y:{n}", 1}}
	if diff := cmp.Diff(hidden, v.Hidden); diff != "" {
		t.Error(diff)
	}
	for uri, want := range map[string][]int{
		"file:///3": {0, 1}, "FILE:///3": {0, 1}, "x:5": {0, 2}, "y:": {1, 2}, "z:1": nil, "no scheme": nil, "": nil, "a/b:c": nil,
	} {
		if diff := cmp.Diff(want, v.Candidates(uri)); diff != "" {
			t.Errorf("candidates of %s: %s", uri, diff)
		}
	}
	if len(v.shown[mcp.Resources]) != 3 || len(v.shown[mcp.Tools]) != 0 {
		t.Error("wrong lengths")
	}
}

func TestOwner(t *testing.T) {
	v := New(Always).Merge(plain("files", "db", "web", "rest"), []*Lists{
		{mcp.Resources: entries(mcp.Resources, "file:///exact/a.txt"), mcp.Templates: entries(mcp.Templates, "file:///{path}", "repo://{owner}/{name}", "broken://{x")},
		templates("file:///exact/{name}", "db://{table}/schema", "repo://{owner}/{name}/issues/{n}", "tree://{path*}"),
		templates("db://{+path}", "web://{host}{/path*}{?query,page}{#fragment}", "mail:{user}{.domain}{;x}", "form:a?b=1{&c}"),
		templates("lit:eral", "a[b]:{x}$"),
	}, nil)
	for uri, want := range map[string]int{
		"file:///exact/a.txt":      0, // listed
		"file:///exact/b.txt":      1, // more literal text
		"file:///exact/b/c.txt":    1, // no expansion of either; more literal text
		"file:///other/b.txt":      0, // a slash where RFC 6570 has none
		"file:///":                 0,
		"file:///{path}":           0, // the template itself, as completion and subscription name it
		"db://users/schema":        1,
		"db://public/users/schema": 2, // only {+path} has slashes
		"db://":                    2,
		"repo://o/n":               0,
		"repo://o/n/issues/3":      1,
		"tree://a/b/c":             1,
		"web://h":                  2,
		"web://h/a/b?query=1#f":    2,
		"mail:me.org;x=1":          2,
		"form:a?b=1&c=2":           2,
		"lit:eral":                 3,
		"a[b]:1\n2$":               3,
		"nobody:1":                 -1,
		"lit:eral2":                -1,
		"broken://1":               -1,
		"broken://{x":              0,
		"file://":                  -1,
		"":                         -1,
	} {
		server, _, ok := v.Owner(uri)
		if !ok {
			server = -1
		}
		if server != want {
			t.Errorf("%q belongs to %d, want %d", uri, server, want)
		}
	}
}

func TestExpansions(t *testing.T) {
	for _, tc := range []struct{ template, of, notOf string }{
		{"a:{x}", "a:1 a: a:%2F a:b.c", "a:1/2 a:1?q a:1#f b:1"},
		{"a:{x}/{y}", "a:1/2 a:/", "a:1 a:1/2/3"},
		{"a:{x,y}", "a:1,2", "a:1/2"},
		{"a:{x*}/z", "a:1/2/z a:/z", "a:1/2"},
		{"a:{+x}z", "a:1/2?3#4z a:z", "a:1"},
		{"a:1{#x}", "a:1 a:1#f/?", "a:12 a:1/#f"},
		{"a:1{.x}", "a:1 a:1.html", "a:12 a:1.h/"},
		{"a:1{/x,y}", "a:1 a:1/2/3", "a:12 a:1/2?q a:1/2#f"},
		{"a:1{;x}", "a:1 a:1;x=2", "a:12 a:1;x=2/"},
		{"a:1{?x,y}", "a:1 a:1?x=/&y=2", "a:12 a:1?x#f"},
		{"a:1?z=0{&x}", "a:1?z=0 a:1?z=0&x=1", "a:1?z=01 a:1?z=0&x#f"},
		{"a:.{x}", "a:.1", "a:b1"},
		{"a:{}", "", "a:1"},
		{"a:}{x}", "", "a:}1"},
	} {
		template := parseTemplate(tc.template)
		for _, uri := range strings.Fields(tc.of) {
			if !template.expandsTo(uri) {
				t.Errorf("%s could be %s", tc.template, uri)
			}
		}
		for _, uri := range strings.Fields(tc.notOf) {
			if template.expandsTo(uri) {
				t.Errorf("%s is never %s", tc.template, uri)
			}
		}
	}
	long := "a:" + strings.Repeat("{x}", maxTemplate)
	if template := parseTemplate(long); template.expandsTo("a:1") || !template.resembles("a:1") {
		t.Error("a template of such a length is compiled, or of no use")
	}
}

func TestSame(t *testing.T) {
	of := func(list string) *View {
		items, _ := Items(mcp.Tools, []byte(`{"tools":[`+list+`]}`))
		return New(Always).Merge(plain("s"), []*Lists{{mcp.Tools: items}}, nil)
	}
	const base = `{"name":"a","description":"d"},{"name":"b"}`
	for _, tc := range []struct {
		name, list string
		same       bool
	}{
		{"the same", base, true},
		{"members in another order, and other _meta", `{"_meta":{"t":1},"description":"d","name":"a"},{"name":"b"}`, true},
		{"another order", `{"name":"b"},{"name":"a","description":"d"}`, true},
		{"one less", `{"name":"b"}`, false},
		{"one more", base + `,{"name":"c"}`, false},
		{"another description", `{"name":"a","description":"e"},{"name":"b"}`, false},
		{"another name", `{"name":"a","description":"d"},{"name":"c"}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := of(base), of(tc.list)
			if a.Same(mcp.Tools, b) != tc.same || b.Same(mcp.Tools, a) != tc.same {
				t.Errorf("want same: %v", tc.same)
			}
			if cmp.Equal(a.Digests(mcp.Tools), b.Digests(mcp.Tools)) != tc.same {
				t.Errorf("want the same digest: %v", tc.same)
			}
			if !a.Same(mcp.Prompts, b) {
				t.Error("the prompts differ")
			}
		})
	}
	if of(base).short(mcp.Tools) == of(`{"name":"b"},{"name":"a","description":"d"}`).short(mcp.Tools) {
		t.Error("a cursor does not tell one order from another")
	}
}

// A hostile template and a long URI cost limited time: what exceeds the limits is not matched.
func TestOwnerHasAnEnd(t *testing.T) {
	var hostile, many []string
	for i := range 20 {
		hostile = append(hostile, fmt.Sprintf(`{"uriTemplate":"x:%s%d"}`, strings.Repeat("a{b}", 400), i))
	}
	for i := range 5000 {
		many = append(many, fmt.Sprintf(`{"uriTemplate":"y:{a}{b}{c}%d"}`, i))
	}
	var lists Lists
	lists[mcp.Templates], _ = Items(mcp.Templates, []byte(`{"resourceTemplates":[`+strings.Join(append(hostile, many...), ",")+`]}`))
	v := New(Always).Merge(plain("s"), []*Lists{&lists}, nil)
	for _, uri := range []string{"x:" + strings.Repeat("a", 1<<20), "x:" + strings.Repeat("a", maxURI-10), "y:" + strings.Repeat("a", maxURI-10)} {
		begun := time.Now()
		if _, _, ok := v.Owner(uri); ok {
			t.Errorf("%.10s of %d bytes fits", uri, len(uri))
		}
		tier.Within(t, fmt.Sprintf("%.10s of %d bytes", uri, len(uri)), time.Since(begun), time.Second)
	}
	if _, _, ok := v.Owner("y:q7"); !ok {
		t.Error("a real URI has no owner")
	}
}

// A tool that can be called as a task only is not shown: through a gateway there are no tasks.
func TestTaskOnlyToolIsNotShown(t *testing.T) {
	var lists Lists
	lists[mcp.Tools], _ = Items(mcp.Tools, []byte(`{"tools":[{"name":"a","execution":{"taskSupport":"required"}},`+
		`{"name":"b","execution":{"taskSupport":"optional"}},{"name":"c"}]}`))
	v := New(Always).Merge(plain("s"), []*Lists{&lists}, nil)
	if diff := cmp.Diff([]string{"s_b", "s_c"}, seen(t, v, mcp.Tools)); diff != "" {
		t.Error(diff)
	}
	if _, _, ok := v.Named(mcp.Tools, "s_a"); ok {
		t.Error("it can be called")
	}
}

package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 70)
	for _, tc := range []struct {
		name    string
		names   Names
		servers []Server
		tools   [][]string
		want    []string
	}{
		{name: "always", names: Always, servers: plain("a", "b"), tools: [][]string{{"read", "write"}, {"read"}}, want: []string{"a_read", "a_write", "b_read"}},
		{name: "the default is always", servers: plain("a"), tools: [][]string{{"read"}}, want: []string{"a_read"}},
		{name: "a prefix of its own", servers: []Server{{Name: "a", Prefix: "fs"}}, tools: [][]string{{"read"}}, want: []string{"fs_read"}},
		{name: "on collision", names: OnCollision, servers: plain("a", "b", "c"), tools: [][]string{{"read"}, {"read", "write"}, {"write", "read"}}, want: []string{"read", "b_read", "write", "c_write", "c_read"}},
		{
			name: "never", names: Never, servers: plain("a", "b"), tools: [][]string{{"read"}, {"read", "write"}}, want: []string{"read", "b_read", "write"},
		},
		{
			name: "prefix and name run together", names: Always, servers: plain("a", "a_b"), tools: [][]string{{"b_c"}, {"c"}}, want: []string{"a_b_c", "a_b_c_a4c1a09b"},
		},
		{
			name: "the prefixed name is taken, too", names: OnCollision, servers: plain("a", "b"), tools: [][]string{{"read", "b_read"}, {"read"}}, want: []string{"read", "b_read", "b_read_3817876e"},
		},
		{
			name: "characters that models' APIs refuse", names: Always, servers: plain("my server"), tools: [][]string{{"files/read", "files.read", "größe"}}, want: []string{"my_server_files_read", "my_server_files_read_bda070bd", "my_server_gr__e"},
		},
		{name: "too long", names: Always, servers: plain("a"), tools: [][]string{{long, long + "y"}}, want: []string{"a_" + long[:53] + "_a29bca7e", "a_" + long[:53] + "_058698eb"}},
		{name: "as long as can be", names: Never, servers: plain("a"), tools: [][]string{{long[:64], ""}}, want: []string{long[:64], "_f468381e"}},
		{name: "renamed", servers: []Server{{Name: "a", Rename: map[string]string{"read_file": "read", "gone": "x"}}}, tools: [][]string{{"read_file", "write"}}, want: []string{"a_read", "a_write"}},
		{
			name: "renamed to what is there", names: OnCollision, servers: []Server{{Name: "a", Rename: map[string]string{"x": "read"}}}, tools: [][]string{{"read", "x"}}, want: []string{"read", "a_read"},
		},
		{
			name: "even the hash is taken", servers: []Server{{Name: "a", Prefix: "p"}, {Name: "b", Prefix: "p"}}, tools: [][]string{{"x", "x_e502457f"}, {"x"}}, want: []string{"p_x", "p_x_e502457f", "p_x_3e29c263"},
		},
		{name: "listed twice", names: Always, servers: plain("a"), tools: [][]string{{"read", "read"}}, want: []string{"a_read"}},
		{name: "nothing known of one", names: OnCollision, servers: plain("a", "b"), tools: [][]string{nil, {"read"}}, want: []string{"read"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lists := make([]*Lists, len(tc.tools))
			for i, names := range tc.tools {
				if names != nil {
					lists[i] = tools(names...)
				}
			}
			v := New(tc.names).Merge(tc.servers, lists, nil)
			if diff := cmp.Diff(tc.want, seen(t, v, mcp.Tools)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAllowAndDeny(t *testing.T) {
	all := []string{"read_file", "write_file", "list/all", "a[b"}
	for _, tc := range []struct {
		name        string
		allow, deny []string
		want        []string
	}{
		{name: "everything", want: all},
		{name: "allow", allow: []string{"read_*", "list/?ll"}, want: []string{"read_file", "list/all"}},
		{name: "deny", deny: []string{"write_file", "[k-m]ist*"}, want: []string{"read_file", "a[b"}},
		{name: "deny wins", allow: []string{"*_file"}, deny: []string{"write*"}, want: []string{"read_file"}},
		{name: "a star crosses a slash", allow: []string{"list*"}, want: []string{"list/all"}},
		{name: "escaped", allow: []string{`a\[b`}, want: []string{"a[b"}},
		{name: "a mistake in allow allows nothing", allow: []string{"[", "read_file"}, want: []string{"read_file"}},
		{name: "a mistake in deny denies everything", deny: []string{"["}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lists := &Lists{
				mcp.Tools: entries(mcp.Tools, all...), mcp.Prompts: entries(mcp.Prompts, all...), mcp.Resources: entries(mcp.Resources, "write_file"),
			}
			server := Server{Name: "s", Filter: Filter{Allow: tc.allow, Deny: tc.deny}}
			v := New(Never).Merge([]Server{server}, []*Lists{lists}, nil)
			for _, l := range []mcp.List{mcp.Tools, mcp.Prompts} {
				var own []string
				for _, name := range seen(t, v, l) {
					_, o, ok := v.Named(l, name)
					if !ok {
						t.Errorf("%s %s is listed and cannot be called", l, name)
					}
					own = append(own, o)
				}
				if diff := cmp.Diff(tc.want, own); diff != "" {
					t.Errorf("%s: %s", l, diff)
				}
			}
			if _, _, ok := v.Owner("write_file"); !ok {
				t.Error("a resource is filtered by the names of tools")
			}
			if _, _, ok := v.Named(mcp.Tools, "write_file"); ok && len(tc.deny) > 0 {
				t.Error("a denied tool can be called")
			}
		})
	}
}

// A tool is found by the name that its own server gives it, too, if no other one is called so.
func TestOwnNames(t *testing.T) {
	long := strings.Repeat("n", 128)
	lists := []*Lists{tools("files.read", "read", ""), tools("x/y", "read", long)}
	servers := []Server{{Name: "a", Rename: map[string]string{"files.read": "get"}}, {Name: "b"}}
	c := New(Always)
	v := c.Merge(servers, lists, nil)
	for own, want := range map[string]int{"files.read": 0, "": 0, "x/y": 1, long: 1} {
		if server, ok := v.Own(mcp.Tools, own); !ok || server != want {
			t.Errorf("%q: server %d, %v; want server %d", own, server, ok, want)
		}
		if item, ok := v.Item(mcp.Tools, own); !ok || item.Own() != own || c.Given(mcp.Tools, own) {
			t.Errorf("%q: %v, %q, or it is a shown name", own, ok, item.Own())
		}
	}
	if _, ok := v.Own(mcp.Tools, "read"); ok {
		t.Error("a name of two servers leads to one of them")
	}
	if diff := cmp.Diff([]string{"a_read", "b_read"}, v.Called(mcp.Tools, "read")); diff != "" {
		t.Error(diff)
	}
	if _, ok := c.Merge(servers, lists, Select(map[string]Filter{"a": {}})).Own(mcp.Tools, "x/y"); ok {
		t.Error("a tool that is not selected is found")
	}
	c = New(OnCollision)
	c.Merge(plain("a", "b"), []*Lists{tools("read"), tools("read")}, nil)
	if c.Merge(plain("a", "b"), []*Lists{nil, tools("read")}, nil); !c.Given(mcp.Tools, "read") {
		t.Error("the name of a tool that is not listed now is free for another server's")
	}
}

// Prompts are for people: their names keep every character.
func TestNamesOfPrompts(t *testing.T) {
	long := strings.Repeat("n", 100)
	lists := []*Lists{{mcp.Prompts: entries(mcp.Prompts, "code.review", "größe", long)}, {mcp.Prompts: entries(mcp.Prompts, "code.review", "a b")}}
	for names, want := range map[Names][]string{
		Always: {"a_code.review", "a_größe", "a_" + long, "b_code.review", "b_a b"},
		Never:  {"code.review", "größe", long, "b_code.review", "a b"},
	} {
		if diff := cmp.Diff(want, seen(t, New(names).Merge(plain("a", "b"), lists, nil), mcp.Prompts)); diff != "" {
			t.Errorf("%s: %s", names, diff)
		}
	}
}

// A name that begins with its server's prefix is not given it twice, unless it would be the name of another tool.
func TestNoPrefixTwice(t *testing.T) {
	for _, test := range []struct {
		servers []string
		lists   []*Lists
		want    []string
	}{
		{[]string{"git"}, []*Lists{tools("git_status", "git", "gitx", "log")}, []string{"git_status", "git_git", "git_gitx", "git_log"}},
		{[]string{"git"}, []*Lists{tools("git_status", "status")}, []string{"git_git_status", "git_status"}},
		{[]string{"git"}, []*Lists{tools("status", "git_status")}, []string{"git_status", "git_git_status"}},
		{[]string{"a", "a_b"}, []*Lists{tools("a_b_c"), tools("c")}, []string{"a_b_c", "a_b_c_"}},
		{[]string{"a_b", "a"}, []*Lists{tools("c"), tools("a_b_c")}, []string{"a_b_c", "a_a_b_c"}},
	} {
		got := seen(t, New(Always).Merge(plain(test.servers...), test.lists, nil), mcp.Tools)
		for i, want := range test.want {
			if i >= len(got) || got[i] != want && !(strings.HasSuffix(want, "_") && strings.HasPrefix(got[i], want)) {
				t.Errorf("%v: %v, want %v", test.servers, got, test.want)
				break
			}
		}
	}
}

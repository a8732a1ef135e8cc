package catalog

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// A name that a model has read is kept, whichever servers are added, removed and added again.
func TestNamesStay(t *testing.T) {
	servers := plain("a", "b")
	book := New(OnCollision)
	for _, step := range []struct {
		a, b *Lists
		want []string
	}{
		{nil, tools("read"), []string{"read"}},
		{tools("read"), tools("read"), []string{"a_read", "read"}},
		{tools("read"), tools(), []string{"a_read"}},
		{tools("read", "write"), nil, []string{"a_read", "write"}},
		{tools("read"), tools("write", "read"), []string{"a_read", "read", "b_write"}},
	} {
		v := book.Merge(servers, []*Lists{step.a, step.b}, nil)
		if diff := cmp.Diff(step.want, seen(t, v, mcp.Tools)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestToolsKeepTheirOrderAndResourcesTheServers(t *testing.T) {
	servers, book := plain("a"), New(Never)
	first := &Lists{mcp.Tools: entries(mcp.Tools, "x", "y", "z"), mcp.Resources: entries(mcp.Resources, "r:1", "r:2")}
	before := book.Merge(servers, []*Lists{first}, nil)
	shuffled := &Lists{mcp.Tools: entries(mcp.Tools, "z", "new", "x", "y"), mcp.Resources: entries(mcp.Resources, "r:2", "r:1")}
	after := book.Merge(servers, []*Lists{shuffled}, nil)
	if diff := cmp.Diff([]string{"x", "y", "z", "new"}, seen(t, after, mcp.Tools)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"r:2", "r:1"}, seen(t, after, mcp.Resources)); diff != "" {
		t.Error(diff)
	}
	if before.Same(mcp.Tools, after) || !before.Same(mcp.Resources, after) {
		t.Error("a new tool is a change, another order of resources is none")
	}
}

func TestAnotherConfigurationTakesNamesBack(t *testing.T) {
	book := New(Never)
	lists := []*Lists{tools("x", "y")}
	rename := func(to map[string]string, prefix string) []string {
		return seen(t, book.Merge([]Server{{Name: "a", Prefix: prefix, Rename: to}}, lists, nil), mcp.Tools)
	}
	for _, step := range []struct {
		to     map[string]string
		prefix string
		want   []string
	}{
		{nil, "", []string{"x", "y"}},
		{map[string]string{"x": "y", "y": "x"}, "", []string{"y", "x"}},
		{map[string]string{"x": "same", "y": "same"}, "p", []string{"same", "p_same"}},
		{nil, "q", []string{"x", "y"}},
	} {
		if diff := cmp.Diff(step.want, rename(step.to, step.prefix)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestForget(t *testing.T) {
	book := New(Never)
	old := book.Merge(plain("old"), []*Lists{tools("read")}, nil)
	book.Forget("old")
	book.Forget("never known")
	v := book.Merge(plain("new"), []*Lists{tools("read")}, nil)
	if diff := cmp.Diff([]string{"read"}, seen(t, v, mcp.Tools)); diff != "" {
		t.Error(diff)
	}
	if _, own, ok := old.Named(mcp.Tools, "read"); !ok || own != "read" {
		t.Error("a View changed")
	}
}

// A server that invents names for ever does not make the Catalog grow for ever.
func TestInventedNamesAreForgotten(t *testing.T) {
	book := New(Never)
	servers := plain("a")
	const each = 1000
	for round := range 2 * maxLabels / each {
		names := make([]string, each)
		for i := range names {
			names[i] = fmt.Sprintf("t%d_%d", round, i)
		}
		names[0] = "stays"
		v := book.Merge(servers, []*Lists{tools(names...)}, nil)
		if got := seen(t, v, mcp.Tools)[0]; got != "stays" {
			t.Fatalf("%s is first", got)
		}
	}
	if labels, taken := len(book.servers["a"].labels[mcp.Tools]), len(book.taken[mcp.Tools]); labels > maxLabels || taken != labels {
		t.Errorf("%d labels and %d names are remembered", labels, taken)
	}
}

func TestWhatIsEqualIsHeldOnce(t *testing.T) {
	servers, book := plain("a", "b"), New(Always)
	lists := func(more ...string) []*Lists {
		return []*Lists{tools("x", "y"), {mcp.Tools: entries(mcp.Tools, "z"), mcp.Resources: entries(mcp.Resources, more...)}}
	}
	v := book.Merge(servers, lists("r:1"), nil)
	one, same := tools("x"), tools("x")
	if one[mcp.Tools][0] != same[mcp.Tools][0] {
		t.Error("the same entry is another Item")
	}
	other := book.Merge(servers, lists("r:2"), nil)
	if other == v || other.Same(mcp.Resources, v) || !other.Same(mcp.Tools, v) {
		t.Error("another resource is not noticed")
	}
	if again := book.Merge(servers, lists("r:2"), nil); again != other {
		t.Error("what was merged a moment ago is another View")
	}
	// Sessions come, see something of their own, and go.
	for i := range 2000 {
		book.Merge(servers, lists(fmt.Sprintf("r:%d", i)), nil)
		if i%100 == 0 {
			runtime.GC()
		}
	}
	if len(book.views) > 500 {
		t.Errorf("%d views are remembered that nobody has", len(book.views))
	}
	runtime.KeepAlive(v)
}

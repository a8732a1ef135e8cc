package catalog

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

var (
	shownName  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	hashedName = regexp.MustCompile(`_[0-9a-f]{8}$`)
)

// identity is what identifies an entry for a user.
type identity struct {
	list        mcp.List
	server, own string
}

// model drives two Catalogs with the same changing lists, and records what was shown before. The second Catalog starts from
// nothing each time and must give the same result: nothing may depend on what is shared or cached, or on the order of
// iteration.
type model struct {
	servers []Server
	names   Names
	books   [2]*Catalog
	lists   []*Lists
	texts   []map[mcp.List]string // raw results, by server
	given   map[identity]string
	before  *View
}

func newModel(t *rapid.T) *model {
	m := &model{
		names: rapid.SampledFrom([]Names{Always, OnCollision, Never}).Draw(t, "names"),
		servers: []Server{
			{Name: "a", Filter: Filter{Deny: []string{"secret*"}}},
			{Name: "b", Prefix: "a"}, // every name collides
			{Name: "a_b", Rename: map[string]string{"c": "b_c", "x.y": "c"}},
			{Name: strings.Repeat("long", 20), Filter: Filter{Allow: []string{"?*"}}},
		},
		given: map[identity]string{},
	}
	m.books = [2]*Catalog{New(m.names), New(m.names)}
	m.lists = make([]*Lists, len(m.servers))
	m.texts = make([]map[mcp.List]string, len(m.servers))
	return m
}

var poolNames = []string{"", "c", "b_c", "b_b_c", "x.y", "x/y", "x_y", "secret", "é", strings.Repeat("n", 61), strings.Repeat("n", 62), strings.Repeat("n", 63), strings.Repeat("n", 64), strings.Repeat("n", 64) + ".", `q"uote`}

var poolURIs = []string{"x:1", "x:2", "y:1", "y:{n}", "x:{n}", "none"}

// change changes the lists of one server, or removes them.
func (m *model) change(t *rapid.T) {
	i := rapid.IntRange(0, len(m.servers)-1).Draw(t, "server")
	if rapid.IntRange(0, 4).Draw(t, "gone") == 0 {
		m.lists[i], m.texts[i] = nil, nil
		return
	}
	m.texts[i] = map[mcp.List]string{}
	for l := range mcp.Lists {
		pool := poolURIs
		if named(l) {
			pool = poolNames
		}
		var array []string
		for _, name := range rapid.SliceOfN(rapid.SampledFrom(pool), 0, 8).Draw(t, l.String()) {
			quoted, err := json.Marshal(name)
			if err != nil {
				t.Fatal(err)
			}
			array = append(array, fmt.Sprintf(`{"d":%d,"%s":%s,"z":{"name":1}}`, rapid.IntRange(0, 2).Draw(t, "d"), l.Key(), quoted))
		}
		m.texts[i][l] = fmt.Sprintf(`{"%s":[%s]}`, l.Member(), strings.Join(array, ","))
	}
	m.lists[i] = m.read(i)
}

func (m *model) read(server int) *Lists {
	if m.texts[server] == nil {
		return nil
	}
	var lists Lists
	for l, text := range m.texts[server] {
		lists[l], _ = Items(l, []byte(text))
	}
	return &lists
}

func (m *model) check(t *rapid.T) {
	v := m.books[0].Merge(m.servers, m.lists, nil)
	anew := make([]*Lists, len(m.servers))
	for i := range anew {
		anew[i] = m.read(i)
	}
	if m.books[0].Merge(m.servers, anew, nil) != v {
		t.Fatal("the same lists, read again, are another View")
	}
	other := m.books[1].Merge(m.servers, anew, nil)
	size := rapid.IntRange(1, 9).Draw(t, "size")
	for l := range mcp.Lists {
		whole := walk(t, v, l, 0)
		if diff := cmp.Diff(whole, walk(t, v, l, size)); diff != "" {
			t.Fatalf("pages of %d are not the whole: %s", size, diff)
		}
		if diff := cmp.Diff(whole, walk(t, other, l, 0)); diff != "" || !cmp.Equal(v.Digests(l), other.Digests(l)) {
			t.Fatalf("another Catalog shows something else: %s", diff)
		}
		if m.before != nil {
			was := walk(t, m.before, l, 0)
			if same := slices.Equal(sorted(was), sorted(whole)); same != v.Same(l, m.before) || same != m.before.Same(l, v) {
				t.Fatalf("Same says %v of %s and %s", !same, was, whole)
			} else if same != (together(v, l) == together(m.before, l)) {
				t.Fatalf("Digests say %v of %s and %s", !same, was, whole)
			}
		}
		m.checkList(t, v, l, whole)
	}
	m.before = v
}

// together combines the digests of all servers.
func together(v *View, l mcp.List) (all [DigestSize]byte) {
	for _, one := range v.Digests(l) {
		subtle.XORBytes(all[:], all[:], one)
	}
	return all
}

// checkList: names are unique, stable, of tools what models' APIs take, and lead back to where they came from; nothing that a
// server lists and may show is missing.
func (m *model) checkList(t *rapid.T, v *View, l mcp.List, whole []string) {
	wanted := m.wanted(l)
	names := seen(t, v, l)
	if len(names) != len(wanted) || len(v.shown[l]) != len(wanted) {
		t.Fatalf("%s: %d are shown, want %d: %q", l, len(names), len(wanted), names)
	}
	once := map[string]bool{}
	for i, name := range names {
		if once[name] {
			t.Fatalf("%q is shown twice", name)
		}
		once[name] = true
		server, own, ok := v.Named(l, name)
		if owner, _, found := v.Owner(name); l == mcp.Resources {
			ok = found && owner == server
		}
		id := identity{l, m.servers[server].Name, own}
		raw, listed := wanted[id]
		if !ok || !listed {
			t.Fatalf("%q leads to %+v (%v), which is not shown", name, id, ok)
		}
		quotedOwn, _ := json.Marshal(own)
		quotedName, _ := json.Marshal(name)
		if want := bytes.Replace([]byte(raw), quotedOwn, quotedName, 1); string(want) != whole[i] {
			t.Fatalf("shown %s, want %s", whole[i], want)
		}
		if named(l) {
			m.checkName(t, id, name)
		}
	}
}

func (m *model) checkName(t *rapid.T, id identity, name string) {
	if id.list == mcp.Tools && !shownName.MatchString(name) {
		t.Fatalf("%q is not a name for a model", name)
	}
	if was, ok := m.given[id]; ok && was != name {
		t.Fatalf("%+v was %q and is %q", id, was, name)
	}
	m.given[id] = name
	server := m.servers[slices.IndexFunc(m.servers, func(s Server) bool { return s.Name == id.server })]
	plain := fit(id.list, server.base(id.own), id.server, id.own)
	prefixed := fit(id.list, server.prefix()+"_"+server.base(id.own), id.server, id.own)
	if name != prefixed && (m.names == Always || name != plain) && !hashedName.MatchString(name) {
		t.Fatalf("%+v is %q, which is neither %q nor distinguished by a hash", id, name, prefixed)
	}
}

// wanted is what should be shown, with the entry's text, determined from the raw results by encoding/json.
func (m *model) wanted(l mcp.List) map[identity]string {
	wanted, uris := map[identity]string{}, map[string]bool{}
	for i, texts := range m.texts {
		var result map[string][]json.RawMessage
		if texts == nil {
			continue
		}
		if err := json.Unmarshal([]byte(texts[l]), &result); err != nil {
			panic(err)
		}
		for _, raw := range result[l.Member()] {
			var members map[string]any
			if err := json.Unmarshal(raw, &members); err != nil {
				panic(err)
			}
			own, _ := members[l.Key()].(string)
			id := identity{l, m.servers[i].Name, own}
			_, doubled := wanted[id]
			switch {
			case doubled, named(l) && i == 0 && own == "secret", named(l) && i == 3 && own == "":
			case !named(l) && uris[own]:
			default:
				wanted[id] = string(raw)
				uris[own] = true
			}
		}
	}
	return wanted
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// TestModel lets lists come, change and go in any order.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				m.change(t)
			}
			m.check(t)
		}
		shown := map[mcp.List]map[string]bool{mcp.Tools: {}, mcp.Prompts: {}}
		for id, name := range m.given {
			if shown[id.list][name] {
				t.Fatalf("%q was given to two entries", name)
			}
			shown[id.list][name] = true
		}
	})
}

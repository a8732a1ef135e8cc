package catalog

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// View is what clients see of all servers together. It is immutable. A server is identified by its index in the slice
// that was passed to Merge.
type View struct {
	// Hidden are the entries that are left out because an earlier one has the same URI, or because their server lists them
	// twice. Those that Allow and Deny leave out are not among them.
	Hidden []Hidden

	servers []string // their names; "": nothing is shown of it
	shown   [mcp.Lists][]*shown
	owners  [mcp.Lists][]int // the server of each
	places  [mcp.Lists]map[string]int
	digests [mcp.Lists][sha256.Size]byte // of the entries in this order, for cursors

	links     map[string]owned // user interfaces that tools refer to, by the URI that clients see
	templates []routed
	schemes   map[string][]int // servers, in order, with a resource or template of the scheme
}

// owned is a resource of a server.
type owned struct {
	server int
	own    string
}

// routed is a template and its server.
type routed struct {
	*template
	server int
}

// Hidden is an entry that is left out.
type Hidden struct {
	Server int // index of its server
	List   mcp.List
	Own    string // its URI or name at the server
	By     int    // index of the server whose entry is shown; the same: its server lists it twice
}

func newView(parts []*part) *View {
	v := &View{servers: make([]string, len(parts)), schemes: map[string][]int{}, links: map[string]owned{}}
	for l := range mcp.Lists {
		v.fill(l, parts)
		v.digests[l] = digest(v.shown[l])
	}
	for server, p := range parts {
		if p == nil {
			continue
		}
		v.servers[server] = p.server.Name
		for _, l := range []mcp.List{mcp.Resources, mcp.Templates} {
			for _, s := range p.shown[l] {
				name := scheme(s.item.Own())
				if servers := v.schemes[name]; name != "" && (len(servers) == 0 || servers[len(servers)-1] != server) {
					v.schemes[name] = append(servers, server)
				}
			}
		}
		for _, s := range p.shown[mcp.Tools] {
			for _, l := range s.links {
				v.links[l.shown] = owned{server, l.uri}
			}
		}
	}
	from := make([]int, len(parts)) // number of templates of each server
	for i, s := range v.shown[mcp.Templates] {
		server := v.owners[mcp.Templates][i]
		if from[server]++; from[server] <= maxTemplates {
			v.templates = append(v.templates, routed{s.template, server})
		}
	}
	slices.SortStableFunc(v.templates, func(a, b routed) int { return b.literal - a.literal })
	return v
}

// fill concatenates the servers' entries; of several with the same name the first is kept.
func (v *View) fill(l mcp.List, parts []*part) {
	total := 0
	for _, p := range parts {
		if p != nil {
			total += len(p.shown[l])
		}
	}
	v.shown[l] = make([]*shown, 0, total)
	v.owners[l] = make([]int, 0, total)
	v.places[l] = make(map[string]int, total)
	for server, p := range parts {
		if p == nil {
			continue
		}
		for _, s := range p.shown[l] {
			if place, doubled := v.places[l][s.name]; doubled {
				v.Hidden = append(v.Hidden, Hidden{server, l, s.item.Own(), v.owners[l][place]})
				continue
			}
			v.places[l][s.name] = len(v.shown[l])
			v.shown[l] = append(v.shown[l], s)
			v.owners[l] = append(v.owners[l], server)
		}
	}
}

func digest(entries []*shown) [sha256.Size]byte {
	var text []byte
	for _, s := range entries {
		text = binary.AppendUvarint(text, uint64(len(s.name)))
		text = append(text, s.name...)
		text = append(text, s.digest[:]...)
	}
	return sha256.Sum256(text)
}

// scheme is the part of a URI before its first colon, "" if there is none.
func scheme(uri string) string {
	name, _, found := strings.Cut(uri, ":")
	if !found || strings.ContainsAny(name, "/?#{}") {
		return ""
	}
	return strings.ToLower(name)
}

// Named returns the server of a shown tool or prompt, and its own name there.
func (v *View) Named(l mcp.List, shown string) (server int, own string, ok bool) {
	place, ok := v.places[l][shown]
	if !ok {
		return 0, "", false
	}
	return v.owners[l][place], v.shown[l][place].item.Own(), true
}

// Own returns the server of the only tool or prompt whose own name it is. With a name that was shown for another one this is not
// what the client means: see [Catalog.Given].
func (v *View) Own(l mcp.List, own string) (server int, ok bool) {
	if called := v.called(l, own); len(called) == 1 {
		return v.owners[l][called[0]], true
	}
	return 0, false
}

// Called are the shown names of the tools or prompts whose own name it is.
func (v *View) Called(l mcp.List, own string) (shown []string) {
	for _, place := range v.called(l, own) {
		shown = append(shown, v.shown[l][place].name)
	}
	return shown
}

func (v *View) called(l mcp.List, own string) (places []int) {
	for i, s := range v.shown[l] {
		if s.item.Own() == own {
			places = append(places, i)
		}
	}
	return places
}

// Item returns the tool or prompt with a shown name, or the only one with such an own name, as its server wrote it.
func (v *View) Item(l mcp.List, name string) (item Item, ok bool) {
	place, ok := v.places[l][name]
	if !ok {
		called := v.called(l, name)
		if len(called) != 1 {
			return Item{}, false
		}
		place = called[0]
	}
	return v.shown[l][place].item, true
}

// Owner returns the server of a URI, and the URI at that server: the server that lists it as a resource or as a
// template, or whose tool has it as its user interface; otherwise the one with a template that matches. Templates
// that RFC 6570 would expand to this URI are preferred; the others only need the same literal text, because servers
// are not strict about slashes in {path}. Among equals the template with the most literal text wins.
func (v *View) Owner(uri string) (server int, own string, ok bool) {
	for _, l := range []mcp.List{mcp.Resources, mcp.Templates} {
		if place, ok := v.places[l][uri]; ok {
			return v.owners[l][place], v.shown[l][place].item.Own(), true
		}
	}
	if link, ok := v.links[uri]; ok {
		return link.server, link.own, true
	}
	if len(uri) > maxURI {
		return 0, "", false
	}
	for _, t := range v.templates {
		if !t.resembles(uri) { // faster than the expression; without this it is no expansion either
			continue
		}
		if t.expandsTo(uri) {
			return t.server, uri, true
		}
		if !ok {
			server, ok = t.server, true
		}
	}
	return server, uri, ok
}

// Candidates are the servers, in order, that have a resource or template of the URI's scheme: they can be asked for a
// URI without an Owner. The slice must not be changed.
func (v *View) Candidates(uri string) []int { return v.schemes[scheme(uri)] }

// DigestSize is the length of one of [View.Digests], in bytes. With hundreds of servers they are most of a session's record.
const DigestSize = 12

// Digests identify what a list shows of each server, by its name. Servers without entries are left out. All of them
// together, combined by XOR, are the same for two Views exactly if [View.Same] says so. They are computed anew each time.
// Each has [DigestSize] bytes.
func (v *View) Digests(l mcp.List) map[string][]byte {
	all := map[string][]byte{}
	for i, s := range v.shown[l] {
		name, one := v.servers[v.owners[l][i]], digest([]*shown{s})
		if all[name] == nil {
			all[name] = make([]byte, DigestSize)
		}
		subtle.XORBytes(all[name], all[name], one[:DigestSize])
	}
	return all
}

// Same reports whether both Views show the same entries, in any order. If they do not, list_changed is sent.
func (v *View) Same(l mcp.List, other *View) bool {
	if v == other || v.digests[l] == other.digests[l] {
		return true
	}
	if len(v.shown[l]) != len(other.shown[l]) {
		return false
	}
	for _, s := range v.shown[l] {
		place, ok := other.places[l][s.name]
		if !ok || other.shown[l][place].digest != s.digest {
			return false
		}
	}
	return true
}

package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Selection is a part of what all servers show: some of the servers, and of these some of the tools and prompts. It is
// immutable. The nil Selection is everything.
type Selection struct {
	servers map[string]Filter
	digest  string // identifies it in a Catalog
}

// Select makes a Selection of the named servers; a Filter says what is shown of its server, besides what the Server's
// own Filter says. Resources and templates are those of the servers. No servers: it shows nothing.
func Select(servers map[string]Filter) *Selection {
	text, _ := json.Marshal(servers) // texts only: no error; names are in order
	sum := sha256.Sum256(text)
	return &Selection{servers: maps.Clone(servers), digest: string(sum[:])}
}

// Has reports whether anything of a server is selected.
func (s *Selection) Has(server string) bool {
	if s == nil {
		return true
	}
	_, ok := s.servers[server]
	return ok
}

// of is what is selected of a part of a selected server.
func (s *Selection) of(p *part) *part {
	if s == nil || p == nil {
		return p
	}
	filter := s.servers[p.server.Name]
	if filter.equal(Filter{}) {
		return p
	}
	some := *p
	for _, l := range []mcp.List{mcp.Tools, mcp.Prompts} {
		some.shown[l] = slices.DeleteFunc(slices.Clone(p.shown[l]), func(one *shown) bool { return !filter.shows(one.item.Own()) })
	}
	return &some
}

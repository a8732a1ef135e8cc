package gateway

import (
	"encoding/hex"
	"slices"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// memory is a server's last lists, by client capabilities: servers show other tools to clients with other capabilities.
// They answer and route until the server was asked itself.
type memory []remembered // the latest last

type remembered struct {
	key   string // of a scope
	lists *catalog.Lists
}

// rememberedMost is how many kinds of clients are remembered for one server.
const rememberedMost = 16

// of returns what a client of that key was shown last, nil for nothing.
func (m memory) of(key string) *catalog.Lists {
	for _, r := range m {
		if r.key == key {
			return r.lists
		}
	}
	return nil
}

// latest are the last lists shown to any client; nil: none.
func (m memory) latest() *catalog.Lists {
	if len(m) == 0 {
		return nil
	}
	return m[len(m)-1].lists
}

// recall takes over the lists that an earlier run of the server's command has shown its last client, if all are known.
func (m *memory) recall(k backend.Knowledge) {
	if k.Initialize == nil {
		return
	}
	var lists catalog.Lists
	for l := range mcp.Lists {
		result := k.LegacyList(l)
		if result == nil && l != mcp.Templates && declares(k.Initialize, l.Capability()) { // many have resources, and no templates
			return
		}
		lists[l], _ = catalog.Items(l, result)
	}
	m.note(legacyKey(k.Asked), &lists)
}

// note remembers what a client of that key is shown.
func (m *memory) note(key string, lists *catalog.Lists) {
	*m = slices.DeleteFunc(*m, func(r remembered) bool { return r.key == key })
	if *m = append(*m, remembered{key, lists}); len(*m) > rememberedMost {
		*m = (*m)[1:]
	}
}

// capabilityKey identifies a legacy client's capabilities: its raw params of initialize without its name.
func capabilityKey(params []byte) string { return legacyKey(backend.AskedDigest(params)) }

func legacyKey(asked string) string { return "legacy " + asked }

// modernKey identifies what modern clients are shown; can are the raw capabilities declared to servers.
func modernKey(can []byte) string {
	sum := mcp.EntryDigest(can)
	return "modern " + hex.EncodeToString(sum[:8])
}

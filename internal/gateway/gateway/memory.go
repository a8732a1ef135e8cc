package gateway

import (
	"encoding/hex"
	"slices"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// memory is what a server has shown, by what its client could do: servers show other tools to clients with other
// capabilities, so what one client was shown is not an answer for another one.
type memory struct{ shown []remembered } // the latest last

type remembered struct {
	key   string // of a scope
	lists *catalog.Lists
}

// rememberedMost is how many different clients' lists are remembered of one server.
const rememberedMost = 16

// of returns what a client of that key was shown last, nil for nothing.
func (m *memory) of(key string) *catalog.Lists {
	for _, r := range m.shown {
		if r.key == key {
			return r.lists
		}
	}
	return nil
}

// latest is what was shown last, whoever the client was; nil for nothing.
func (m *memory) latest() *catalog.Lists {
	if len(m.shown) == 0 {
		return nil
	}
	return m.shown[len(m.shown)-1].lists
}

// note remembers what a client of that key is shown.
func (m *memory) note(key string, lists *catalog.Lists) {
	m.shown = slices.DeleteFunc(m.shown, func(r remembered) bool { return r.key == key })
	m.shown = append(m.shown, remembered{key, lists})
	if len(m.shown) > rememberedMost {
		m.shown = m.shown[1:]
	}
}

// capabilityKey stands for what a client of the legacy era can do: its raw params of initialize without its name. Members in
// another order make no difference.
func capabilityKey(params []byte) string {
	sum := mcp.EntryDigest(jsonrpc.Delete(nil, params, "clientInfo"))
	return "legacy " + hex.EncodeToString(sum[:8])
}

// modernKey stands for what all clients of the modern era are shown; can are the raw capabilities that servers are told of.
func modernKey(can []byte) string {
	if can == nil {
		can = []byte("{}")
	}
	sum := mcp.EntryDigest(can)
	return "modern " + hex.EncodeToString(sum[:8])
}

package bridge

import (
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// discoverResult is the raw DiscoverResult that stands for a raw InitializeResult. It may not be kept: a restarted
// server can be another one.
func discoverResult(initialize []byte) []byte {
	capabilities := without(member(initialize, "capabilities"), "tasks")
	if capabilities == nil {
		capabilities = []byte("{}")
	}
	out := []byte(`{"resultType":"complete","supportedVersions":["` + mcp.ModernVersion + `"],"capabilities":`)
	out = append(out, capabilities...)
	out = append(out, `,"ttlMs":0,"cacheScope":"private"`...)
	if text := member(initialize, "instructions"); jsonrpc.IsString(text) {
		out = append(append(out, `,"instructions":`...), text...)
	}
	out = append(out, '}')
	if meta := member(withoutReserved(initialize), "_meta"); jsonrpc.IsObject(meta) {
		out = set(out, meta, "_meta")
	}
	if info := member(initialize, "serverInfo"); jsonrpc.IsObject(info) {
		out = set(out, info, "_meta", mcp.MetaServerInfo)
	}
	return out
}

// pinnedProbes begins the ids of server/discover requests of the TypeScript SDK (2.x) before it connects. A client
// pinned to the modern era cannot be told from one that would fall back.
const pinnedProbes = "server-discover-probe-"

// MayBePinned reports whether the client that sent server/discover under a raw id may give up if that method is not
// found. Other SDKs' pinned clients do not ask; those that ask fall back (Python and Go SDK).
func MayBePinned(id []byte) bool {
	text, ok := jsonrpc.Unquote(id)
	return ok && strings.HasPrefix(text, pinnedProbes)
}

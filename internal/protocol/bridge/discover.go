package bridge

import (
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
	return set(out, jsonrpc.AppendQuoted(nil, ModernClient.String()), "_meta", mcp.MetaBridge)
}

package bridge

import (
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// nobody is the name for a peer without one, where the other era requires it.
const nobody = `{"name":"unknown","version":"0"}`

// initializeParams are the raw params of initialize for a modern client, given the raw _meta of one of its requests and
// what it can do.
func initializeParams(meta []byte, can abilities) []byte {
	info := member(meta, mcp.MetaClientInfo)
	if !jsonrpc.IsObject(info) {
		info = []byte(nobody)
	}
	out := []byte(`{"protocolVersion":"` + mcp.NewestLegacy + `","capabilities":`)
	out = append(out, legacyCapabilities(member(meta, mcp.MetaClientCapabilities), can)...)
	out = append(out, `,"clientInfo":`...)
	return append(append(out, info...), '}')
}

// settledVersion is the version to settle on with a legacy client that asked for a raw version: its own if that is one
// of the legacy era, the newest otherwise.
func settledVersion(asked []byte) string {
	if version, _ := jsonrpc.Unquote(asked); mcp.IsLegacy(version) {
		return version
	}
	return mcp.NewestLegacy
}

// initializeResult is the raw InitializeResult that stands for a raw DiscoverResult. declared are the raw extensions
// that the client knows, nil for none.
func initializeResult(discover []byte, version string, declared []byte) []byte {
	info := member(discover, "_meta", mcp.MetaServerInfo)
	if !jsonrpc.IsObject(info) {
		info = []byte(nobody)
	}
	out := []byte(`{"protocolVersion":"` + version + `","capabilities":`)
	out = append(out, legacyOffer(member(discover, "capabilities"), declared)...)
	out = append(append(out, `,"serverInfo":`...), info...)
	if text := member(discover, "instructions"); jsonrpc.IsString(text) {
		out = append(append(out, `,"instructions":`...), text...)
	}
	out = append(out, '}')
	rest := withoutReserved(discover)
	if meta := member(rest, "_meta"); meta != nil {
		out = set(out, meta, "_meta")
	}
	return out
}

// legacyOffer are a modern server's raw capabilities for a legacy client: the same, but extensions that the client has
// not declared itself and tasks.
func legacyOffer(capabilities, declared []byte) []byte {
	if capabilities == nil {
		return []byte("{}")
	}
	both := prune(objectsOf(member(capabilities, "extensions"), tasksExtension), func(name string) bool {
		return member(declared, name) == nil
	})
	out := without(capabilities, "tasks", "extensions")
	if len(both) > len("{}") {
		out = set(out, both, "extensions")
	}
	return out
}

// discoverResult is the raw DiscoverResult that stands for a raw InitializeResult. It may not be kept: a restarted
// server can be another one.
func discoverResult(initialize []byte) []byte {
	capabilities := without(member(initialize, "capabilities"), "tasks")
	if capabilities == nil {
		capabilities = []byte("{}")
	}
	out := []byte(`{"resultType":"complete","supportedVersions":` + mcp.ModernVersions + `,"capabilities":`)
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

package mcp

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// Era is which of the two forms of the protocol a peer speaks.
type Era uint8

const (
	// EraUnknown: nothing was said yet that decides.
	EraUnknown Era = iota
	// Legacy: the connection begins with initialize (2024-11-05 … 2025-11-25).
	Legacy
	// Modern: each request carries its version in _meta (2026-07-28 on); there is no handshake.
	Modern
)

// String names the era as status shows it.
func (e Era) String() string {
	return [...]string{"unknown", "legacy", "modern"}[e]
}

// Other is the other one of the two eras; of EraUnknown it is EraUnknown.
func (e Era) Other() Era { return [...]Era{EraUnknown, Modern, Legacy}[e] }

const (
	// ModernVersion is the version without a handshake, which outlive's own requests have.
	ModernVersion = "2026-07-28"
	// ModernVersions is the raw array of the versions that [IsModern] takes.
	ModernVersions = `["` + ModernVersion + `"]`
	// BatchVersion is the only version whose messages may come as JSON arrays.
	BatchVersion = "2025-03-26"
	// ProgressMessageVersion is the first version whose progress may carry a message.
	ProgressMessageVersion = "2025-03-26"
)

// LegacyVersions are the versions that begin with initialize, oldest first.
var LegacyVersions = []string{"2024-11-05", BatchVersion, "2025-06-18", "2025-11-25"}

// NewestLegacy is the version that outlive asks for, and that a client gets which asks for an unknown one.
var NewestLegacy = LegacyVersions[len(LegacyVersions)-1]

// IsModern reports whether a raw version is one without a handshake.
func IsModern(version []byte) bool { return jsonrpc.EqualString(version, ModernVersion) }

// NamesModern reports whether a raw array of versions has the modern one.
func NamesModern(versions []byte) bool {
	for at := range jsonrpc.Elements(versions) {
		if IsModern(at.Of(versions)) {
			return true
		}
	}
	return false
}

// Codes of errors that the protocol has besides those of JSON-RPC.
const (
	CodeHeaders    = -32020 // modern: the headers of a request do not match its body, or are missing
	CodeCapability = -32021 // modern: the request needs something that the client has not declared
	CodeVersion    = -32022 // modern: the protocol version is not supported
	CodeNoResource = -32002 // legacy: there is no such resource
	CodeOpenURL    = -32042 // legacy 2025-11-25: the client has to open a URL first
)

// UnsupportedVersion is the raw data of an error that refuses a raw version of a modern request.
func UnsupportedVersion(asked []byte) []byte {
	return append(append([]byte(`{"supported":`+ModernVersions+`,"requested":`), asked...), '}')
}

// IsLegacy reports whether version begins with initialize.
func IsLegacy(version string) bool { return slices.Contains(LegacyVersions, version) }

// Keys of a request's or result's _meta in the modern era.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
)

// MetaOutcome is the key under which outlive says, in the _meta of a result of its own, what became of a call.
const MetaOutcome = "dev.outlive/outcome"

// RequestMeta is the _meta of a modern request of a client with this info and these capabilities. Both are raw objects; info may be nil.
func RequestMeta(info, capabilities []byte) []byte {
	out := []byte(`{"` + MetaProtocolVersion + `":"` + ModernVersion + `"`)
	if info != nil {
		out = append(append(out, `,"`+MetaClientInfo+`":`...), info...)
	}
	return append(append(append(out, `,"`+MetaClientCapabilities+`":`...), capabilities...), '}')
}

// OwnMeta is the _meta of a request of outlive's own for a client, given that of one of its requests: version, client and
// capabilities. The rest, such as a log level or a trace, is of the client's request alone.
func OwnMeta(meta []byte) []byte {
	own := []byte("{}")
	for _, key := range []string{MetaProtocolVersion, MetaClientInfo, MetaClientCapabilities} {
		if value := jsonrpc.Find(meta, key).Of(meta); value != nil {
			own, _ = jsonrpc.Set(nil, own, value, key) // an object
		}
	}
	return own
}

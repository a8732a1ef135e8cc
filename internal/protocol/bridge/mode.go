package bridge

import (
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Mode is the direction of translation.
type Mode uint8

const (
	// None: both sides speak one era, or that is not known yet.
	None Mode = iota
	// LegacyClient: the client speaks the legacy era, the server the modern one only.
	LegacyClient
	// ModernClient: the client speaks the modern era, the server the legacy one only.
	ModernClient
)

// String names the mode as status shows it.
func (m Mode) String() string {
	switch m {
	case LegacyClient:
		return "legacy client, modern server"
	case ModernClient:
		return "modern client, legacy server"
	}
	return "none"
}

// ServerEra is the era in which the bridge speaks to the server; EraUnknown without a bridge.
func (m Mode) ServerEra() mcp.Era {
	switch m {
	case LegacyClient:
		return mcp.Modern
	case ModernClient:
		return mcp.Legacy
	}
	return mcp.EraUnknown
}

// ClientEra is the era in which the client speaks to the bridge; EraUnknown without a bridge.
func (m Mode) ClientEra() mcp.Era {
	switch m {
	case LegacyClient:
		return mcp.Legacy
	case ModernClient:
		return mcp.Modern
	}
	return mcp.EraUnknown
}

// Setting is the user's choice.
type Setting uint8

const (
	// Auto translates where one side would not understand the other.
	Auto Setting = iota
	// Off never translates.
	Off
)

// Need decides whether to translate between a client that speaks era and a server that certainly speaks only one era;
// EraUnknown: it speaks both, or that is a guess. Servers of both eras are never bridged, because a bridge can do less.
func Need(setting Setting, era, only mcp.Era) Mode {
	switch {
	case setting == Off:
		return None
	case era == mcp.Legacy && only == mcp.Modern:
		return LegacyClient
	case era == mcp.Modern && only == mcp.Legacy:
		return ModernClient
	}
	return None
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

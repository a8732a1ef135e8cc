package bridge

import (
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Mode is what has to be translated.
type Mode uint8

const (
	// None: both sides understand each other, or it is not known yet whether they do.
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

// ServerEra is the era in which the bridge speaks to the server; Virgin without a bridge.
func (m Mode) ServerEra() mcp.Era {
	switch m {
	case LegacyClient:
		return mcp.Modern
	case ModernClient:
		return mcp.Legacy
	}
	return mcp.Virgin
}

// ClientEra is the era in which the client speaks to the bridge; Virgin without a bridge.
func (m Mode) ClientEra() mcp.Era {
	switch m {
	case LegacyClient:
		return mcp.Legacy
	case ModernClient:
		return mcp.Modern
	}
	return mcp.Virgin
}

// Setting is the user's wish.
type Setting uint8

const (
	// Auto translates where one side would not understand the other.
	Auto Setting = iota
	// Off never translates.
	Off
)

// Answer is what is known of a yes-or-no question.
type Answer uint8

// The answers. A guess is Unknown.
const (
	Unknown Answer = iota
	Yes
	No
)

// Speaks is what is known of a server: whether it takes each era.
type Speaks struct {
	Legacy, Modern Answer
}

// Need decides whether to translate between a client that speaks era and a server. It is wanted only when it is certain
// that the server does not speak the client's era and does speak the other one: a server of both eras is never bridged,
// because a bridge can do less than the real thing.
func Need(setting Setting, era mcp.Era, server Speaks) Mode {
	switch {
	case setting == Off:
		return None
	case era == mcp.Legacy && server == Speaks{Legacy: No, Modern: Yes}:
		return LegacyClient
	case era == mcp.Modern && server == Speaks{Legacy: Yes, Modern: No}:
		return ModernClient
	}
	return None
}

// pinnedProbes begins the ids under which the TypeScript SDK asks server/discover before it connects (2.x). A client of
// it that is pinned to the modern era asks in just the same words as one that would fall back.
const pinnedProbes = "server-discover-probe-"

// MayBePinned reports whether the client that sent server/discover under a raw id may be one that goes no further if it
// is told that there is no such method. Other SDKs' pinned clients do not ask: those that do fall back (Python and Go SDK).
func MayBePinned(id []byte) bool {
	text, ok := jsonrpc.Unquote(id)
	return ok && strings.HasPrefix(text, pinnedProbes)
}

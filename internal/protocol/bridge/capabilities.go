package bridge

import (
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// abilities are what a client can be asked for.
type abilities uint8

const (
	canRoots abilities = 1 << iota
	canSample
	canSampleTools
	canSampleContext
	canForm
	canURL
)

// tasksExtension is the modern era's form of what the bridge offers in neither.
const tasksExtension = "io.modelcontextprotocol/tasks"

// places are where raw capabilities name each ability, in the order in which they are written.
var places = []struct {
	can  abilities
	path []string
}{
	{canRoots, []string{"roots"}},
	{canSample, []string{"sampling"}},
	{canSampleContext, []string{"sampling", "context"}},
	{canSampleTools, []string{"sampling", "tools"}},
	{canForm, []string{"elicitation", "form"}},
	{canURL, []string{"elicitation", "url"}},
}

// abilitiesOf reads a client's raw capabilities, which are the same in both eras. An elicitation without a mode is by
// form.
func abilitiesOf(capabilities []byte) abilities {
	var can abilities
	for _, one := range places {
		if jsonrpc.IsObject(member(capabilities, one.path...)) {
			can |= one.can
		}
	}
	if jsonrpc.IsObject(member(capabilities, "elicitation")) && can&canURL == 0 {
		can |= canForm
	}
	return can
}

// since removes abilities that are newer than the negotiated version.
func (a abilities) since(version string) abilities {
	if version < "2025-11-25" {
		a &^= canURL | canSampleTools | canSampleContext
	}
	if version < "2025-06-18" {
		a &^= canForm
	}
	return a
}

// raw writes the abilities down as both eras do.
func (a abilities) raw() []byte {
	out := []byte("{}")
	for _, one := range places {
		if a&one.can != 0 {
			out = set(out, []byte("{}"), one.path...)
		}
	}
	return out
}

// modernCapabilities are the raw capabilities of a legacy client for a modern server.
func modernCapabilities(capabilities []byte, version string) []byte {
	out := legacyCapabilities(capabilities, abilitiesOf(capabilities).since(version))
	if v := objectsOf(member(capabilities, "extensions"), tasksExtension); v != nil {
		out = set(out, v, "extensions")
	}
	return out
}

// legacyCapabilities are the raw capabilities of a modern client for a legacy server: its abilities and its experimental
// capabilities.
func legacyCapabilities(capabilities []byte, can abilities) []byte {
	out := can.raw()
	if v := objectsOf(member(capabilities, "experimental"), ""); v != nil {
		out = set(out, v, "experimental")
	}
	return out
}

// objectsOf returns a raw object with the members only that are objects themselves, but for one name; nil if nothing is
// left.
func objectsOf(object []byte, but string) []byte {
	out := mapped(object, func(name string, value []byte) []byte {
		if name == but || !jsonrpc.IsObject(value) {
			return nil
		}
		return value
	})
	for range jsonrpc.Members(out) {
		return out
	}
	return nil
}

package backend

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"

	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Knowledge is what runs of a command teach about it. It is kept per command and binary.
type Knowledge struct {
	Era      mcp.Era `json:"era"`                // by a probe. Legacy: do not probe it again. Modern: it answers, and may speak both.
	Probe    string  `json:"probe,omitempty"`    // how it took a probe: ok, error, silent, exits
	Discover []byte  `json:"discover,omitempty"` // raw DiscoverResult of a modern server
	// NoInitialize says that it has refused initialize, because it speaks the modern era only.
	NoInitialize bool `json:"no_initialize,omitempty"`
	// Listen says how it takes subscriptions/listen.
	Listen Listening `json:"listen,omitempty"`

	// Asked is a digest of what a client asked in its initialize, and Initialize the raw result it got: to the byte,
	// because a server that says the same again is known by that.
	Asked      string `json:"asked,omitempty"`
	Initialize []byte `json:"initialize,omitempty"`
	// Lists are the raw results of the list methods that fit one page, by era and list: "legacy tools".
	Lists map[string][]byte `json:"lists,omitempty"`
}

// rememberedMost is the most of a list that is remembered, in bytes.
const rememberedMost = 1 << 20

// askedDigest is what an answer to initialize depends on: all that the client said but its name.
func askedDigest(params []byte) string {
	sum := sha256.Sum256(jsonrpc.Delete(nil, params, "clientInfo"))
	return hex.EncodeToString(sum[:8])
}

// memory is what is known of the command, and who keeps it for the next run.
type memory struct {
	known Knowledge
	keep  Memory
}

// learn keeps what was seen of the command. The lists stay: whoever learns of one says so.
func (m *memory) learn(k Knowledge) {
	k.Lists = m.known.Lists
	was := m.known
	if k.Era == was.Era && k.Probe == was.Probe && bytes.Equal(k.Discover, was.Discover) &&
		k.NoInitialize == was.NoInitialize && k.Listen == was.Listen && k.Asked == was.Asked && bytes.Equal(k.Initialize, was.Initialize) {
		return
	}
	m.known = k
	m.keep.Remember(k)
}

// learnList keeps a list that the serving process gave the client in one piece; nil: it has none in one piece.
func (m *memory) learnList(era mcp.Era, l mcp.List, result []byte) {
	key := listKey(era, l)
	if len(result) > rememberedMost || jsonrpc.Find(result, "nextCursor").Present() {
		result = nil
	}
	if bytes.Equal(m.known.Lists[key], result) {
		return
	}
	lists := maps.Clone(m.known.Lists)
	if lists == nil {
		lists = map[string][]byte{}
	}
	delete(lists, key)
	if result != nil {
		lists[key] = bytes.Clone(result)
	}
	m.known.Lists = lists
	m.keep.Remember(m.known)
}

// listKey is under which a list is remembered: a server that speaks both eras writes its results differently.
func listKey(era mcp.Era, l mcp.List) string { return era.String() + " " + l.String() }

// lazy reports whether the first process is to wait until it is needed: everything a client asks at first is known.
func (m *memory) lazy(opts Options) bool {
	k := m.known
	return opts.Lazy && !opts.NoFastStart && (k.Initialize != nil || k.Era == mcp.Modern && len(k.Discover) > 0)
}

// speaks is what is known of the eras that the server takes.
func (k Knowledge) speaks() bridge.Speaks {
	s := bridge.Speaks{}
	switch {
	case k.NoInitialize:
		s.Legacy = bridge.No
	case k.Initialize != nil || k.Era == mcp.Legacy:
		s.Legacy = bridge.Yes
	}
	switch k.Era {
	case mcp.Modern:
		s.Modern = bridge.Yes
	case mcp.Legacy:
		s.Modern = bridge.No
	}
	return s
}

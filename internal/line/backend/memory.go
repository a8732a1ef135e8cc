package backend

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Knowledge is what earlier runs of a command have shown. It is stored per command and binary.
type Knowledge struct {
	Era      mcp.Era `json:"era"`                // by a probe. Legacy: do not probe it again. Modern: it answers, and may speak both.
	Discover []byte  `json:"discover,omitempty"` // raw DiscoverResult of a modern server
	// NoInitialize says that it has refused initialize, because it speaks the modern era only.
	NoInitialize bool `json:"no_initialize,omitempty"`
	// Listen says how it takes subscriptions/listen.
	Listen Listening `json:"listen,omitempty"`

	// Asked is a digest of the params of a client's initialize, and Initialize the raw result, byte for byte: a server
	// that repeats it is recognised by that.
	Asked      string `json:"asked,omitempty"`
	Initialize []byte `json:"initialize,omitempty"`
	// Lists are the raw results of the list methods that fit one page, by era and list: "legacy tools".
	Lists map[string][]byte `json:"lists,omitempty"`
	// ListedBy are digests of the raw handshake results of servers that have shown exactly these Lists, by the same keys, the
	// oldest first. There are several because the result depends on the client, too, such as on its protocol version.
	ListedBy map[string][]string `json:"listed_by,omitempty"`
}

const (
	// rememberedMost is the most of a list that is remembered, in bytes.
	rememberedMost = 1 << 20
	// listedByMost is for how many handshake results a list is remembered.
	listedByMost = 8
)

// AskedDigest covers what an answer to initialize depends on: all raw params except the client's name. The order of
// members does not matter.
func AskedDigest(params []byte) string {
	sum := mcp.EntryDigest(jsonrpc.Delete(nil, params, "clientInfo"))
	return hex.EncodeToString(sum[:8])
}

// LegacyList is the raw list that the server with this Initialize has shown; nil: unknown.
func (k Knowledge) LegacyList(l mcp.List) []byte {
	key := listKey(mcp.Legacy, l)
	if !slices.Contains(k.ListedBy[key], digest(k.Initialize)) {
		return nil
	}
	return k.Lists[key]
}

// digest is a short one of a raw value.
func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// memory is what is known of the command, and where it is stored for the next run.
type memory struct {
	known Knowledge
	keep  World
}

// learn stores new knowledge. Lists are kept; they are learned separately.
func (m *memory) learn(k Knowledge) {
	k.Lists, k.ListedBy = m.known.Lists, m.known.ListedBy
	was := m.known
	if k.Era == was.Era && bytes.Equal(k.Discover, was.Discover) &&
		k.NoInitialize == was.NoInitialize && k.Listen == was.Listen && k.Asked == was.Asked && bytes.Equal(k.Initialize, was.Initialize) {
		return
	}
	m.known = k
	m.keep.Remember(was, k)
}

// learnList stores a list that p has shown in one page; nil: it has several pages.
func (m *memory) learnList(era mcp.Era, l mcp.List, p *process, result []byte) {
	key, offer := listKey(era, l), p.offerDigest()
	if len(result) > rememberedMost || jsonrpc.Find(result, "nextCursor").Present() {
		result = nil
	}
	same, by := bytes.Equal(m.known.Lists[key], result), m.known.ListedBy[key]
	shown := result == nil || offer == "" || slices.Contains(by, offer)
	if same && shown {
		return
	}
	if !same {
		by = nil
	}
	if result != nil && offer != "" {
		by = withOffer(by, offer)
	}
	was := m.known
	m.known.Lists = with(was.Lists, key, bytes.Clone(result))
	m.known.ListedBy = with(was.ListedBy, key, by)
	m.keep.Remember(was, m.known)
}

// withOffer returns a copy of handshake results with another one, without the oldest if they are too many.
func withOffer(by []string, offer string) []string {
	return append(slices.Clone(by[max(0, len(by)+1-listedByMost):]), offer)
}

// After returns what is stored now that one process of the command has learned what makes now of was. k is what is stored: other
// processes of the command, of other clients, have learned other things meanwhile.
func (k Knowledge) After(was, now Knowledge) Knowledge {
	if now.Era != was.Era || !bytes.Equal(now.Discover, was.Discover) {
		k.Era, k.Discover = now.Era, now.Discover
	}
	if now.NoInitialize != was.NoInitialize {
		k.NoInitialize = now.NoInitialize
	}
	if now.Listen != was.Listen {
		k.Listen = now.Listen
	}
	if now.Asked != was.Asked || !bytes.Equal(now.Initialize, was.Initialize) {
		k.Asked, k.Initialize = now.Asked, now.Initialize
	}
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		for l := range mcp.Lists {
			key := listKey(era, l)
			list, by := now.Lists[key], now.ListedBy[key]
			if bytes.Equal(list, was.Lists[key]) && slices.Equal(by, was.ListedBy[key]) {
				continue
			}
			if same := bytes.Equal(list, k.Lists[key]); same {
				for _, offer := range k.ListedBy[key] {
					if !slices.Contains(by, offer) {
						by = withOffer(by, offer)
					}
				}
			}
			k.Lists, k.ListedBy = with(k.Lists, key, list), with(k.ListedBy, key, by)
		}
	}
	return k
}

// with returns a copy of a map with another value; nil: without it.
func with[T any](all map[string][]T, key string, value []T) map[string][]T {
	all = maps.Clone(all)
	if all == nil {
		all = map[string][]T{}
	}
	delete(all, key)
	if value != nil {
		all[key] = value
	}
	return all
}

// listOf is a list as a server with the same handshake result as p has shown it last, maybe to an earlier run; nil: none has.
func (m *memory) listOf(r *mcp.Reader, era mcp.Era, l mcp.List, p *process) mcp.Catalog {
	key := listKey(era, l)
	result := m.known.Lists[key]
	if result == nil || !slices.Contains(m.known.ListedBy[key], p.offerDigest()) {
		return nil
	}
	c := mcp.Catalog{}
	r.AddPage(c, l, result)
	return c
}

// listKey is the key of a remembered list: a server that speaks both eras writes its results differently.
func listKey(era mcp.Era, l mcp.List) string { return era.String() + " " + l.String() }

// lazy reports whether the first process starts on demand: all answers to a client's first requests are known.
func (m *memory) lazy(opts Options) bool {
	k := m.known
	return opts.Lazy && !opts.NoFastStart && (k.Initialize != nil || k.Era == mcp.Modern && len(k.Discover) > 0)
}

// only is the one era that the server certainly speaks, and no other; EraUnknown: it may speak both.
func (k Knowledge) only() mcp.Era {
	if k.Era == mcp.Modern && k.NoInitialize || k.Era == mcp.Legacy && !k.NoInitialize {
		return k.Era
	}
	return mcp.EraUnknown
}

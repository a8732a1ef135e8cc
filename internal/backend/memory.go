package backend

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
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

// learn keeps what was seen of the command. The lists stay: whoever learns of one says so.
func (b *Backend) learn(k Knowledge) {
	k.Lists = b.opts.Known.Lists
	was := b.opts.Known
	if k.Era == was.Era && k.Probe == was.Probe && bytes.Equal(k.Discover, was.Discover) &&
		k.NoInitialize == was.NoInitialize && k.Listen == was.Listen && k.Asked == was.Asked && bytes.Equal(k.Initialize, was.Initialize) {
		return
	}
	b.opts.Known = k
	b.world.Remember(k)
}

// learnList keeps a list that the serving process gave the client in one piece; nil: it has none in one piece.
func (b *Backend) learnList(l mcp.List, result []byte) {
	key := b.listKey(l)
	if len(result) > rememberedMost || jsonrpc.Find(result, "nextCursor").Present() {
		result = nil
	}
	if bytes.Equal(b.opts.Known.Lists[key], result) {
		return
	}
	lists := maps.Clone(b.opts.Known.Lists)
	if lists == nil {
		lists = map[string][]byte{}
	}
	delete(lists, key)
	if result != nil {
		lists[key] = bytes.Clone(result)
	}
	b.opts.Known.Lists = lists
	b.world.Remember(b.opts.Known)
}

// listKey is under which a list is remembered: a server that speaks both eras writes its results differently.
func (b *Backend) listKey(l mcp.List) string { return b.session.Era.String() + " " + l.String() }

// initializeFromMemory answers the client's handshake with what an earlier run of the same command answered, while the
// server is still starting, or asleep. The server gets its handshake when it is up, and differences are announced then.
func (b *Backend) initializeFromMemory(c *call) bool {
	known := b.opts.Known
	if b.opts.NoFastStart || known.Initialize == nil || known.Asked != askedDigest(b.session.InitParams) ||
		b.process.answered || b.probe.seen || b.hopeless() {
		return false
	}
	result := bytes.Clone(known.Initialize)
	b.settled(result)
	b.remembered("initialize")
	b.answer(c, jsonrpc.AppendResult(nil, c.id.raw, mcp.AdvertiseListChanged(result, b.tools.on)))
	if p := b.process; p.up {
		b.greet(p)
	}
	return true
}

// settled notes what a handshake settled, given its raw result.
func (b *Backend) settled(result []byte) {
	version, _ := jsonrpc.Unquote(jsonrpc.Find(result, "protocolVersion").Of(result))
	b.session.InitResult, b.session.Version = result, version
}

// listFromMemory answers a list request while there is no server yet that could. Not one of a batch: what the client has
// not seen before the batch's last answer may have changed by then, and it would hear of that first.
func (b *Backend) listFromMemory(c *call) bool {
	l, _ := mcp.ListOf(c.method)
	result := b.opts.Known.Lists[b.listKey(l)]
	up := b.process.up && b.process.answered
	if up || b.opts.NoFastStart || result == nil || !c.first || c.batch != nil || b.session.Seen(l) != nil && !b.asleep() || b.hopeless() ||
		!b.session.Answered() && b.session.Era != mcp.Modern {
		return false
	}
	line := jsonrpc.AppendResult(nil, c.id.raw, result)
	_ = b.env.Scan(line) // two valid texts put together
	if l == mcp.Tools {
		page := mcp.Catalog{}
		b.reader.AddPage(page, mcp.Tools, result)
		b.tools.avoid(page)
		line = b.withTools(line)
	}
	b.session.SawPage(&b.reader, l, true, b.env.Result.Of(line))
	b.remembered(c.method.String())
	b.answer(c, line)
	return true
}

func (b *Backend) remembered(method string) {
	b.emit(event.AnsweredFromMemory, slog.LevelInfo, method+" answered from memory: the server is not up yet",
		slog.String(event.KeyMethod, method))
}

// lazy reports whether the first process is to wait until it is needed: everything a client asks at first is known.
func (b *Backend) lazy() bool {
	k := b.opts.Known
	return b.opts.Lazy && !b.opts.NoFastStart && (k.Initialize != nil || k.Era == mcp.Modern && len(k.Discover) > 0)
}

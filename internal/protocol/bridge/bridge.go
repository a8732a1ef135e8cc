package bridge

import (
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

const (
	// roundsMost is how many rounds of questions one call may take; the official SDKs stop at 8 to 10.
	roundsMost = 10
	// answerFor is how long a client may take to answer what a server has asked it.
	answerFor = 10 * time.Minute
	// unclearFor is how long a server's question waits for it to become clear which call it belongs to.
	unclearFor = 30 * time.Second
	// listenFor is how long a server may take to acknowledge a subscription.
	listenFor = 20 * time.Second
	// queueMost is how many requests may wait in a bridge, each: for the handshake, and for their turn.
	queueMost = 1024
)

// Options are a bridge's settings.
type Options struct {
	// Mode is the direction; None is not allowed.
	Mode Mode
	// Key seals what a modern client keeps for the bridge between two rounds. It must be random, one for each process
	// that makes bridges, and the same again for one that is restored. At least 32 bytes.
	Key []byte
	// Client tells this client apart from all others who share the key, so that none can use what another was given.
	Client string
	// Shared: the lines of a modern client are those of many, who share the server. What it asks and logs reaches nobody
	// else than whom it is meant for.
	Shared bool
}

// Output is what a call of the bridge has led to. The lines are without newline, in the order they are to be sent, and
// valid until the next call; some are parts of the line that was handed in.
type Output struct {
	ToServer [][]byte
	ToClient [][]byte
	// Deadline is when [Bridge.Tick] wants to be called; zero: not at all.
	Deadline time.Time
}

// Bridge translates between one client and its server.
type Bridge struct {
	opts Options
	side side
	core
}

// core is what both directions need; the exported fields are what a bridge remembers of it.
type core struct {
	Last int // private id given out last

	now time.Time
	env jsonrpc.Envelope // scratch of the line being handled
	out Output
}

// side is one direction of translation.
type side interface {
	fromClient(line []byte)
	fromServer(line []byte)
	tick()
	deadline() time.Time
	close(why string)
	waiting() bool
}

// New returns a bridge for a client that has said nothing yet.
func New(opts Options) *Bridge {
	b := &Bridge{opts: opts}
	switch opts.Mode {
	case LegacyClient:
		b.side = newLegacySide(&b.core)
	case ModernClient:
		seal := sealer{key: opts.Key, client: opts.Client}
		if b.side = newModernSide(&b.core, seal); opts.Shared {
			b.side = newCrowd(&b.core, seal)
		}
	default:
		panic("bridge: no mode")
	}
	return b
}

// Mode returns what the bridge translates.
func (b *Bridge) Mode() Mode { return b.opts.Mode }

// FromClient takes one line of the client. A line that is not a message is handed on: refusing it is the business of what
// stands behind the bridge.
func (b *Bridge) FromClient(line []byte, now time.Time) Output {
	b.begin(now)
	if line = jsonrpc.Trim(line); len(line) > 0 {
		b.side.fromClient(line)
	}
	return b.end()
}

// FromServer takes one line for the client. One that is not a message is dropped.
func (b *Bridge) FromServer(line []byte, now time.Time) Output {
	b.begin(now)
	if line = jsonrpc.Trim(line); b.env.Scan(line) == nil {
		b.side.fromServer(line)
	}
	return b.end()
}

// Over tells that the server has answered a request, by its raw id there, that was withdrawn: it works on it no more.
func (b *Bridge) Over(id []byte, now time.Time) Output {
	b.begin(now)
	if s, modern := b.side.(*modernSide); modern {
		s.over(id)
	}
	return b.end()
}

// Reborn tells that the processes that have heard of earlier requests are all dead.
func (b *Bridge) Reborn(now time.Time) Output {
	b.begin(now)
	if s, modern := b.side.(*modernSide); modern {
		s.restarted()
	}
	return b.end()
}

// Tick lets everything happen whose time has come.
func (b *Bridge) Tick(now time.Time) Output {
	b.begin(now)
	b.side.tick()
	return b.end()
}

// Rest tells that the server is asleep: what the bridge itself wants of it must not wake it. What the client wants does.
func (b *Bridge) Rest(now time.Time) Output {
	b.begin(now)
	if s, legacy := b.side.(*legacySide); legacy {
		s.rest()
	}
	return b.end()
}

// Wake tells that the server is up again.
func (b *Bridge) Wake(now time.Time) Output {
	b.begin(now)
	if s, legacy := b.side.(*legacySide); legacy {
		s.wake()
	}
	return b.end()
}

// Own reports whether the server's request with this raw id is a stream that the bridge has opened for itself, and nothing
// that the client waits for.
func (b *Bridge) Own(id []byte) bool {
	s, legacy := b.side.(*legacySide)
	return legacy && s.Watch.own(id)
}

// ClientVersion is the protocol version that the client speaks; "" before it is known.
func (b *Bridge) ClientVersion() string {
	if s, legacy := b.side.(*legacySide); legacy {
		return s.Version
	}
	return mcp.ModernVersion
}

// Waiting reports whether the client has said something that is kept back from the server for now.
func (b *Bridge) Waiting() bool { return b.side.waiting() }

// Close answers whatever the client still waits for with an error; the bridge must not be used any more. What the server
// works on is not withdrawn: that is the business of whoever takes it away.
func (b *Bridge) Close(why string, now time.Time) Output {
	b.begin(now)
	b.side.close(why)
	out := b.out
	out.ToServer = nil
	return out
}

func (b *Bridge) begin(now time.Time) {
	b.now = now
	b.out = Output{}
}

func (b *Bridge) end() Output {
	b.out.Deadline = b.side.deadline()
	return b.out
}

func (c *core) toServer(line []byte) { c.out.ToServer = append(c.out.ToServer, line) }
func (c *core) toClient(line []byte) { c.out.ToClient = append(c.out.ToClient, line) }

// decline answers a question of the server that its client is not asked.
func (c *core) decline(q *question, why string) {
	c.toServer(jsonrpc.AppendError(nil, q.ID, jsonrpc.InternalError, why, nil))
}

// privatePrefix begins every id that the bridge makes up. It is another one than the keeper's behind it, which gives its
// own ids to requests with ids like those; a subscription must keep the id under which the server speaks of it.
const privatePrefix = "b~"

// private makes up a raw id.
func (c *core) private() []byte {
	c.Last++
	return []byte(`"` + privatePrefix + strconv.Itoa(c.Last) + `"`)
}

// looksPrivate reports whether a client's raw id could be one of the bridge's. Such a request goes on under a private id
// itself, so two requests with one id never meet.
func looksPrivate(id []byte) bool {
	text, ok := jsonrpc.Unquote(id)
	return ok && strings.HasPrefix(text, privatePrefix)
}

// earlier returns the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// due reports whether a time has come; zero never comes.
func (c *core) due(at time.Time) bool { return !at.IsZero() && !c.now.Before(at) }

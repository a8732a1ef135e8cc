package bridge

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

const (
	// roundsMost is how many rounds of questions one call may take; the official SDKs stop at 8 to 10.
	roundsMost = 10
	// answerFor is how long a client may take to answer a server's question.
	answerFor = 10 * time.Minute
	// unclearFor is how long a server's question may be without a call.
	unclearFor = 30 * time.Second
	// listenFor is how long a server may take to acknowledge a subscription.
	listenFor = 20 * time.Second
	// queueMost is the maximum of requests waiting for their turn.
	queueMost = 1024
)

// Options are a bridge's settings.
type Options struct {
	// Client is the era of the client; the server speaks the other one only. EraUnknown is not allowed.
	Client mcp.Era
	// Key seals the state that a modern client carries between two rounds. It must be random, at least 32 bytes, one for
	// each process that makes bridges.
	Key []byte
	// Principal tells whom the transport has authenticated for the client's request with this raw id; "": nobody. With it several
	// modern clients share the server, and its questions and logs must reach only the right one. nil: there is one client.
	Principal func(id []byte) string
}

// Output is the result of a method of the bridge. The lines are without newline, in sending order, and valid until the
// next one; some are parts of the input line.
type Output struct {
	ToServer []Message
	ToClient [][]byte
	Again    bool   // the client's message waits for the handshake: it is to be said again when [Bridge.Greeting] is over
	Refusal  []byte // raw error for all requests that wait for the handshake, which has failed; nil: it has not
}

// Message is one line for the server.
type Message struct {
	Line []byte
	Of   *Call // what a request is for, which its answer comes back with; nil: the line is no request
}

// Bridge translates between one client and its server.
type Bridge struct {
	opts Options
	side side
	core
}

// core is what both directions need.
type core struct {
	Phase phase // of the handshake with the server
	Last  int   // private id given out last
	Calls calls // the client's

	now time.Time
	env jsonrpc.Envelope // scratch of the line being handled
	out Output
}

// reach notes how far the handshake with the server is.
func (c *core) reach(p phase) { c.Phase = p }

// later has the client's message said again when the handshake is over.
func (c *core) later() { c.out.Again = true }

// unmet notes that the handshake with the server has failed, and why.
func (c *core) unmet(why string) {
	c.reach(noHandshake)
	c.out.Refusal = append(jsonrpc.AppendQuoted([]byte(`{"code":-32603,"message":`), why), '}')
}

// side is one direction of translation.
type side interface {
	fromClient(line []byte)
	fromServer(line []byte)
	served(c *Call, line []byte)
	tick()
	deadline() time.Time
	close(why string)
}

// New returns a bridge for a client that has said nothing yet.
func New(opts Options) *Bridge {
	b := &Bridge{opts: opts}
	switch opts.Client {
	case mcp.Legacy:
		b.side = &legacySide{core: &b.core}
	case mcp.Modern:
		b.side = newModernSide(&b.core, opts)
	default:
		panic("bridge: a client of no era")
	}
	return b
}

// Name says what is translated for a client of an era, as status shows it.
func Name(client mcp.Era) string {
	return client.String() + " client, " + client.Other().String() + " server"
}

// Client is the era of the client.
func (b *Bridge) Client() mcp.Era { return b.opts.Client }

// Greeting reports whether the handshake with the server is under way. Nothing that the client says is for [Bridge.FromClient] meanwhile:
// it waits, since scripts write all their lines at once.
func (b *Bridge) Greeting() bool { return b.Phase == greeting }

// FromClient takes one message of the client. A line that is none is dropped: it is refused before.
func (b *Bridge) FromClient(line []byte, now time.Time) Output {
	b.begin(now)
	if line = jsonrpc.Trim(line); b.env.Scan(line) == nil && b.env.Version2 {
		b.side.fromClient(line)
	}
	return b.out
}

// FromServer takes one line for the client that answers nothing. One that is not a message is dropped.
func (b *Bridge) FromServer(line []byte, now time.Time) Output {
	b.begin(now)
	if line = jsonrpc.Trim(line); b.env.Scan(line) == nil {
		b.side.fromServer(line)
	}
	return b.out
}

// Answered takes the answer to a request of the bridge, which has come with what the request was for. A call that the client has given up
// meanwhile is not in the table any more. progress is what the client was told last of it, raw.
func (b *Bridge) Answered(c *Call, line, progress []byte, now time.Time) Output {
	b.begin(now)
	c.Progress = bytes.Clone(progress)
	switch {
	case b.env.Scan(line) != nil:
	case c.then != nil:
		c.then(line)
	case slices.Contains(b.Calls, c):
		b.side.served(c, line)
	}
	return b.out
}

// Over reports that no server works on a cancelled request, given its raw id there. It was answered late, or no server had got it.
func (b *Bridge) Over(id []byte, now time.Time) Output {
	return ofSide(b, now, func(s *modernSide) {
		if c := s.Calls.onWire(id); c.cancelled() {
			s.over(c)
		}
	})
}

// Reborn reports that all processes that know of earlier requests are dead.
func (b *Bridge) Reborn(now time.Time) Output {
	return ofSide(b, now, (*modernSide).restarted)
}

// Tick handles everything that is due.
func (b *Bridge) Tick(now time.Time) Output {
	b.begin(now)
	b.side.tick()
	return b.out
}

// Deadline is when [Bridge.Tick] must be called; zero: not at all.
func (b *Bridge) Deadline() time.Time { return b.side.deadline() }

// Rest reports that the server sleeps. The bridge's own requests must not wake it; the client's do.
func (b *Bridge) Rest(now time.Time) Output {
	return ofSide(b, now, (*legacySide).rest)
}

// Wake reports that the server is up again.
func (b *Bridge) Wake(now time.Time) Output {
	return ofSide(b, now, (*legacySide).wake)
}

// ofSide does what one direction has, and the other one not.
func ofSide[S side](b *Bridge, now time.Time, do func(S)) Output {
	b.begin(now)
	if s, is := b.side.(S); is {
		do(s)
	}
	return b.out
}

// ClientVersion is the protocol version that the client speaks; "" before it is known.
func (b *Bridge) ClientVersion() string {
	if s, legacy := b.side.(*legacySide); legacy {
		return s.Version
	}
	return mcp.ModernVersion
}

// Waiting reports whether messages of the client are being held back.
func (b *Bridge) Waiting() bool {
	s, modern := b.side.(*modernSide)
	return modern && len(s.Queue) > 0
}

// Close answers all open requests of the client with an error. The bridge must not be used afterwards. Requests at the
// server are not cancelled; that is left to the caller.
func (b *Bridge) Close(why string, now time.Time) Output {
	b.begin(now)
	b.side.close(why)
	b.out.ToServer = nil
	return b.out
}

func (b *Bridge) begin(now time.Time) {
	b.now = now
	b.out = Output{}
}

func (c *core) toServer(line []byte) { c.send(nil, line) }
func (c *core) toClient(line []byte) { c.out.ToClient = append(c.out.ToClient, line) }

// send sends the server a line of a call; nil: the line is no request.
func (c *core) send(of *Call, line []byte) {
	c.out.ToServer = append(c.out.ToServer, Message{Line: line, Of: of})
}

// refuse answers a request of the client with an error.
func (c *core) refuse(id []byte, code int, text string) {
	c.toClient(jsonrpc.AppendError(nil, id, code, text, nil))
}

// plain is a notification without the protocol's keys in its _meta; c.env is scanned from both.
func (c *core) plain(line []byte) []byte {
	params := c.env.Params.Of(line)
	now := withoutReserved(params)
	if bytes.Equal(now, params) {
		return line
	}
	out := jsonrpc.Replace(nil, line, c.env.Params, now)
	_ = c.env.Scan(out) // our own splice of two valid texts
	return out
}

// askOwn sends the server a request of the bridge's own. then takes the answer, from which env is scanned.
func (c *core) askOwn(m mcp.Method, params []byte, then func(line []byte)) *Call {
	own := &Call{Wire: string(c.private()), then: then}
	c.send(own, jsonrpc.AppendRequest(nil, []byte(own.Wire), m.String(), params))
	return own
}

// newCall is the client's message from which env is scanned.
func (c *core) newCall(m mcp.Method, line []byte) *Call {
	line = bytes.Clone(line)
	return &Call{ID: c.env.ID.Of(line), Line: line, Method: m, Token: member(c.env.Meta.Of(line), "progressToken")}
}

// track adds a call to the table. The server knows it by the client's id, or by one of the bridge's: if private says so, or if the client's
// could be taken for another one.
func (c *core) track(one *Call, private bool) {
	one.Wire = string(one.ID)
	if private || looksPrivate(one.ID) || looksPrivate(one.Token) || c.Calls.onWire(one.ID) != nil {
		one.Wire = string(c.private())
	}
	c.Calls.add(one)
}

// decline answers a server's question without asking the client.
func (c *core) decline(q *question, why string) {
	c.toServer(jsonrpc.AppendError(nil, q.ID, jsonrpc.InternalError, why, nil))
}

// privatePrefix begins the bridge's own ids. It differs from that of the backend behind it, which changes ids that look
// like its own; a subscription must keep its id.
const privatePrefix = "b~"

// private makes a raw id.
func (c *core) private() []byte {
	c.Last++
	return []byte(`"` + privatePrefix + strconv.Itoa(c.Last) + `"`)
}

// askedFrom is below the ids of questions to a client. They are whole numbers, since some clients read no other, and far from those
// by which a server of the client's own era counts its questions.
const askedFrom = 1_000_000_000

// questionID makes the raw id of a question to the client.
func (c *core) questionID() []byte {
	c.Last++
	return strconv.AppendInt(nil, int64(askedFrom+c.Last), 10)
}

// looksPrivate reports whether a raw id is one of the bridge's, or a client's that could be. Such a request gets a private id itself, so
// that ids never collide.
func looksPrivate(id []byte) bool {
	text, ok := jsonrpc.Unquote(id)
	return ok && strings.HasPrefix(text, privatePrefix)
}

// due reports whether a time has come; zero never comes.
func (c *core) due(at time.Time) bool { return !at.IsZero() && !c.now.Before(at) }

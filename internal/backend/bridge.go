package backend

import (
	"bytes"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/bridge"
	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/session"
)

// seam stands between the client and the rest of a Backend until it is known that both sides speak one era, and for ever
// if they do not: then a bridge translates, and the rest of the Backend has a client of the server's era before it. It is
// the backend's World, so that nothing else knows of it. Where client and server understand each other there is none.
//
// Whether a bridge is needed is known from earlier runs, or from what happens: a server that refuses initialize as one of
// the modern era does; a probe that shows a legacy server. A client of the modern era that does not probe has the
// question asked on its behalf.
type seam struct {
	World
	b       *Backend
	env     jsonrpc.Envelope // scratch of the line being looked at
	bridge  *bridge.Bridge   // nil: not needed so far
	decided bool             // without a bridge it is not needed: the seam goes

	asked  bool     // the server is being asked which era it speaks
	client [][]byte // lines of the client that have not been looked at
	inner  [][]byte // lines for the rest of the backend, from a client of the server's era
	bare   bool     // what is said to the client just now is no part of the bridged conversation
	at     time.Time

	// While a conversation is moved to a server of the other era:
	past  *session.Session           // as it was with the server before
	echo  map[string]string          // what the bridge is told on the client's behalf, by raw id: nobody waits for its answer
	acked map[string]*session.Listen // streams of a modern client that are opened again, by raw id
}

// eraQuestion is the raw id of the backend's own server/discover; the bridge behind it begins with number 1.
const eraQuestion = `"b~0"`

// codeNoMethod is how a server refuses a method that it does not know.
const codeNoMethod = "-32601"

// beginSeam lets the client's first words decide whether a bridge is needed.
func (b *Backend) beginSeam() {
	if b.opts.Bridge == bridge.Auto && b.seam == nil {
		b.seam = &seam{World: b.world, b: b}
		b.world = b.seam
	}
}

// translating reports whether a bridge of this mode is in use.
func (b *Backend) translating(mode bridge.Mode) bool { return b.bridging() == mode }

// unsaid reports whether the client has said something that has not come to the rest of the backend yet.
func (b *Backend) unsaid() bool {
	s := b.seam
	return s != nil && (s.asked || len(s.client)+len(s.inner) > 0 || s.bridge != nil && s.bridge.Waiting())
}

// settle hands on what was said while something else was being handled.
func (b *Backend) settle() {
	for s := b.seam; s != nil && s == b.seam; {
		switch {
		case len(s.inner) > 0:
			line := s.inner[0]
			s.inner = s.inner[1:]
			b.clientMessage(line, nil)
		case len(s.client) > 0 && !s.asked:
			line := s.client[0]
			s.client = s.client[1:]
			s.take(line)
		case s.decided && s.bridge == nil && !s.asked && !s.changing():
			b.world, b.seam = s.World, nil
		default:
			b.closeInputWhenFlushed()
			return
		}
	}
}

// said takes a line of the client, which is not kept.
func (s *seam) said(line []byte) {
	if s.asked && s.needsNoEra(line) {
		return
	}
	s.client = append(s.client, bytes.Clone(line))
	s.b.settle()
}

// take looks at a line of the client. What is no message is refused as ever, and the refusal is not translated.
func (s *seam) take(line []byte) {
	err := s.env.Scan(line)
	if err == nil && s.changing() && s.env.Kind == jsonrpc.Notification && s.env.RequestID.Present() {
		s.streamEnded(string(s.env.RequestID.Of(line)))
	}
	switch {
	case err != nil || s.env.Kind != jsonrpc.Batch && (!s.env.Version2 || s.env.BadUTF8):
		s.bare = true
		s.b.clientMessage(line, nil)
		s.bare = false
	case s.bridge == nil:
		s.look(line)
	case s.leaves(line):
		s.leave()
		s.b.clientMessage(line, nil)
	case s.untold():
		s.client = append([][]byte{line}, s.client...)
		s.retell()
	default:
		s.give(s.bridge.FromClient(s.withoutOldState(line), s.b.now))
	}
}

// sayBare says something to the client that is no part of what is translated.
func (b *Backend) sayBare(line []byte) {
	if b.seam != nil {
		b.seam.World.SendToClient(line)
		return
	}
	b.world.SendToClient(line)
}

// leaves reports whether a modern client gives its era up: it has waited too long for the answer to its probe, say.
func (s *seam) leaves(line []byte) bool {
	return s.bridge.Mode() == bridge.ModernClient && s.env.Kind == jsonrpc.Request &&
		mcp.Lookup(s.env.Method.Of(line)) == mcp.Initialize && s.version(line) == nil
}

// leave ends the bridge of a client that has given its era up. What the server works on was the bridge's.
func (s *seam) leave() {
	s.give(s.bridge.Close("the client began a new session", s.b.now))
	s.bridge, s.decided, s.inner, s.at = nil, true, nil, time.Time{}
	for c := range s.b.calls.all {
		s.b.finish(c)
	}
}

// engage puts a bridge before the rest of the backend; lines are what the client says to it first.
func (b *Backend) engage(mode bridge.Mode, lines ...[]byte) {
	b.beginSeam()
	s := b.seam
	s.bridge = bridge.New(bridge.Options{Mode: mode, Key: b.opts.BridgeKey, Shared: b.opts.Crowd})
	s.asked, s.decided = false, true
	s.client = append(lines, s.client...)
	b.emit(event.BridgeEngaged, slog.LevelInfo, "Translating between eras of the protocol: "+mode.String(),
		slog.String(event.KeyReason, mode.String()))
	if b.asleep() {
		b.restSeam() // a lazy server is started by what the client wants
	}
}

// restSeam tells a bridge that the server sleeps.
func (b *Backend) restSeam() {
	if s := b.seam; s != nil && s.bridge != nil {
		s.give(s.bridge.Rest(b.now))
	}
}

// wakeSeam tells a bridge that the server can be used.
func (b *Backend) wakeSeam() {
	if s := b.seam; s != nil && s.bridge != nil {
		s.give(s.bridge.Wake(b.now))
	}
}

// answerUnsaid answers, when all is over, what the client waits for and the rest of the backend knows nothing of.
func (b *Backend) answerUnsaid() {
	s := b.seam
	if s == nil {
		return
	}
	const text = "the server has shut down; the request was not delivered"
	if s.bridge != nil {
		s.give(s.bridge.Close(text, b.now))
	}
	s.refuseAll([]byte(`{"code":-32603,"message":"` + text + `"}`))
	s.inner, s.asked, s.at = nil, false, time.Time{}
}

// saidSoFar takes back what a client has said that did not wait for the answer to its initialize: a server works on nothing
// before that. initialized says that it has said so, too.
func (b *Backend) saidSoFar(initialized bool) (lines [][]byte) {
	for c := range b.calls.all {
		lines = append(lines, bytes.Clone(c.line))
		if c.method == mcp.Initialize && initialized {
			lines = append(lines, mcp.InitializedLine())
		}
		b.finish(c)
	}
	return lines
}

// give sends what a bridge has made of something: to the client now, to the server once nothing is being handled.
func (s *seam) give(out bridge.Output) {
	for _, line := range out.ToServer {
		s.inner = append(s.inner, bytes.Clone(line))
	}
	s.at = out.Deadline
	for _, line := range out.ToClient {
		if !s.swallows(line) {
			s.World.SendToClient(line)
		}
	}
}

// ForwardToClient implements World.
func (s *seam) ForwardToClient(line []byte) { s.tell(line, s.World.ForwardToClient) }

// SendToClient implements World.
func (s *seam) SendToClient(line []byte) { s.tell(line, s.World.SendToClient) }

func (s *seam) tell(line []byte, as func([]byte)) {
	switch {
	case s.bare:
		as(line)
	case s.bridge != nil:
		s.give(s.bridge.FromServer(line, s.b.now))
	case s.answered(line), s.swallows(line):
	default:
		as(line)
	}
}

// deadline is when the bridge wants to be called: at once while something waits to be handled.
func (s *seam) deadline() time.Time {
	if len(s.inner) > 0 || len(s.client) > 0 && !s.asked {
		return s.b.now
	}
	return s.at
}

// over tells the bridge that the server has answered a request that was withdrawn.
func (s *seam) over(id []byte) {
	if s.bridge != nil {
		s.give(s.bridge.Over(id, s.b.now))
	}
}

// reborn tells the bridge that no process is left that has heard of earlier requests.
func (s *seam) reborn() {
	if s.bridge != nil {
		s.give(s.bridge.Reborn(s.b.now))
	}
}

func (s *seam) tick() {
	if s.bridge != nil && !s.at.IsZero() && !s.b.now.Before(s.at) {
		s.give(s.bridge.Tick(s.b.now))
	}
}

// savedSeam is a seam in a handover.
type savedSeam struct {
	Bridge  *bridge.Saved `json:",omitempty"`
	Key     []byte        `json:",omitempty"`
	Decided bool
	Asked   bool
	Client  [][]byte
	Inner   [][]byte
	At      time.Time
}

// saveSeam returns the seam, nil if there is none.
func (b *Backend) saveSeam() *savedSeam {
	s := b.seam
	if s == nil {
		return nil
	}
	out := &savedSeam{Decided: s.decided, Asked: s.asked, Client: s.client, Inner: s.inner, At: s.at}
	if s.bridge != nil {
		saved := s.bridge.Save()
		out.Bridge, out.Key = &saved, b.opts.BridgeKey
	}
	return out
}

// restoreSeam takes over a saved seam. The key goes along: clients have what was sealed with it.
func (b *Backend) restoreSeam(from *savedSeam) {
	s := b.seam
	switch {
	case from == nil && s != nil:
		b.world, b.seam = s.World, nil
		return
	case from == nil:
		return
	case s == nil: // it is not wanted any more, but this client depends on it
		s = &seam{World: b.world, b: b}
		b.world, b.seam = s, s
	}
	s.decided, s.asked, s.client, s.inner, s.at = from.Decided, from.Asked, from.Client, from.Inner, from.At
	if from.Bridge != nil {
		b.opts.BridgeKey = from.Key
		s.bridge = bridge.Restore(bridge.Options{Key: from.Key}, *from.Bridge)
	}
}

package backend

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// Lane says what goes through unchanged, whatever it is about: a call of the client that may be written to the serving
// process before [Backend.ClientLine] sees it, and the answer to the only call in flight, which may be written to the
// client before [Backend.ServerLine] sees it. Both must see it after all, and before anything else happens to the
// backend; then they hand on just that line.
//
// It holds what the two questions need and nothing else, so that they touch little memory when nothing is in the
// processor's cache. Only plain messages take a lane, see [jsonrpc.Plain]; everything else waits for the backend.
type Lane struct {
	calls  bool
	own    *toolbox
	answer [16]byte // raw id of the call in flight
	id     []byte   // its bytes in use; none: no answer goes through
	plain  jsonrpc.Plain
}

// Lane sets l to what may go through now; reused, it allocates nothing. A call may go when nothing else of the client
// is unfinished and the server takes requests, an answer when it is the one that nothing but its client waits for.
func (b *Backend) Lane(l *Lane) {
	l.calls, l.own, l.id = false, &b.tools, nil
	p := b.process
	if b.seam != nil || b.closing || b.stopped || !p.answered || !p.open() || !p.takes() || p.noise.holding() {
		return
	}
	if known := b.session.Meta != nil && b.session.Era == mcp.Modern; !known && b.session.Era != mcp.Legacy {
		return // who the client is would be learned from the call
	}
	switch c := b.calls.head; {
	case c == nil:
		l.calls = !b.probe.active
	case c.next == nil && c.state == sent && c.gen == p.gen && c.method == mcp.ToolsCall && c.batch == nil && !c.task &&
		len(c.wire) == 0 && len(c.id.raw) <= len(l.answer):
		l.id = append(l.answer[:0], c.id.raw...)
	}
}

// Call reports whether the client's line may be written to the serving process now. If so, its answer may be next.
func (l *Lane) Call(line []byte) bool {
	if !l.calls || !l.plain.Scan(line) || string(l.plain.Method.Of(line)) != `"tools/call"` {
		return false
	}
	if _, ours := l.own.named(l.plain.Name.Of(line)); ours {
		return false
	}
	l.calls = false
	l.id = append(l.answer[:0], l.plain.ID.Of(line)...)
	return true
}

// Answer reports whether the serving process's line may be written to the client now.
func (l *Lane) Answer(line []byte) bool {
	if len(l.id) == 0 || !l.plain.Scan(line) || l.plain.Method.Present() || !bytes.Equal(l.plain.ID.Of(line), l.id) {
		return false
	}
	l.id = nil
	return true
}

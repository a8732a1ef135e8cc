package backend

import (
	"bytes"
	"log/slog"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/bridge"
	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// probeLook is how often a probed server is looked at.
const probeLook = 100 * time.Millisecond

// codeUnsupportedVersion is how a modern server refuses another protocol version.
const codeUnsupportedVersion = "-32022"

// probe shields servers from a client that asks server/discover before it says anything else. Servers of the legacy
// era may answer with an error, say nothing for ever, or die of it; the client must see none of that.
type probe struct {
	active bool
	seen   bool // the running process was sent a probe: it must not get an initialize any more
	seq    uint64
	sentAt time.Time
	readAt time.Time // the process has taken the probe from its stdin
}

// clientDiscover answers a probe from what is known of the command, or lets the server answer, watched.
func (b *Backend) clientDiscover(c *call, line []byte) {
	if b.session.Era != mcp.Virgin || b.process.era != mcp.Virgin || b.probe.seen {
		b.submit(c, line)
		return
	}
	switch known := b.opts.Known; {
	case known.Era == mcp.Modern && len(known.Discover) > 0:
		b.probeAnswered("known to be modern")
		result, err := jsonrpc.Set(nil, known.Discover, []byte("0"), "ttlMs")
		if err != nil {
			result = known.Discover
		}
		b.answer(c, jsonrpc.AppendResult(nil, c.id.raw, mcp.AdvertiseListChanged(result, b.tools.on)))
	case b.translating(bridge.LegacyClient):
		b.submit(c, line) // it has refused initialize: there is nothing to be shielded from
	case known.Era == mcp.Legacy:
		b.probeAnswered("known to be legacy")
		b.notFound(c)
	default:
		b.probe = probe{active: true, seq: c.seq, sentAt: b.now}
		b.arm(timerProbe, probeLook)
		b.submit(c, line)
	}
}

func (b *Backend) probeAnswered(why string) {
	b.emit(event.ProbeAnswered, slog.LevelInfo, "server/discover answered: "+why, slog.String(event.KeyReason, why))
}

// notFound is the answer that makes every client fall back to the legacy handshake.
func (b *Backend) notFound(c *call) {
	if b.probeRefused(c) {
		return
	}
	b.answer(c, jsonrpc.AppendError(nil, c.id.raw, jsonrpc.MethodNotFound, "Method not found", nil))
}

// probeTick looks whether the server has had its time: a short one once it has read the probe, a longer one while it
// may still be starting.
func (b *Backend) probeTick() {
	if !b.probe.active {
		return
	}
	if p := b.process; p.up && b.probe.seen && b.probe.readAt.IsZero() {
		if n, ok := p.server.Unread(); ok && n == 0 {
			b.probe.readAt = b.now
		}
	}
	read := !b.probe.readAt.IsZero() && b.now.Sub(b.probe.readAt) >= b.opts.ProbeSilence
	switch {
	case read:
		b.probeFailed("silent")
		b.replaceProbed()
	case b.now.Sub(b.probe.sentAt) >= b.opts.ProbePatience:
		b.endProbe("not read in time") // which says nothing of the server's era
		b.replaceProbed()
	default:
		b.arm(timerProbe, probeLook)
	}
}

// probeSent notes that the running process is given the probe.
func (b *Backend) probeSent(c *call) {
	if b.probe.active && c.seq == b.probe.seq {
		b.probe.seen = true
	}
}

// newProcessForProbe lets a probe wait for a process that has just been started.
func (b *Backend) newProcessForProbe() {
	if !b.probe.active {
		b.probe = probe{}
		return
	}
	b.probe.seen, b.probe.readAt = false, time.Time{}
}

// probeFailed ends a probe that showed a legacy server.
func (b *Backend) probeFailed(how string) {
	known := b.opts.Known
	known.Era, known.Probe, known.Discover, known.NoInitialize = mcp.Legacy, how, nil, false
	b.learn(known)
	b.endProbe("the server is legacy (" + how + ")")
}

// endProbe lets the client fall back to the legacy handshake.
func (b *Backend) endProbe(why string) {
	b.probe.active = false
	b.disarm(timerProbe)
	b.probeAnswered(why)
	for c := range b.calls.all {
		if c.seq == b.probe.seq {
			b.notFound(c)
			return
		}
	}
}

// replaceProbed gives the client that will now send initialize a process that has seen nothing.
func (b *Backend) replaceProbed() {
	if b.process.up && b.probe.seen {
		b.step(supervise.Restart{Cause: supervise.Replace, Reason: "it was probed"})
	}
}

// discoverAnswered handles an answer to server/discover.
func (b *Backend) discoverAnswered(c *call, line []byte) []byte {
	probed := b.probe.active && c.seq == b.probe.seq
	if b.env.Kind == jsonrpc.Response {
		result := bytes.Clone(b.env.Result.Of(line))
		b.process.introduction = string(result)
		if only := b.translating(bridge.LegacyClient); probed || only {
			b.probe.active = false
			b.disarm(timerProbe)
			b.process.era = mcp.Modern
			b.introduction = string(result)
			known := b.opts.Known
			known.Era, known.Probe, known.Discover, known.NoInitialize = mcp.Modern, "ok", result, only
			b.learn(known)
		}
		if b.translating(bridge.LegacyClient) {
			b.session.Era = mcp.Modern
		}
		b.cameUp(b.process)  // that is all the handshake there is
		_ = b.env.Scan(line) // it was scanned before
		return b.withResult(line, mcp.AdvertiseListChanged(result, b.tools.on))
	}
	if p := b.process; p.handshake == asked {
		p.handshake = unasked // it may be asked once more
	}
	if !probed {
		if b.translating(bridge.LegacyClient) && b.seam.past != nil && b.legacyOnly(line) && b.otherEra(b.process, mcp.Legacy) {
			return nil // it was known to be modern, and is not any more
		}
		return line
	}
	if code := jsonrpc.FindPath(line, "error", "code").Of(line); string(code) == codeUnsupportedVersion && !namesLegacyOnly(line) {
		b.probe.active = false
		b.disarm(timerProbe)
		b.process.era = mcp.Modern
		return line // it is modern and negotiates
	}
	if b.unheard(line) {
		b.probe.active = false
		b.disarm(timerProbe)
		return line
	}
	b.probeFailed("error")
	b.replaceProbed()
	return nil
}

// namesLegacyOnly reports whether a server that refuses the modern era's version names those of the legacy era only as what it
// supports: it knows server/discover, and is a legacy server all the same (Go SDK).
func namesLegacyOnly(line []byte) bool {
	supported := jsonrpc.FindPath(line, "error", "data", "supported").Of(line)
	legacy := false
	for at := range jsonrpc.Elements(supported) {
		version, _ := jsonrpc.Unquote(at.Of(supported))
		if legacy = mcp.IsLegacy(version); !legacy {
			return false
		}
	}
	return legacy
}

// unheard reports whether an error is not the server's answer to a probe, but says why it could not be asked: it cannot be
// reached, or wants authorization first. Package remote says so by the reason; a status of the server's own is its answer.
func (b *Backend) unheard(line []byte) bool {
	reason, ok := jsonrpc.Unquote(jsonrpc.FindPath(line, "error", "data", "reason").Of(line))
	return b.opts.Elsewhere && ok && !strings.HasPrefix(reason, "http_")
}

// clientIsModern notes that the client speaks the modern era to this process.
func (b *Backend) clientIsModern() {
	p := b.process
	if p.era == mcp.Virgin {
		p.era = mcp.Modern
	}
	if p.up && !p.draining && (p.handshake == unasked || p.handshake == skipped) {
		p.accepting = false
		b.greet(p)
	}
}

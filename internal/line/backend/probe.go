package backend

import (
	"bytes"
	"log/slog"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// prober protects servers that may not survive a probe.
type prober struct {
	*core

	probe probe
}

// probeLook is how often a probed server is checked.
const probeLook = 100 * time.Millisecond

// probe protects servers from a client that sends server/discover first. Legacy servers may answer with an error, never
// answer, or exit; the client must not notice.
type probe struct {
	active bool
	seen   bool // the running process was sent a probe: it must not get an initialize
	seq    uint64
	sentAt time.Time
	readAt time.Time // the process has taken the probe from its stdin
}

// clientDiscover answers a probe from memory, or forwards it and watches the server.
func (s *prober) clientDiscover(c *call, line []byte) {
	if s.session.Era != mcp.EraUnknown || s.process.era != mcp.EraUnknown || s.probe.seen {
		s.flow.submit(c, line)
		return
	}
	switch known := s.memory.known; {
	case known.Era == mcp.Modern && len(known.Discover) > 0 && !s.opts.NoFastStart:
		s.probeAnswered("known to be modern")
		result, err := jsonrpc.Set(nil, known.Discover, []byte("0"), "ttlMs")
		if err != nil {
			result = known.Discover
		}
		s.flow.answer(c, jsonrpc.AppendResult(nil, c.id, mcp.AdvertiseListChanged(result, !s.opts.NoTools)))
	case s.eras.translating(mcp.Legacy):
		s.flow.submit(c, line) // it has refused initialize, so it needs no protection
	case known.Era == mcp.Legacy:
		s.probeAnswered("known to be legacy")
		s.notFound(c)
	default:
		s.probe = probe{active: true, seq: c.seq, sentAt: s.now}
		s.arm(timerProbe, probeLook)
		s.flow.submit(c, line)
	}
}

func (s *prober) probeAnswered(why string) {
	s.emit(event.ProbeAnswered, slog.LevelInfo, "server/discover answered: "+why, slog.String(event.KeyReason, why))
}

// notFound is the answer that makes every client fall back to the legacy handshake.
func (s *prober) notFound(c *call) {
	if s.eras.probeRefused(c) {
		return
	}
	s.flow.answer(c, jsonrpc.AppendError(nil, c.id, jsonrpc.MethodNotFound, "Method not found", nil))
}

// probeTick checks whether the server's time is over: a short one once it has read the probe, a longer one while it may
// still be starting.
func (s *prober) probeTick() {
	if !s.probe.active {
		return
	}
	if p := s.process; p.up() && s.probe.seen && s.probe.readAt.IsZero() {
		if n, ok := p.server.Unread(); ok && n == 0 {
			s.probe.readAt = s.now
		}
	}
	read := !s.probe.readAt.IsZero() && s.now.Sub(s.probe.readAt) >= s.opts.ProbeSilence
	switch {
	case read && !s.opts.Remote:
		s.probeFailed("silent")
		s.replaceProbed()
	case s.now.Sub(s.probe.sentAt) >= s.opts.ProbePatience && !s.installing(s.process):
		s.endProbe("not read in time") // which says nothing about the server's era
		s.replaceProbed()
	default:
		s.arm(timerProbe, probeLook)
	}
}

// probed reports whether the running process was sent a probe.
func (s *prober) probed() bool { return s.probe.seen }

// probing reports whether the running process has a probe to answer.
func (s *prober) probing() bool { return s.probe.active && s.probe.seen }

// probeSent notes that the running process is given the probe.
func (s *prober) probeSent(c *call) {
	if s.probe.active && c.seq == s.probe.seq {
		s.probe.seen = true
	}
}

// probeCancelled notes that the client has given its probe up: nothing is concluded from what follows.
func (s *prober) probeCancelled(c *call) {
	if s.probe.active && c.seq == s.probe.seq {
		s.probe.active = false
		s.disarm(timerProbe)
	}
}

// newProcessForProbe prepares a probe for a newly started process.
func (s *prober) newProcessForProbe() {
	if !s.probe.active {
		s.probe = probe{}
	}
	s.probe.seen, s.probe.readAt = false, time.Time{}
}

// probeFailed ends a probe that showed a legacy server.
func (s *prober) probeFailed(how string) {
	known := s.memory.known
	known.Era, known.Discover, known.NoInitialize = mcp.Legacy, nil, false
	s.memory.learn(known)
	s.endProbe("the server is legacy (" + how + ")")
}

// endProbe lets the client fall back to the legacy handshake.
func (s *prober) endProbe(why string) {
	s.probe.active = false
	s.disarm(timerProbe)
	s.probeAnswered(why)
	for c := range s.calls.all {
		if c.seq == s.probe.seq {
			s.notFound(c)
			return
		}
	}
}

// replaceProbed gives the client, which will send initialize now, a fresh process.
func (s *prober) replaceProbed() {
	if s.process.up() && s.probe.seen {
		s.life.step(supervise.Restart{Cause: supervise.Replace, Reason: "it was probed"})
	}
}

// discoverAnswered handles an answer to server/discover.
func (s *prober) discoverAnswered(c *call, line []byte) []byte {
	probed := s.probe.active && c.seq == s.probe.seq
	if s.env.Kind == jsonrpc.Response && !(probed && namesLegacyOnly(line)) {
		result := bytes.Clone(s.env.Result.Of(line))
		s.process.offer = result
		if only := s.eras.translating(mcp.Legacy); probed || only {
			s.probe.active = false
			s.disarm(timerProbe)
			s.process.era = mcp.Modern
			known := s.memory.known
			known.Era, known.Discover, known.NoInitialize = mcp.Modern, result, only
			s.memory.learn(known)
		}
		if s.eras.translating(mcp.Legacy) {
			s.session.Era = mcp.Modern
		}
		s.replay.cameUp(s.process) // the handshake consists of nothing else
		_ = s.env.Scan(line)       // it was scanned before
		return s.withResult(line, mcp.AdvertiseListChanged(result, !s.opts.NoTools))
	}
	s.process.mark(declined)
	if !probed {
		if s.eras.turnedBack(s.process, line) {
			return nil // it was known to be modern, and is not any more
		}
		return line
	}
	if jsonrpc.ErrorCode(jsonrpc.Find(line, "error").Of(line)) == mcp.CodeVersion && !namesLegacyOnly(line) {
		s.probe.active = false
		s.disarm(timerProbe)
		s.process.era = mcp.Modern
		return line // it is modern and negotiates
	}
	if s.eras.unheard(line) {
		s.probe.active = false
		s.disarm(timerProbe)
		return line
	}
	s.probeFailed("error")
	s.replaceProbed()
	return nil
}

// namesLegacyOnly reports whether an answer to server/discover names versions of the legacy era alone. Such a server knows the question,
// and is a legacy server all the same: the Go SDK's say so in an error, and over HTTP with sessions in the result.
func namesLegacyOnly(line []byte) bool {
	supported := jsonrpc.FindPath(line, "error", "data", "supported").Of(line)
	if supported == nil {
		supported = jsonrpc.FindPath(line, "result", "supportedVersions").Of(line)
	}
	legacy := false
	for at := range jsonrpc.Elements(supported) {
		version, _ := jsonrpc.Unquote(at.Of(supported))
		if legacy = mcp.IsLegacy(version); !legacy {
			return false
		}
	}
	return legacy
}

// unheard reports whether an error says why the server could not be asked, and is not its answer to a probe: it is
// unreachable, or wants authorization first. Package remote marks that by the reason; an HTTP status of the server is
// its answer.
func (e *eras) unheard(line []byte) bool {
	reason, ok := jsonrpc.Unquote(jsonrpc.FindPath(line, "error", "data", "reason").Of(line))
	return e.opts.Elsewhere && ok && !strings.HasPrefix(reason, "http_")
}

package gateway

import (
	"log/slog"
	"slices"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// standing is what experience says of a server, whoever has made it: a client, or the gateway, which tries servers out before
// there is one. A server that is unusable is not waited for.
type standing uint8

const (
	untested standing = iota // no process of it has come far enough
	usable                   // the latest news: a process has shown its lists
	unusable                 // the latest news: a handshake has failed, or nothing came for ListWait
)

var standingNames = [...]string{"untested", "usable", "unusable"}

func (s standing) String() string { return standingNames[s] }

// works notes that a process of the server has shown its lists.
func (s *server) works() { s.standing, s.trouble = usable, "" }

// fails notes why the server cannot be used.
func (s *server) fails(why string) { s.standing, s.trouble = unusable, why }

// waitedEnough notes that the server was given its time by a link that has shown nothing.
func (l *Link) waitedEnough() {
	if l.server.standing == unusable {
		return
	}
	why := "it has not answered the handshake within " + l.gw.opts.ListWait.String()
	if l.phase == ready {
		why = "it has not shown its lists within " + l.gw.opts.ListWait.String()
	}
	l.server.fails(why)
	l.gw.emit(event.ServerUnusable, slog.LevelWarn, l.Name(), "cannot be used: "+why+"; clients are not kept waiting for it",
		slog.String(event.KeyError, why))
}

// tryOut begins to find out whether a server of the legacy era works, before a client needs it: status and metrics
// tell of it, and nobody has to wait for a server that does not. A server that speaks the modern era was started for all its clients;
// one that is not to run before it is needed is left alone.
func (g *Gateway) tryOut(s *server) {
	switch {
	case !g.warm || s.standing != untested || s.Lazy || s.legacy == refuses:
	case s.modern != refuses && !s.bridged: // the modern scope finds out
	case s.Shared:
		g.common.open(s)
	default:
		g.trial.open(s)
	}
}

// onTrial reports whether the link is there to try its server out only. No client hears of what it says.
func (l *Link) onTrial() bool { return l.scope == l.gw.trial }

// endTrial ends what was started to try a server out: it works, whoever has found that out.
func (g *Gateway) endTrial(s *server) {
	for _, l := range slices.Clone(g.trial.links[s]) {
		l.drop()
		l.retire()
	}
}

package gateway

import (
	"log/slog"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// standing is the experience with a server, of any of its processes. An unusable server is not waited for.
type standing uint8

const (
	untested standing = iota // no process of it has shown its lists or failed
	usable                   // latest: a process has shown its lists
	unusable                 // latest: a handshake failed, or nothing came for ListWait
)

var standingNames = [...]string{"untested", "usable", "unusable"}

func (s standing) String() string { return standingNames[s] }

// works notes that a process of the server has shown its lists.
func (s *server) works(now time.Time) {
	if s.standing != usable {
		s.since = now
	}
	s.standing, s.trouble, s.fell, s.told = usable, "", time.Time{}, toldTrouble{}
}

// fails records why the server is unusable. One that has worked stopped when its process did; a failure that follows on
// another one, or on no success, begins nothing new.
func (s *server) fails(now time.Time, why string) {
	if s.standing == usable {
		s.since = now
		if !s.fell.IsZero() {
			s.since = s.fell
		}
	}
	s.standing, s.trouble = unusable, why
}

// toldRarely is the least time until another reason is told why a server cannot be used. What is told is that it cannot: each session may
// have a process of its own, and each is tried again and again.
const toldRarely = 10 * time.Minute

// toldTrouble is what was told of a server that cannot be used. The zero value: nothing.
type toldTrouble struct {
	why string
	at  time.Time
}

// isNews reports whether a reason why the server cannot be used is to be told.
func (s *server) isNews(now time.Time, why string) bool {
	if !s.told.at.IsZero() && (s.told.why == why || now.Sub(s.told.at) < toldRarely) {
		return false
	}
	s.told = toldTrouble{why, now}
	return true
}

// lossQuiet is how long the link that tells of lost connections says nothing until another one tells.
const lossQuiet = 2 * time.Minute

// tellsOfLoss reports whether a link tells of lost connections to the server: one does for all that sessions have.
func (s *server) tellsOfLoss(l *Link, at time.Time) bool {
	if s.loser != l && at.Sub(s.lost) < lossQuiet {
		return false
	}
	s.loser, s.lost = l, at
	return true
}

// heard notes when processes of the server fall and come up again.
func (s *server) heard(e event.Event) {
	switch e.Type {
	case event.ServerReady:
		s.fell = time.Time{}
	case event.ServerCrashed, event.ConnectionLost, event.SpawnFailed, event.StartTimeout, event.ServerUnhealthy:
		if s.fell.IsZero() {
			s.fell = e.Time
		}
		if e.Type == event.SpawnFailed && s.standing == untested { // no client has to find that out
			s.fails(e.Time, strings.TrimPrefix(e.Message, "Server "))
		}
	}
}

// sinceOf is since when the server stands as it does: unusable, or as its processes do, or not needed.
func (s *server) sinceOf(links []LinkStatus) time.Time {
	var down, up time.Time
	for _, l := range links {
		first := &up
		if l.Phase == phaseNames[retired] || l.Since.IsZero() {
			continue
		} else if l.State == supervise.Backoff.String() || l.State == supervise.Failed.String() || l.LastExit != nil && l.ReadySince == nil {
			first = &down
		}
		if first.IsZero() || l.Since.Before(*first) {
			*first = l.Since
		}
	}
	switch {
	case s.standing != usable:
		return s.since
	case !down.IsZero():
		return down
	case !up.IsZero():
		return up
	case s.left.After(s.since):
		return s.left
	}
	return s.since
}

// waitedEnough records that a link has not shown everything in time. One that has shown a list works without the others.
func (l *Link) waitedEnough() {
	if l.phase == ready && l.lists.answered {
		l.lists.waitedEnough()
		return
	}
	if l.server.standing == unusable || !l.needed && l.awaited() {
		return
	}
	why := "it has not answered the handshake within " + l.gw.opts.ListWait.String()
	if l.phase == ready {
		why = "it has not shown its lists within " + l.gw.opts.ListWait.String()
	}
	l.server.fails(l.gw.now, why)
	l.gw.emit(event.ServerUnusable, slog.LevelWarn, l.Name(), "cannot be used: "+why+"; clients are not kept waiting for it",
		slog.String(event.KeyError, why))
}

// awaited reports whether a client waits for another process of the link's server, whose time is not over.
func (l *Link) awaited() bool {
	for sc := range l.gw.scopes {
		for _, one := range sc.links[l.server] {
			if one != l && one.needed && one.hopeful(allLists) {
				return true
			}
		}
	}
	return false
}

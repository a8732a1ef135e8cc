package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
	"github.com/outlive-mcp/outlive/internal/fleet/sessions"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/peers"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// equal is what an endpoint has that is one of several. Methods of nil are those of one that is alone.
type equal struct {
	at    string                 // where it takes what the others pass on
	last  string                 // file with the holder of its lease, for the process after this one; "": there is none
	seat  *sessions.Seat         // nil: its sessions are not in the fleet
	store *sessions.Store        // likewise
	away  atomic.Pointer[string] // why no session can be had; nil: they can, or are not in the fleet
}

// releaseWithin is how long giving the lease back may take. Without it others wait for its end.
const releaseWithin = 3 * time.Second

// leaseWithin is how long a gateway that starts waits for its lease before it takes clients: some SDKs end a call, or their session, for a
// status that says "come back". Without the fleet clients without a session are served after it.
const leaseWithin = 2 * time.Second

// holderLimit is the longest holder of a lease that is read from a file, in bytes.
const holderLimit = 1 << 10

// joinOthers makes the endpoint one of several, if it is to be that.
func (g *endpoint) joinOthers(file *config.File) error {
	p, inFleet := g.flags.peers, file.Sessions == config.SessionsInFleet
	switch idle := file.Limits.SessionIdle; {
	case p.listen == "" && inFleet:
		return fail(exitUsage, "sessions: fleet is for several gateways, each of which goes on with the sessions of the others: --listen ADDRESS --peer-listen ADDRESS --peer-secret-file FILE; without them write sessions: disk")
	case p.listen == "":
		return nil
	case inFleet && idle > sessions.MostIdle:
		return fail(exitUsage, "%s: limits: session_idle is %v, and with sessions: fleet at most %v: records are deleted that nobody uses", file.Name, idle, sessions.MostIdle)
	}
	link, err := p.open()
	if err != nil {
		return err
	}
	listener, err := link.Listen(p.listen, g.tellRefused)
	if err != nil {
		return fail(exitFailure, "%w: choose another address with --peer-listen", err)
	}
	g.others = &equal{at: p.listen}
	if host, port, _ := net.SplitHostPort(p.listen); port == "0" { // it was checked
		_, port, _ = net.SplitHostPort(listener.Addr().String())
		g.others.at = net.JoinHostPort(host, port)
	} else {
		g.others.last = filepath.Join(stateDir(), "gateway", notInFile.ReplaceAllString(p.listen, "_")+".lease")
	}
	g.front.Peers = &streamhttp.Peers{Here: g.others.at, Listener: listener, Transport: link.Transport(), StateKey: link.StateKey}
	if !inFleet {
		return nil
	}
	return g.keepInFleet(link)
}

// keepInFleet has the sessions be in the fleet.
func (g *endpoint) keepInFleet(link *peers.Link) (err error) {
	o, registry := g.others, memberHere()
	before, _ := atomicfile.Read(o.last, holderLimit) // there may be none
	told, first := make(chan struct{}), sync.Once{}
	o.seat = sessions.TakeSeat(registry, sessions.SeatOptions{Gateway: link.Name, At: o.at, Last: string(before), Up: upWithSleep(), Tell: func(holder string, why error) {
		g.tellSeat(holder, why)
		first.Do(func() { close(told) })
	}})
	o.store, err = sessions.New(registry, sessions.Options{Gateway: link.Name, Key: link.SessionKey, Owner: o.seat.Owner, Outlasted: g.tellOutlasted})
	if err != nil { // not reached: the key is as long as it is to be
		return err
	}
	g.front.Peers.Release = o.store.Release
	g.front.Peers.Time = func() (string, bool) {
		owner, err := o.seat.Owner()
		return owner.Holder, err == nil
	}
	g.sessions.warn, g.sessions.Store = g.warn, o.store
	g.front.Store = &g.sessions
	select {
	case <-told:
	case <-time.After(leaseWithin):
	}
	return nil
}

// tellSeat reports that sessions can be had here, or why they cannot be had any more: then those that are here end.
func (g *endpoint) tellSeat(holder string, why error) {
	o := g.others
	if why == nil {
		err := os.MkdirAll(filepath.Dir(o.last), 0o700)
		if err == nil && o.last != "" {
			err = atomicfile.Write(o.last, []byte(holder))
		}
		if err != nil {
			g.warn("When this gateway is killed and started again, its sessions wait until its lease is over: " + err.Error())
		}
		if o.away.Swap(nil) != nil {
			g.sinks.say(event.SessionsBack, "Sessions of the fleet can be had here again")
		}
		return
	}
	if errors.Is(why, lease.ErrUnanswered) {
		why = fmt.Errorf("the fleet could not be reached from here, or this process was stopped, for so long that other gateways may have the sessions (%w)", why)
	}
	text := why.Error()
	o.away.Store(&text)
	if front := g.replace.front.Load(); front != nil {
		front.LeaveSessions()
	}
	g.sinks.warn(event.SessionsAway, "No sessions can be had here: "+text+"; clients with a session are told to come back, all others are served",
		slog.String(event.KeyError, text))
}

// tellOutlasted reports that another gateway has ended.
func (g *endpoint) tellOutlasted(at string) {
	g.sinks.say(event.PeerEnded, "The gateway that was at "+at+" has ended: its sessions go on where they are asked for")
}

// tellRefused reports somebody without the secret.
func (g *endpoint) tellRefused(from netip.Addr, why error) {
	hint := ""
	if errors.Is(why, peers.ErrSecret) {
		hint = ": give all gateways files with the same one (--peer-secret-file)"
	}
	text := fmt.Sprintf("A connection from %s is refused: %v%s", from, why, hint)
	g.sinks.warn(event.PeerRefused, text, slog.String(event.KeyError, why.Error()))
}

// end lets the others go on with the sessions.
func (o *equal) end() {
	if o == nil || o.seat == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	o.seat.End(ctx)
	o.store.Close()
}

// status is where it takes what the others pass on, and why no session can be had here; "": it is alone, and they can.
func (o *equal) status() (at, away string) {
	if o == nil {
		return "", ""
	}
	if why := o.away.Load(); why != nil {
		away = *why
	}
	return o.at, away
}

package natsengine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// attendEvery is how often a hub looks which others it reaches, and aloneFor how long it may reach no majority until it lets nobody in.
	attendEvery = 250 * time.Millisecond
	aloneFor    = time.Second
	// startAlone is how long a hub that has started may reach no majority until it says so.
	startAlone = 5 * time.Second
	// beyondFor is how long a hub may be reached by others and not by this one until this one leaves its machines to them: longer than two hubs
	// need to notice that a third one is lost.
	beyondFor = 5 * time.Second
	// peerLimit is how long another hub may take for an answer.
	peerLimit = time.Second
)

// Cluster says how several hubs are one.
type Cluster struct {
	// Hubs are all of them, each as HOST:PORT where the others reach it; the same on each hub. Self is the one that this is.
	Hubs []string
	Self int
	// Stranger is called when somebody who is no hub of this fleet answers at one's address, or calls itself one.
	Stranger func(error)
	// Changed is called when another hub is reached, or is not any more, Serves when machines are let in from then on, or are not: because no
	// majority is reached, or, where beyond is not "", because of that hub, which others reach and this one does not.
	Changed func(Peer)
	Serves  func(serves bool, beyond string)
}

// majority reports whether so many hubs decide.
func (c *Cluster) majority(reached int) bool { return reached > len(c.Hubs)/2 }

// set has a server be one of the cluster. Hubs know each other by the certificate, which all have, and nobody else has its key.
func (c *Cluster) set(so *server.Options, pair tls.Certificate) error {
	_, port, err := splitAddress(c.Hubs[c.Self])
	if err != nil {
		return err
	}
	own := sha256.Sum256(pair.Certificate[0])
	so.ServerName = c.Hubs[c.Self] // it is in the files of JetStream, too: it has to stay the same
	so.Cluster = server.ClusterOpts{
		// Machines know the hubs by what they were given: NoAdvertise.
		Name: "outlive", Host: so.Host, Port: port, PoolSize: -1, NoAdvertise: true,
		PingInterval: pingEvery, MaxPingsOut: pingsMissed, WriteDeadline: writeDeadline, TLSTimeout: dialLimit.Seconds(), ConnectRetries: 1 << 30,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert,
			InsecureSkipVerify: true, // the certificate is compared below
			VerifyConnection: func(s tls.ConnectionState) error {
				if len(s.PeerCertificates) > 0 {
					if sum := sha256.Sum256(s.PeerCertificates[0].Raw); subtle.ConstantTimeCompare(sum[:], own[:]) == 1 {
						return nil
					}
				}
				if c.Stranger != nil {
					c.Stranger(errOtherHub)
				}
				return errOtherHub
			},
		},
	}
	for n, address := range c.Hubs {
		if n != c.Self {
			so.Routes = append(so.Routes, &url.URL{Scheme: "nats-route", Host: address})
		}
	}
	return nil
}

var errOtherHub = errors.New("who answers there, or calls, has another certificate: hub.json has to be the same on all hubs")

// Peer is a hub as another one sees it.
type Peer struct {
	Name      string    `json:"name"` // HOST:PORT, as in [Cluster.Hubs]
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since"` // by the clock of the hub that was asked
	// Ago is how long it is so, whatever the clocks say.
	Ago time.Duration `json:"ago,omitempty"`
	// Leader says that it decides where tables are; Tables are those for which it decides what is written.
	Leader bool     `json:"leader,omitempty"`
	Tables []string `json:"tables,omitempty"`
}

// standing is how a hub stands to the others.
type standing int

const (
	starting standing = iota // it has not reached a majority yet
	serving                  // it reaches a majority, or did a moment ago
	alone                    // it reaches none
	aside                    // it reaches one, and not a hub that others reach: its machines would not reach those there
)

// peers is what a hub knows of the others.
type peers struct {
	mu       sync.Mutex
	list     []Peer
	lost     time.Time // since when it reaches no majority; zero: it does
	beyond   string    // an earlier hub of the list that others reach and this one does not; "": there is none
	blocked  time.Time // since when; zero: there is none
	asking   bool      // the others are asked for it
	standing standing
	stopped  chan struct{}
}

func newPeers(c *Cluster) *peers {
	p := &peers{stopped: make(chan struct{}), lost: time.Now()}
	for n, name := range c.Hubs {
		p.list = append(p.list, Peer{Name: name, Connected: n == c.Self, Since: time.Now().UTC()})
	}
	return p
}

// attend looks which hubs are reached until the hub is closed. One that reaches no majority sends its machines to the others, which may
// be one: what they would say here nobody could keep.
func (h *Hub) attend(e *Engine) {
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	for {
		select {
		case <-h.peers.stopped:
			return
		case <-tick.C:
		}
		changed, before, now := h.look(time.Now())
		h.lookBeyond(e)
		if before == serving && now != serving {
			h.Drop(func(string, string) bool { return false })
		}
		for _, p := range changed {
			h.opts.Cluster.Changed(p)
		}
		if now != before {
			beyond := ""
			if now == aside {
				beyond = h.peers.notReached()
			}
			h.opts.Cluster.Serves(now == serving, beyond)
		}
		if len(changed) > 0 {
			_ = e.call.Publish(changedAddress, nil) // machines notice by themselves, only later
		}
	}
}

// look takes what is seen of the others, and says what is different.
func (h *Hub) look(at time.Time) (changed []Peer, before, now standing) {
	routes, err := h.server.Routez(nil)
	if err != nil {
		return nil, starting, starting
	}
	there := map[string]bool{h.opts.Cluster.Hubs[h.opts.Cluster.Self]: true}
	for _, r := range routes.Routes {
		there[r.RemoteName] = true
	}
	p := h.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	reached := 0
	for n := range p.list {
		one := &p.list[n]
		if is := there[one.Name]; is != one.Connected {
			one.Connected, one.Since = is, at.UTC()
			changed = append(changed, *one)
		}
		if one.Connected {
			reached++
		}
	}
	before = p.standing
	p.stand(h.opts.Cluster.majority(reached), at)
	return changed, before, p.standing
}

// stand decides how a hub stands that reaches a majority, or does not. The lock is held.
func (p *peers) stand(majority bool, at time.Time) {
	patience := aloneFor
	if p.standing == starting {
		patience = startAlone
	}
	switch {
	case majority && !p.blocked.IsZero() && at.Sub(p.blocked) >= beyondFor:
		p.lost, p.standing = time.Time{}, aside
	case majority:
		p.lost, p.standing = time.Time{}, serving
	case p.lost.IsZero():
		p.lost = at
	case at.Sub(p.lost) >= patience:
		p.standing = alone
	}
}

func (p *peers) notReached() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.beyond
}

// block notes which hub others reach and this one does not; "": there is none, or, not known, what was noted stays.
func (p *peers) block(beyond string, known bool, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.asking = false; {
	case beyond == "" && !known:
		return
	case beyond == "":
		p.blocked = time.Time{}
	case beyond != p.beyond || p.blocked.IsZero():
		p.blocked = at
	}
	p.beyond = beyond
}

// earlier are the hubs before this one in the list that it does not reach, as a set, and the numbers of all others that it reaches.
func (p *peers) earlier(self int) (away map[string]bool, there []int) {
	away = map[string]bool{}
	for n, one := range p.list {
		switch {
		case n == self:
		case one.Connected:
			there = append(there, n)
		case n < self:
			away[one.Name] = true
		}
	}
	return away, there
}

// lookBeyond asks the hubs that are reached whether they reach one that is not. What machines say goes over one hub at most, so those of two
// hubs that do not reach each other do not either: the later hub of the list leaves its machines to the others.
func (h *Hub) lookBeyond(e *Engine) {
	p, self := h.peers, h.opts.Cluster.Self
	p.mu.Lock()
	away, there := p.earlier(self)
	idle := !p.asking && (len(away) > 0 || !p.blocked.IsZero())
	p.asking = p.asking || idle
	p.mu.Unlock()
	if !idle {
		return
	}
	go func() { // it ends with peerLimit
		ctx, cancel := context.WithTimeout(context.Background(), peerLimit)
		defer cancel()
		beyond, known := "", true
		for _, n := range there {
			if len(away) == 0 {
				break
			}
			var list []string
			text, err := e.Request(ctx, reachOf(n), nil)
			known = known && err == nil && json.Unmarshal(text, &list) == nil
			for _, name := range list {
				if away[name] {
					beyond = name
				}
			}
		}
		p.block(beyond, known, time.Now())
	}()
}

// reached are the names of the hubs that this one reaches.
func (p *peers) reached() (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.list {
		if one.Connected {
			names = append(names, one.Name)
		}
	}
	return names
}

// Serves reports whether machines are let in.
func (h *Hub) Serves() bool {
	if h.peers == nil {
		return true
	}
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	return h.peers.standing == serving
}

// Peers are the hubs of the fleet, as this one sees them; nil: it is the only one.
func (h *Hub) Peers() []Peer {
	if h.peers == nil {
		return nil
	}
	h.peers.mu.Lock()
	list := slices.Clone(h.peers.list)
	h.peers.mu.Unlock()
	for n := range list {
		list[n].Ago = time.Since(list[n].Since)
	}
	leads := func(name string) *Peer {
		if at := slices.IndexFunc(list, func(p Peer) bool { return p.Name == name && p.Connected }); at >= 0 {
			return &list[at]
		}
		return &Peer{} // nobody, or one that is not reached
	}
	info, err := h.server.Jsz(&server.JSzOptions{Streams: true})
	if err != nil {
		return list
	}
	if info.Meta != nil {
		leads(info.Meta.Leader).Leader = true
	}
	for _, a := range info.AccountDetails {
		for _, s := range a.Streams {
			if table, is := strings.CutPrefix(s.Name, "KV_"+bucketPrefix); is && s.Cluster != nil {
				one := leads(s.Cluster.Leader)
				one.Tables = append(one.Tables, table)
			}
		}
	}
	for _, p := range list {
		slices.Sort(p.Tables)
	}
	return list
}

const (
	// EndedAddress is where a hub is asked how a host's connection has ended, PeersAddress where for the hubs, a JSON array of [Peer].
	EndedAddress = "hub.ended"
	PeersAddress = "hub.peers"
	// changedAddress is where hubs say that another one has come or gone: what was watched there is watched elsewhere.
	changedAddress = "hub.changed"
	hubsGroup      = "hubs" // of those, one answers
)

// ended is what one hub knows of a machine.
type ended struct {
	How  HowEnded      `json:"how"`
	Ago  time.Duration `json:"ago"`  // since then
	Runs time.Duration `json:"runs"` // the hub, which knows nothing of the time before
}

// Serve answers what machines ask hubs.
func (h *Hub) Serve(e *Engine) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	serve := func(address, group string, answer func(context.Context, []byte) []byte) {
		if err != nil {
			return
		}
		var s func()
		if s, err = e.serve(address, group, answer); err == nil {
			stops = append(stops, s)
		}
	}
	serve(PeersAddress, hubsGroup, func(context.Context, []byte) []byte {
		text, _ := json.Marshal(h.Peers()) // texts and times
		return text
	})
	serve(EndedAddress, hubsGroup, func(ctx context.Context, host []byte) []byte { return []byte(h.howEnded(ctx, e, string(host))) })
	if h.opts.Cluster != nil {
		serve(endedOf(h.opts.Cluster.Self), "", func(_ context.Context, host []byte) []byte {
			text, _ := json.Marshal(h.ended(string(host))) // texts and numbers
			return text
		})
		serve(reachOf(h.opts.Cluster.Self), "", func(context.Context, []byte) []byte {
			text, _ := json.Marshal(h.peers.reached()) // texts
			return text
		})
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// reachOf is where a hub is asked which ones it reaches.
func reachOf(hub int) string { return "hub.reach." + strconv.Itoa(hub) }

func endedOf(hub int) string { return EndedAddress + "." + strconv.Itoa(hub) }

// howEnded asks all hubs. The last connection counts; while a hub that may have had it cannot be asked nothing is known.
func (h *Hub) howEnded(ctx context.Context, e *Engine, host string) HowEnded {
	all := []ended{h.ended(host)}
	if c := h.opts.Cluster; c != nil {
		var mu sync.Mutex
		var asking sync.WaitGroup
		for n := range c.Hubs {
			if n == c.Self {
				continue
			}
			asking.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, peerLimit)
				defer cancel()
				var one ended
				if text, err := e.Request(ctx, endedOf(n), []byte(host)); err != nil || json.Unmarshal(text, &one) != nil {
					one = ended{}
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, one)
			})
		}
		asking.Wait()
	}
	return last(all)
}

// last is what several hubs know together.
func last(all []ended) HowEnded {
	how, knows := ended{}, all[0].Runs
	for _, one := range all {
		knows = min(knows, one.Runs)
		switch {
		case one.How == Lives:
			return Lives
		case one.How != NotKnown && (how.How == NotKnown || one.Ago < how.Ago):
			how = one
		}
	}
	if how.Ago > knows {
		return NotKnown // it may have been at a hub since that knows nothing of it
	}
	return how.How
}

// ended is what this hub knows of a machine.
func (h *Hub) ended(host string) ended {
	e := ended{Runs: time.Since(h.began)}
	if all, err := h.server.Connz(&server.ConnzOptions{Username: true, User: host, State: server.ConnOpen, Limit: 1}); err == nil && len(all.Conns) > 0 {
		e.How = Lives
		return e
	}
	all, err := h.server.Connz(&server.ConnzOptions{Username: true, User: host, State: server.ConnClosed, Sort: server.ByStop, Limit: 1})
	if err != nil || len(all.Conns) == 0 {
		return e
	}
	c := all.Conns[0]
	if c.Stop != nil {
		e.Ago = time.Since(*c.Stop)
	}
	switch {
	case slices.Contains(endedThere, c.Reason):
		e.How = Closed
	case c.Reason != server.Kicked.String(): // or we have ended it
		e.How = FellMute
	}
	return e
}

// PeersOf reads an answer at [PeersAddress] that came at a moment, by whose clock the hubs' Since are then.
func PeersOf(answer []byte, at time.Time) (list []Peer, err error) {
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, fmt.Errorf("the hubs of the fleet: %w", err)
	}
	for n, p := range list {
		if p.Ago > 0 {
			list[n].Since = at.Add(-p.Ago).UTC().Round(time.Second)
		}
	}
	slices.SortFunc(list, func(a, b Peer) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// URLs are the addresses of one or several hubs, with commas, as [Options.URL].
func URLs(addresses string) string {
	list := strings.Split(addresses, ",")
	for n, a := range list {
		list[n] = "nats://" + a
	}
	return strings.Join(list, ",")
}

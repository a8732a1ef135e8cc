package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/fleet/seen"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	// silentAfter is how long nothing is heard of a machine until we look whether we hear anything at all (see [view.notice]). With
	// twice [lookEach] it counts as silent within two beats and a second.
	silentAfter = 2 * beatEvery
	// promptly is how soon our own beat comes back to us while the registry works.
	promptly = time.Second
	// lingers is how long what others have written is read after the last one who looked: pages ask again and again.
	lingers  = 30 * time.Second
	lookEach = 250 * time.Millisecond // how often the age of the last beats is looked at
	tryAgain = time.Second            // before what could not be read is tried again
)

// knownHost is what is known of a machine.
type knownHost struct {
	digest  judge.Digest
	said    seen.Order    // of its digests
	stands  seen.Order    // of its states
	unread  error         // its last digest could not be read, and why
	beaten  time.Time     // when its last beat came, by our clock; zero: it was old already
	ahead   time.Duration // of our clock is its own; 0: it is not known yet
	state   *overview.Snapshot
	news    seen.Log
	silent  bool
	named   bool          // it has a digest, and so is in the fleet
	changed chan struct{} // closed when it has changed, or something that concerns all
}

func newKnownHost() *knownHost { return &knownHost{changed: make(chan struct{})} }

func (h *knownHost) tell() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// view is what other machines have written, as long as somebody looks.
type view struct {
	m *member

	mu      sync.Mutex
	users   int
	idle    *time.Timer
	cancel  context.CancelFunc // nil: nothing is read
	synced  bool               // everything was read once
	again   bool               // and is read anew, after the connection was lost: what is told may be old
	hosts   map[string]*knownHost
	older   []string                // machines with an older outlive, which write where nobody reads here
	cases   map[string]judge.Record // that are not over, by key
	asked   time.Time               // when our own beat was asked for, to see whether the registry tells anything; zero: it was not
	heard   time.Time               // when the registry began to tell again, after it had told nothing
	changed chan struct{}           // closed when a machine is new, and with all that concerns more than one
}

func newView(m *member) *view {
	return &view{m: m, hosts: map[string]*knownHost{}, cases: map[string]judge.Record{}, changed: make(chan struct{})}
}

// acquire begins to look. The function that is returned ends it, and is called once.
func (v *view) acquire() (release func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.users++
	if v.idle != nil {
		v.idle.Stop()
		v.idle = nil
	}
	if v.cancel == nil {
		var ctx context.Context
		ctx, v.cancel = context.WithCancel(context.Background())
		go v.read(ctx)
		go v.look(ctx)
	}
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.users--; v.users == 0 {
			v.idle = time.AfterFunc(lingers, v.rest)
		}
	}
}

// rest ends reading if still nobody looks.
func (v *view) rest() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.users > 0 || v.cancel == nil {
		return
	}
	v.cancel()
	v.cancel, v.hosts, v.synced, v.again, v.cases = nil, map[string]*knownHost{}, false, false, map[string]judge.Record{}
	v.asked, v.heard = time.Time{}, time.Time{}
}

// close ends everything.
func (v *view) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.idle != nil {
		v.idle.Stop()
	}
	if v.cancel != nil {
		v.cancel()
	}
}

// meet notes machines of an older outlive.
func (v *view) meet(older []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.older = older
}

// olderThere is said of them.
const olderThere = "it has joined with an older outlive, and does not see those with this one, nor they it: upgrade it. If it is not there any more, nats kv del outlive_digest digest."

// linked tells everybody who waits that the connection stands otherwise. If it is there again, everything is told once more.
func (v *view) linked(again bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.again = again && v.synced || v.again
	v.tell()
}

// tell wakes everybody. The lock is held.
func (v *view) tell() {
	v.tellNames()
	for _, h := range v.hosts {
		h.tell()
	}
}

// tellNames wakes who waits for a machine that is not there. The lock is held.
func (v *view) tellNames() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// read keeps what the machines and the judge have written up to date.
func (v *view) read(ctx context.Context) {
	for ctx.Err() == nil {
		changes, err := v.m.engine.Watch(ctx, append([]string{judge.Table}, tables...)...)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(tryAgain):
			}
			continue
		}
		for c := range changes {
			v.take(ctx, c)
		}
	}
}

func (v *view) take(ctx context.Context, c engine.Change) {
	table, _, _ := strings.Cut(c.Key, ".")
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case ctx.Err() != nil: // others read by now
	case c.Synced:
		v.synced, v.again = true, false
		v.tell()
	case table == judge.Table:
		v.takeCase(c)
		v.tell()
	default:
		if names := engine.Names(table, c.Key); len(names) == 1 {
			v.takeOf(names[0], table, c)
		}
	}
}

// takeOf takes what a machine has written. The lock is held.
func (v *view) takeOf(name, table string, c engine.Change) {
	h := v.hosts[name]
	if c.Gone {
		if h != nil && (table == digestTable || !h.named) {
			delete(v.hosts, name)
			h.tell()
		}
		return
	}
	if h == nil {
		h = newKnownHost()
		v.hosts[name] = h
		v.tellNames()
	}
	h.named = h.named || table == digestTable
	was := *h
	h.take(table, c.Value, v.synced && !v.again, func(at time.Time) bool {
		young, known := v.m.publisher.young(c.Revision, time.Now())
		return young || !known && time.Since(at).Abs() < silentAfter
	})
	if v.again && was.digest.Incarnation != "" {
		h.beaten, h.silent = was.beaten, was.silent // its next one says that it lives
	}
	h.tell()
}

// takeCase takes what the judge has written. The lock is held.
func (v *view) takeCase(c engine.Change) {
	r, err := judge.ReadRecord(c.Key, c.Value)
	if c.Gone || err == nil && r.State == judge.Over {
		delete(v.cases, c.Key)
	} else if err == nil {
		v.cases[c.Key] = r
	}
}

// howSilent is how a machine has fallen silent; "": that was not found out. The lock is held.
func (v *view) howSilent(host string) string {
	for _, n := range v.cases {
		if n.Kind == judge.Silent && n.Subject == host || n.Kind == judge.Machines && slices.Contains(n.Agents, host) {
			return string(n.Standing)
		}
	}
	return ""
}

// cannotRead begins what is said of a machine that writes what is not understood here.
const cannotRead = "what it tells the fleet cannot be read here, another version of outlive may be there: "

// take takes what a machine has written. Events that are not understood are passed over: another version may be there. now says that it was
// written just now, and young whether a digest of a time by the other machine's clock is younger than [silentAfter].
func (h *knownHost) take(table string, value []byte, now bool, young func(at time.Time) bool) {
	switch table {
	case digestTable:
		var d judge.Digest
		if h.unread = json.Unmarshal(value, &d); h.unread != nil {
			return
		}
		first := h.digest.Incarnation == ""
		if !h.said.Newer(d.Incarnation, d.Beat) {
			return // it is told again, perhaps by a registry that was behind
		}
		h.digest = d
		if now || !first || young(d.At) {
			h.beaten, h.silent = time.Now(), false
		}
		if now {
			h.ahead = d.At.Sub(h.beaten)
		}
	case stateTable:
		s, err := unpacked(value)
		if err != nil {
			s.Snapshot = overview.Snapshot{Version: h.digest.Version, At: h.digest.At, Trouble: []string{cannotRead + err.Error()}}
		} else if s.Incarnation != "" && !h.stands.Newer(s.Incarnation, s.Beat) {
			return
		}
		h.state = &s.Snapshot
	case newsTable:
		var n seen.Log
		if json.Unmarshal(value, &n) == nil {
			h.news = n
		}
	}
}

// look notices who has fallen silent.
func (v *view) look(ctx context.Context) {
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	var was time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		connected, since, _ := v.m.linkNow()
		unwritten, _ := v.m.unwritten()
		v.mu.Lock()
		if unwritten.IsZero() != was.IsZero() {
			v.tell()
		}
		was = unwritten
		v.notice(connected, since, time.Now())
		v.mu.Unlock()
	}
}

// notice notices who has fallen silent; connected and since say how the connection stands. Before a machine counts as silent we write a beat
// and read it: where that takes long the registry was silent, as while servers elect a leader, and not the machine. The lock is held.
func (v *view) notice(connected bool, since, now time.Time) {
	if v.heard.After(since) {
		since = v.heard
	}
	due := v.due(since, now)
	own := v.hosts[v.m.Host]
	switch {
	case !connected || len(due) == 0:
		v.asked = time.Time{}
	case own == nil || !v.m.publisher.writes():
		fallSilent(due)
	case v.asked.IsZero():
		v.asked = now
		v.m.publisher.beatNow()
	case own.beaten.Before(v.asked): // it may come yet
	case own.beaten.Sub(v.asked) > promptly:
		v.heard, v.asked = own.beaten, time.Time{}
	default:
		v.asked = time.Time{}
		fallSilent(due)
	}
}

// due are the machines of which nothing was heard for too long. What was said before since did not reach us.
func (v *view) due(since, now time.Time) (list []*knownHost) {
	for _, h := range v.hosts {
		last := h.beaten
		if !last.IsZero() && since.After(last) {
			last = since
		}
		if !h.silent && now.Sub(last) >= silentAfter {
			list = append(list, h)
		}
	}
	return list
}

func fallSilent(list []*knownHost) {
	for _, h := range list {
		h.silent = true
		h.tell()
	}
}

// glance is how a machine stands at this moment.
type glance struct {
	fleetsocket.Host
	ending  *fleetsocket.Ending // nil: it is connected
	digest  judge.Digest
	state   *overview.Snapshot
	news    seen.Log
	ready   bool // everything was read once
	changed <-chan struct{}
}

// at looks at a machine.
func (v *view) at(name string) glance {
	connected, since, why := v.m.linkNow()
	unwritten, cause := v.m.unwritten()
	v.mu.Lock()
	defer v.mu.Unlock()
	g := glance{Host: fleetsocket.Host{Name: name, State: fleetsocket.Connected}, changed: v.changed, ready: v.synced}
	h := v.hosts[name]
	if h != nil {
		g.digest, g.state, g.news, g.changed = h.digest, h.state, h.news, h.changed
		g.ClockMS = h.ahead.Milliseconds()
		g.Tells = h.digest.Reach == judge.People
		g.Version, g.Heard, g.Servers, g.Agents, g.Incidents = h.digest.Version, h.digest.At, h.digest.Servers, h.digest.Agents, h.digest.Incidents
	}
	switch {
	case !connected:
		g.ending = &fleetsocket.Ending{Word: fleetsocket.Unknown, Why: "this machine has no connection to the hub since " + since.UTC().Format(time.DateTime) + " UTC: " + why, From: since}
	case !unwritten.IsZero():
		g.ending = &fleetsocket.Ending{Word: fleetsocket.Unknown, Why: "nothing is written since " + unwritten.UTC().Format(time.DateTime) + " UTC: " + cause, From: unwritten}
	case h == nil && !v.synced:
		g.ending = &fleetsocket.Ending{Word: fleetsocket.Unknown, Why: "the hub has not told of it yet"}
	case h == nil:
		g.ending = &fleetsocket.Ending{Word: fleetsocket.Left, Why: "the fleet has no machine of this name any more"}
	case h.unread != nil:
		g.ending = &fleetsocket.Ending{Word: fleetsocket.Unknown, Why: cannotRead + h.unread.Error()}
	case h.silent || h.beaten.IsZero():
		g.How = v.howSilent(name)
		g.ending = fleetsocket.SilentFor(name, h.digest.At.Add(-h.ahead), g.How)
	}
	if g.ending != nil {
		g.State, g.Why = g.ending.Word, g.ending.Why
	}
	return g
}

// missed is the ending of a machine that is not there, with when it was heard last.
func (v *view) missed(ctx context.Context, name string) *fleetsocket.Ending {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	defer v.acquire()()
	v.await(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.hosts[name]
	if h == nil {
		h = newKnownHost()
	}
	return fleetsocket.SilentFor(name, h.digest.At.Add(-h.ahead), v.howSilent(name))
}

// names are all machines, in order.
func (v *view) names() (all []string, ready bool, changed <-chan struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, h := range v.hosts {
		if h.named {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all, v.synced, v.changed
}

// await returns when everything was read once, or the hub cannot be asked, or ctx has ended.
func (v *view) await(ctx context.Context) {
	for {
		_, ready, changed := v.names()
		if connected, _, _ := v.m.linkNow(); ready || !connected {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// status is how the fleet stands.
func (v *view) status(ctx context.Context) fleetsocket.Status {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	defer v.acquire()()
	v.await(ctx)
	s := fleetsocket.Status{Version: v.m.release, Host: v.m.Host, Hub: v.m.where(), Hosts: []fleetsocket.Host{}, Cases: v.openCases()}
	s.Connected, s.Since, s.Why = v.m.linkNow()
	if since, why := v.m.unwritten(); !since.IsZero() {
		s.Since, s.Why = since, why
	}
	names, ready, _ := v.names()
	s.Partial = s.Connected && !ready
	for _, name := range names {
		s.Hosts = append(s.Hosts, v.at(name).Host)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range v.older {
		if ready && !slices.Contains(names, name) {
			s.Hosts = append(s.Hosts, fleetsocket.Host{Name: name, State: fleetsocket.Unknown, Why: olderThere + name})
		}
	}
	return s
}

// openCases are those that are not over, in order.
func (v *view) openCases() []fleetsocket.Case {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := []fleetsocket.Case{}
	for _, key := range slices.Sorted(maps.Keys(v.cases)) {
		n := v.cases[key]
		if h := v.hosts[n.Judge()]; h != nil && !n.Since.IsZero() {
			n.Since = n.Since.Add(-h.ahead)
		}
		// A judge that has the lease from one that was lost has only seen that nothing came since then.
		if h := v.hosts[n.Subject]; h != nil && n.Kind == judge.Silent && !h.digest.At.IsZero() && h.digest.At.Add(-h.ahead).Before(n.Since) {
			n.Since = h.digest.At.Add(-h.ahead)
		}
		list = append(list, fleetsocket.Case{
			Kind: string(n.Kind), Subject: n.Subject, How: string(n.Standing), Since: n.Since, Agents: n.Agents, By: by(n), State: stateOf(n),
		})
	}
	return list
}

// by is the machine whose monitor has told of a case, whoever judges since. Before that it is the one that has found it. "": a machine that
// has it has told by itself.
func by(n judge.Record) string {
	if n.State == judge.Sent {
		return n.Message
	}
	return n.Judge()
}

func stateOf(n judge.Record) string {
	switch n.State {
	case judge.Sent:
		if n.Shown {
			return fleetsocket.Shown
		}
		return fleetsocket.Told
	case judge.Sending:
		return fleetsocket.Telling
	}
	return fleetsocket.Found
}

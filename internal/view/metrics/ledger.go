package metrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/stateversion"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/latency"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	ledgerVersion = 1
	ledgerLimit   = 64 << 20  // bytes
	closedKept    = time.Hour // how long the key of an ended outlive is remembered
)

// Counted is what was counted of one server. It only grows.
type Counted struct {
	backend.Counters
	// Sessions are clients of outlive run, from its start to its end. nil: none has ended.
	Sessions *latency.Histogram `json:"sessions,omitempty"`
}

func (c *Counted) merge(o Counted) {
	c.Counters.Merge(o.Counters)
	switch {
	case o.Sessions == nil:
	case c.Sessions == nil:
		c.Sessions = o.Sessions
	default:
		c.Sessions.Merge(o.Sessions)
	}
}

// Ledger is what was counted, also by outlives that have ended.
type Ledger struct {
	Version int                  `json:"version"`
	Since   time.Time            `json:"since"`  // when counting began
	Ended   map[string]Counted   `json:"ended"`  // by server
	Live    map[string]*Instance `json:"live"`   // by key
	Closed  map[string]time.Time `json:"closed"` // by key: when an outlive has ended whose counts are in Ended
	Homes   map[string]*Home     `json:"homes"`  // by path
}

// Instance is what a running outlive had counted when it was asked last.
type Instance struct {
	Socket  string             `json:"socket"`
	Servers map[string]Counted `json:"servers"`
}

// Home is what was counted of the agents of a monitor's home.
type Home struct {
	Acted    time.Time                   `json:"acted"` // the newest step that is counted; likewise the others
	Proved   time.Time                   `json:"proved"`
	Opened   time.Time                   `json:"opened"`
	Resolved time.Time                   `json:"resolved"`
	Steps    map[string]map[string]int64 `json:"steps"` // by agent and step
	Helped   map[string]map[string]int64 `json:"helped"`
	Begun    map[string]int64            `json:"begun"` // incidents, by class
	Over     map[string]int64            `json:"over"`
}

// Key tells one running outlive from all others, and from itself before an upgrade.
func Key(pid int, started time.Time, upgrades int) string {
	return fmt.Sprintf("%d-%d-%d", pid, started.UnixMicro(), upgrades)
}

// Update changes the ledger in a file under a lock. create says that it is to be made if there is none; otherwise nothing happens
// then, and the result is nil. A file that cannot be read as one is replaced: what is lost is the past.
func Update(path string, create bool, change func(*Ledger)) (*Ledger, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !create {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return nil, fmt.Errorf("counters: %w", err)
	}
	defer func() { _ = lock.Close() }() // the system releases it in any case
	l, err := readLedger(path)
	if err != nil {
		return nil, err
	}
	change(l)
	text, err := json.Marshal(l)
	if err == nil {
		err = atomicfile.Write(path, text)
	}
	if err != nil {
		return nil, fmt.Errorf("counters: %w", err)
	}
	return l, nil
}

func readLedger(path string) (*Ledger, error) {
	l := &Ledger{}
	text, err := atomicfile.Read(path, ledgerLimit)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, atomicfile.ErrTooLong) {
		return nil, fmt.Errorf("counters: %w", err)
	}
	if err != nil || json.Unmarshal(text, l) != nil {
		l = &Ledger{}
	}
	if err := stateversion.Check(path, l.Version, ledgerVersion); err != nil {
		return nil, err
	}
	l.Version = ledgerVersion
	fill(&l.Ended)
	fill(&l.Live)
	fill(&l.Closed)
	fill(&l.Homes)
	return l, nil
}

func fill[V any](m *map[string]V) {
	if *m == nil {
		*m = map[string]V{}
	}
}

// CountedBy is what a running outlive has counted, by server as outlive status names it. The daemon of shared servers does not count requests: the runs do.
func CountedBy(s control.Status) map[string]Counted {
	all := map[string]Counted{}
	if s.Run() {
		all[s.Name] = Counted{Counters: s.Counters}
	}
	for _, m := range s.Servers {
		c := m.Counted()
		if !s.Gateway() {
			c.Calls = nil
		}
		all[nameOf(s, m)] = Counted{Counters: c}
	}
	return all
}

// See notes what the running outlives have counted, and adds up what those have that are gone.
func (l *Ledger) See(now time.Time, running []overview.Instance, home *overview.Home) {
	if l.Since.IsZero() {
		l.Since = now
	}
	there := map[string]bool{}  // by key
	silent := map[string]bool{} // by the socket of any that runs
	for _, i := range running {
		if silent[i.Path] = i.Silent; i.Silent {
			continue
		}
		key := Key(i.Status.PID, i.Status.StartedAt, i.Status.Upgrades)
		there[key] = true
		l.seeOne(key, i.Path, CountedBy(i.Status))
	}
	for key, i := range l.Live {
		if there[key] || silent[i.Socket] {
			continue
		}
		_, another := silent[i.Socket] // that it was upgraded to
		if _, err := os.Lstat(i.Socket); err == nil && !another {
			continue // it listens where nobody has looked now
		}
		l.End(now, key, nil)
	}
	for key, at := range l.Closed {
		if now.Sub(at) > closedKept {
			delete(l.Closed, key)
		}
	}
	if home != nil {
		l.seeHome(home)
	}
}

func (l *Ledger) seeOne(key, socket string, counted map[string]Counted) {
	if _, over := l.Closed[key]; over {
		return // it has ended since it was asked
	}
	one := l.Live[key]
	if one == nil {
		one = &Instance{Socket: socket, Servers: map[string]Counted{}}
		l.Live[key] = one
	}
	for name, c := range counted {
		was, known := one.Servers[name]
		switch {
		case !known || total(c) >= total(was):
		case total(c) == 0:
			continue // it could not be asked, as one that is ending: what is known of it stays
		default:
			put(l.Ended, name, was) // it has begun anew, as a server that was removed and configured again
		}
		one.Servers[name] = c
	}
}

// total is how much was counted. It only grows.
func total(c Counted) (n int64) {
	for _, one := range c.Events {
		n += one
	}
	for _, one := range c.Calls {
		n += one.Total()
	}
	return n
}

// End adds what an outlive has counted to what has ended: last, or what was seen of it, if last is nil.
func (l *Ledger) End(now time.Time, key string, last map[string]Counted) {
	if _, over := l.Closed[key]; over {
		return
	}
	if last != nil {
		l.seeOne(key, "", last)
	}
	if one := l.Live[key]; one != nil {
		for name, c := range one.Servers {
			put(l.Ended, name, c)
		}
	}
	delete(l.Live, key)
	l.Closed[key] = now
}

// put adds what was counted of a server.
func put(all map[string]Counted, server string, c Counted) {
	sum := all[server]
	sum.merge(c)
	all[server] = sum
}

// sums are all counts by server.
func (l *Ledger) sums() map[string]Counted {
	all := map[string]Counted{}
	for name, c := range l.Ended {
		put(all, name, c)
	}
	for _, i := range l.Live {
		for name, c := range i.Servers {
			put(all, name, c)
		}
	}
	return all
}

// seeHome counts what has happened in a home since it was looked at last.
func (l *Ledger) seeHome(is *overview.Home) {
	h := l.Homes[is.Path]
	if h == nil {
		h = &Home{Acted: l.Since, Proved: l.Since, Opened: l.Since, Resolved: l.Since}
		l.Homes[is.Path] = h
	}
	fill(&h.Steps)
	fill(&h.Helped)
	fill(&h.Begun)
	fill(&h.Over)
	was := *h
	later := func(at time.Time, seen time.Time, newest *time.Time) bool {
		if at.After(*newest) {
			*newest = at
		}
		return at.After(seen)
	}
	for _, a := range is.Agents {
		for _, act := range a.Acts {
			if later(act.At, was.Acted, &h.Acted) {
				countStep(h.Steps, a.Key, act.Step)
			}
			if later(act.Helped, was.Proved, &h.Proved) {
				countStep(h.Helped, a.Key, act.Step)
			}
		}
	}
	for _, i := range is.Incidents {
		if later(i.Opened, was.Opened, &h.Opened) {
			h.Begun[i.Class]++
		}
		if later(i.Resolved, was.Resolved, &h.Resolved) {
			h.Over[i.Class]++
		}
	}
}

func countStep(all map[string]map[string]int64, agent, step string) {
	if all[agent] == nil {
		all[agent] = map[string]int64{}
	}
	all[agent][step]++
}

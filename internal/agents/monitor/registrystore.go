package monitor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// Reading the registry. Other writers do not replace it atomically, so half a file may be read.
const (
	readTries  = 3
	readPause  = 100 * time.Millisecond
	writeTries = 10
)

// registryStore reads the registry: PIV's, which agents write heartbeats into and we update, or version 2, which only its owner
// edits.
type registryStore struct {
	path  string
	opts  Options
	store *store
	text  []byte    // the last text that could be parsed
	last  *snapshot // its parsed form; nil: none yet
	saved []byte    // the part of it that the store has

	broken []byte             // the last text that could not be parsed
	lost   string             // why the registry could not be used at the last look
	warned *registry.Registry // whose warnings were logged; nil: none
}

// snapshot is one reading of the registry.
type snapshot struct {
	Agents   []agent
	Projects *piv.Registry      // the PIV registry; nil: it is one of version 2
	Registry *registry.Registry // of version 2; of a PIV registry [unset]
	Lost     string             // why the file cannot be used and this is the last good copy; "": it is current
	Broken   []byte             // the content of the unusable file
	places   map[string]int     // of Agents, by their keys
	fleet    recovery.FleetPolicy
}

// unset is what a PIV registry sets for the monitor: no channel, no hour, no address.
var unset = &registry.Registry{Version: 1, Zone: time.UTC}

// agent is the one with a key, if there is one.
func (p *snapshot) agent(key string) (a agent, there bool) {
	at, there := p.places[key]
	if there {
		a = p.Agents[at]
	}
	return a, there
}

// blank reports a registry without agents. After one with agents it is more likely a partial write than intended.
func (p *snapshot) blank() bool { return len(p.Agents) == 0 }

// declared reports a registry of version 2. No heartbeats are written into it, so failing to read it says nothing about
// the agents.
func (p *snapshot) declared() bool { return p.Projects == nil }

// own is the registry of version 2; nil: the home has one of PIV's.
func (p *snapshot) own() *registry.Registry {
	if p.declared() {
		return p.Registry
	}
	return nil
}

// openRegistryStore loads the last good copy of an earlier run.
func openRegistryStore(ctx context.Context, o Options, s *store) (*registryStore, error) {
	b := &registryStore{path: o.Registry, opts: o, store: s}
	var good goodCopy
	known, err := fact(ctx, s.db, "registry", &good)
	if err != nil || !known {
		return b, err
	}
	if good.Path != b.path { // the copy is of another path
		_, err := write(ctx, s.db, `DELETE FROM sight`)
		return b, err
	}
	p, err := b.understand([]byte(good.Text), true)
	if err != nil {
		return b, nil // a copy that this version cannot parse is not used
	}
	b.last, b.text, b.saved = p, []byte(good.Text), []byte(good.Text)
	return b, nil
}

// goodCopy is the last good copy as the store keeps it.
type goodCopy struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// understand parses a text. accepted says that it was used before, perhaps by another release with other rules.
func (b *registryStore) understand(text []byte, accepted bool) (*snapshot, error) {
	p := &snapshot{Registry: unset, places: map[string]int{}}
	var err error
	if registry.Declares(text) {
		if p.Registry, err = registry.Parse(b.path, text, registry.Options{Home: b.opts.UserHome, Accepted: accepted}); err != nil {
			return nil, err
		}
		for _, d := range p.Registry.Agents {
			p.Agents = append(p.Agents, ofDeclaration(d))
		}
		p.fleet = sharedPolicy(p.Registry.Agents)
	} else {
		if p.Projects, err = piv.ParseRegistry(text); err != nil {
			return nil, err
		}
		for _, entry := range p.Projects.Projects {
			p.Agents = append(p.Agents, b.opts.ofProject(entry))
		}
	}
	for i, a := range p.Agents {
		p.places[a.Key] = i
	}
	return p, nil
}

// read reads the registry, or gives the last good copy.
func (b *registryStore) read(ctx context.Context) snapshot {
	var text []byte
	var err error
	for try := range readTries {
		if try > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(readPause):
			}
		}
		text, err = piv.ReadFile(b.path)
		if err == nil && b.last != nil && bytes.Equal(text, b.text) {
			return *b.last
		}
		var p *snapshot
		if err == nil {
			p, err = b.parse(text)
		}
		if err == nil {
			b.text, b.last = text, p
			return *p
		}
		if errors.Is(err, os.ErrNotExist) && b.last == nil || len(text) > 0 && bytes.Equal(text, b.broken) {
			break // reading again would not help
		}
	}
	b.broken = text
	p := snapshot{Projects: &piv.Registry{}, Registry: unset}
	if errors.Is(err, os.ErrNotExist) && (b.last == nil || b.last.blank()) {
		return p // no agent has registered yet
	}
	if b.last != nil {
		p = *b.last
	}
	if p.Lost = err.Error(); errors.Is(err, os.ErrNotExist) {
		p.Lost = "the registry " + b.path + " is missing"
		return p
	}
	p.Broken = text
	return p
}

// parse also rejects a file that lacks what the last good copy had: all its agents, or its end.
func (b *registryStore) parse(text []byte) (*snapshot, error) {
	p, err := b.understand(text, false)
	switch {
	case err != nil || b.last == nil:
		return p, err
	case b.last.declared():
		switch {
		case !p.blank() || b.last.blank():
		case !p.declared():
			return nil, fmt.Errorf("registry %w: no agents are left, nor its version", piv.ErrBroken)
		case !p.Registry.Listed:
			return nil, fmt.Errorf("registry %w: no agents are left, nor the key agents: if that is meant, write agents: {}", piv.ErrBroken)
		}
		return p, nil
	case len(bytes.TrimSpace(text)) == 0 && !b.last.blank():
		return nil, fmt.Errorf("registry %w: it is empty", piv.ErrBroken)
	case p.Projects != nil && b.last.Projects.Complete && !p.Projects.Complete:
		return nil, fmt.Errorf("registry %w: it has no lastUpdated, its end is missing", piv.ErrBroken)
	}
	return p, nil
}

// news reports whether lost, which is why the registry cannot be used, differs from that of the last look.
func (b *registryStore) news(lost string) bool {
	changed := lost != b.lost
	b.lost = lost
	return changed
}

// warnings are those of a registry that is used, each time that it was read.
func (b *registryStore) warnings(of *registry.Registry) []string {
	if of == b.warned {
		return nil
	}
	b.warned = of
	return of.Warned()
}

// save makes the last text read the last good copy.
func (b *registryStore) save(ctx context.Context) error {
	if b.last == nil || bytes.Equal(b.text, b.saved) {
		return nil
	}
	if err := setFact(ctx, b.store.db, "registry", goodCopy{b.path, string(b.text)}); err != nil {
		return err
	}
	b.saved = b.text
	return nil
}

// keepAside copies a broken registry next to itself and returns the path. The name depends on the content, so that it is
// kept once.
func (b *registryStore) keepAside(p snapshot) (string, error) {
	sum := sha256.Sum256(p.Broken)
	aside := b.path + ".broken-" + hex.EncodeToString(sum[:4])
	if _, err := os.Stat(aside); err == nil {
		return aside, nil
	}
	return aside, atomicfile.WriteDurably(aside, p.Broken)
}

// restore replaces a broken registry by the last good copy, unless the file has changed meanwhile. Without a file the
// next agent's heartbeat would create an empty registry.
func (b *registryStore) restore(p snapshot) error {
	if b.last == nil || len(b.saved) == 0 {
		return errors.New("restore the registry: there is no last good copy")
	}
	if err := atomicfile.Replace(b.path, p.Broken, b.saved); err != nil {
		return err
	}
	last, err := b.understand(b.saved, true)
	if err != nil {
		return err
	}
	b.text, b.last = b.saved, last
	return nil
}

// current reads the registry once, as it is now.
func (b *registryStore) current() (text []byte, p *snapshot, err error) {
	if text, err = piv.ReadFile(b.path); err == nil {
		p, err = b.parse(text)
	}
	return text, p, err
}

// change applies changes to the current registry. A registry that cannot be parsed is never written.
func (b *registryStore) change(changes []piv.Change, now time.Time) error {
	if len(changes) == 0 {
		return nil
	}
	for try := 0; ; try++ {
		text, p, err := b.current()
		if err != nil {
			return fmt.Errorf("change the registry: %w", err)
		}
		if p.declared() {
			return nil // only its owner writes it
		}
		after, err := p.Projects.With(changes, now)
		if err != nil {
			return err
		}
		err = atomicfile.Replace(b.path, text, after)
		if err == nil || try == writeTries || !errors.Is(err, atomicfile.ErrChanged) {
			return err
		}
	}
}

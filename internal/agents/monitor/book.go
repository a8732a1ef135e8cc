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
	"github.com/outlive-mcp/outlive/internal/agents/registry"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// Reading the registry. Its other writers do not write it at once, so half a file is met now and then.
const (
	readTries  = 3
	readPause  = 100 * time.Millisecond
	writeTries = 10
)

// book is the registry as the monitor knows it: the PIV registry, which agents beat into and we write to, or that of version 2,
// which is its owner's and only read here.
type book struct {
	path  string
	opts  Options
	store *store
	text  []byte // what was read last and understood
	last  *page  // the same; nil: nothing was ever understood
	saved []byte // what of it the store has

	broken []byte // what was read last and not understood
}

// page is one reading of the registry.
type page struct {
	Agents   []agent
	Projects *piv.Registry    // the PIV registry; nil: it is one of version 2
	Roster   *registry.Roster // of version 2; nil: it is a PIV registry
	Lost     string           // why the file cannot be used, and this is the last good copy; "": it can
	Broken   []byte           // what stands there instead
}

// blank reports a registry without any agent. After one with agents it is more likely half of a write than a wish.
func (p *page) blank() bool { return len(p.Agents) == 0 }

// declared reports a registry of version 2: nobody beats into it, so that it cannot be read says nothing of the agents.
func (p *page) declared() bool { return p.Roster != nil }

// openBook knows the last good copy of an earlier run.
func openBook(ctx context.Context, o Options, s *store) (*book, error) {
	b := &book{path: o.Registry, opts: o, store: s}
	var good goodCopy
	known, err := s.fact(ctx, "registry", &good)
	if err != nil || !known {
		return b, err
	}
	if good.Path != b.path { // what was seen there says nothing of what is here
		_, err := s.db.ExecContext(ctx, `DELETE FROM sight`)
		return b, err
	}
	p, err := b.understand([]byte(good.Text))
	if err != nil {
		return b, nil // what this version does not understand is no last good copy
	}
	b.last, b.text, b.saved = p, []byte(good.Text), []byte(good.Text)
	return b, nil
}

// goodCopy is the last good copy as the store keeps it.
type goodCopy struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// understand makes a page of a text.
func (b *book) understand(text []byte) (*page, error) {
	p := &page{}
	if registry.Declares(text) {
		r, err := registry.Parse(b.path, text, registry.Options{Home: b.opts.UserHome})
		if err != nil {
			return nil, err
		}
		p.Roster = r
		for _, d := range r.Agents {
			p.Agents = append(p.Agents, ofDeclaration(d))
		}
		p.shareFleet()
		return p, nil
	}
	r, err := piv.ParseRegistry(text)
	if err != nil {
		return nil, err
	}
	p.Projects = r
	for _, entry := range r.Projects {
		p.Agents = append(p.Agents, b.opts.ofProject(entry))
	}
	return p, nil
}

// read reads the registry, or gives the last good copy.
func (b *book) read(ctx context.Context) page {
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
		var p *page
		if err == nil {
			p, err = b.parse(text)
		}
		if err == nil {
			b.text, b.last = text, p
			return *p
		}
		if errors.Is(err, os.ErrNotExist) && b.last == nil || len(text) > 0 && bytes.Equal(text, b.broken) {
			break // it will not become better within a moment
		}
	}
	b.broken = text
	empty := b.last == nil || b.last.blank()
	if errors.Is(err, os.ErrNotExist) && empty {
		return page{Projects: &piv.Registry{}} // nobody has registered anything yet
	}
	var p page
	if b.last != nil {
		p = *b.last
	} else {
		p.Projects = &piv.Registry{}
	}
	if p.Lost = err.Error(); errors.Is(err, os.ErrNotExist) {
		p.Lost = "the registry " + b.path + " is missing"
		return p
	}
	p.Broken = text
	return p
}

// parse also takes a file for a broken one that lacks what the last good copy had: all content, or its end.
func (b *book) parse(text []byte) (*page, error) {
	p, err := b.understand(text)
	switch {
	case err != nil || b.last == nil:
		return p, err
	case b.last.declared():
		if p.blank() && !p.declared() && !b.last.blank() {
			return nil, fmt.Errorf("registry %w: no agents are left, nor its version", piv.ErrBroken)
		}
		return p, nil
	case len(bytes.TrimSpace(text)) == 0 && !b.last.blank():
		return nil, fmt.Errorf("registry %w: it is empty", piv.ErrBroken)
	case p.Projects != nil && b.last.Projects.Complete && !p.Projects.Complete:
		return nil, fmt.Errorf("registry %w: it has no lastUpdated, its end is missing", piv.ErrBroken)
	}
	return p, nil
}

// save makes what was read last the last good copy.
func (b *book) save(ctx context.Context) error {
	if b.last == nil || bytes.Equal(b.text, b.saved) {
		return nil
	}
	if err := b.store.setFact(ctx, "registry", goodCopy{b.path, string(b.text)}); err != nil {
		return err
	}
	b.saved = b.text
	return nil
}

// keepAside copies a broken registry next to itself and says where. The name is made of the content, so that it is kept
// once.
func (b *book) keepAside(p page) (string, error) {
	sum := sha256.Sum256(p.Broken)
	aside := b.path + ".broken-" + hex.EncodeToString(sum[:4])
	if _, err := os.Stat(aside); err == nil {
		return aside, nil
	}
	return aside, atomicfile.WriteDurably(aside, p.Broken)
}

// restore puts the last good copy in the place of a broken registry, if that still is what it was. The agents go on
// beating into it; without it the next of them would begin an empty one.
func (b *book) restore(p page) error {
	if b.last == nil || len(b.saved) == 0 {
		return errors.New("restore the registry: there is no last good copy")
	}
	if err := atomicfile.Replace(b.path, p.Broken, b.saved); err != nil {
		return err
	}
	last, err := b.understand(b.saved)
	if err != nil {
		return err
	}
	b.text, b.last = b.saved, last
	return nil
}

// change writes changes into the registry as it is now. A registry that cannot be understood is never written to.
func (b *book) change(changes []piv.Change, now time.Time) error {
	if len(changes) == 0 {
		return nil
	}
	for try := 0; ; try++ {
		text, err := piv.ReadFile(b.path)
		if err != nil {
			return fmt.Errorf("change the registry: %w", err)
		}
		p, err := b.parse(text)
		if err != nil {
			return fmt.Errorf("change the registry: %w", err)
		}
		if p.declared() {
			return nil // its owner's
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

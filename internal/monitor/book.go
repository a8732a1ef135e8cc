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

	"github.com/outlive-mcp/outlive/internal/piv"
)

// Reading the registry. Its other writers do not write it at once, so half a file is met now and then.
const (
	readTries  = 3
	readPause  = 100 * time.Millisecond
	writeTries = 10
)

// book is the registry as the monitor knows it.
type book struct {
	path  string
	store *store
	text  []byte        // what was read last and understood
	last  *piv.Registry // the same; nil: nothing was ever understood
	saved []byte        // what of it the store has
}

// openBook knows the last good copy of an earlier run.
func openBook(ctx context.Context, path string, s *store) (*book, error) {
	b := &book{path: path, store: s}
	var good goodCopy
	known, err := s.fact(ctx, "registry", &good)
	if err != nil || !known {
		return b, err
	}
	if good.Path != path { // what was seen there says nothing of what is here
		_, err := s.db.ExecContext(ctx, `DELETE FROM sight`)
		return b, err
	}
	r, err := piv.ParseRegistry([]byte(good.Text))
	if err != nil {
		return b, nil // what this version does not understand is no last good copy
	}
	b.last, b.text, b.saved = r, []byte(good.Text), []byte(good.Text)
	return b, nil
}

// goodCopy is the last good copy as the store keeps it.
type goodCopy struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// page is one reading of the registry.
type page struct {
	Registry *piv.Registry
	Lost     string // why the file cannot be used, and Registry is the last good copy; "": it can
	Broken   []byte // what stands there instead
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
			return page{Registry: b.last}
		}
		var r *piv.Registry
		if err == nil {
			r, err = b.parse(text)
		}
		if err == nil {
			b.text, b.last = text, r
			return page{Registry: r}
		}
		if errors.Is(err, os.ErrNotExist) && b.last == nil {
			break
		}
	}
	empty := b.last == nil || b.last.Blank()
	switch {
	case errors.Is(err, os.ErrNotExist) && empty:
		return page{Registry: &piv.Registry{}} // nobody has registered anything yet
	case errors.Is(err, os.ErrNotExist):
		return page{Registry: b.last, Lost: "the registry " + b.path + " is missing"}
	case b.last == nil:
		return page{Registry: &piv.Registry{}, Lost: err.Error(), Broken: text}
	}
	return page{Registry: b.last, Lost: err.Error(), Broken: text}
}

// parse also takes a file for a broken one that lacks what the last good copy had: all content, or its end.
func (b *book) parse(text []byte) (*piv.Registry, error) {
	r, err := piv.ParseRegistry(text)
	switch {
	case err != nil || b.last == nil:
		return r, err
	case len(bytes.TrimSpace(text)) == 0 && !b.last.Blank():
		return nil, fmt.Errorf("registry %w: it is empty", piv.ErrBroken)
	case b.last.Complete && !r.Complete:
		return nil, fmt.Errorf("registry %w: it has no lastUpdated, its end is missing", piv.ErrBroken)
	}
	return r, nil
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
	return aside, piv.WriteNew(aside, p.Broken)
}

// restore puts the last good copy in the place of a broken registry, if that still is what it was. The agents go on
// beating into it; without it the next of them would begin an empty one.
func (b *book) restore(p page) error {
	if b.last == nil || len(b.saved) == 0 {
		return errors.New("restore the registry: there is no last good copy")
	}
	if err := piv.Replace(b.path, p.Broken, b.saved); err != nil {
		return err
	}
	r, err := piv.ParseRegistry(b.saved)
	if err != nil {
		return err
	}
	b.text, b.last = b.saved, r
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
		r, err := b.parse(text)
		if err != nil {
			return fmt.Errorf("change the registry: %w", err)
		}
		after, err := r.With(changes, now)
		if err != nil {
			return err
		}
		err = piv.Replace(b.path, text, after)
		if err == nil || try == writeTries || !errors.Is(err, piv.ErrChanged) {
			return err
		}
	}
}

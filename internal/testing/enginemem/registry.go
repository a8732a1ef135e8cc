package enginemem

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// Engine is an [engine.Engine]. Make one with [New].
type Engine struct {
	mu       sync.Mutex // of everything below; nothing is called while it is held
	last     engine.Revision
	entries  map[string]engine.Entry
	watchers map[*watcher]struct{}
	servers  map[string]*server
}

var _ engine.Engine = (*Engine)(nil)

// New returns an empty engine.
func New() *Engine {
	return &Engine{entries: map[string]engine.Entry{}, watchers: map[*watcher]struct{}{}, servers: map[string]*server{}}
}

// ended is the error of a context that has ended.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", engine.ErrUnknown, context.Cause(ctx))
}

// Get is [engine.Registry]'s. It is never old.
func (e *Engine) Get(ctx context.Context, key string) (engine.Entry, error) {
	if err := ended(ctx); err != nil {
		return engine.Entry{}, fmt.Errorf("get %s: %w", key, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	entry, ok := e.entries[key]
	if !ok {
		return engine.Entry{}, fmt.Errorf("get %s: %w", key, engine.ErrNotFound)
	}
	entry.Value = bytes.Clone(entry.Value)
	return entry, nil
}

// Put is [engine.Registry]'s.
func (e *Engine) Put(ctx context.Context, key string, value []byte) (engine.Revision, error) {
	return e.write(ctx, key, value, func(engine.Revision) bool { return true })
}

// CAS is [engine.Registry]'s.
func (e *Engine) CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error) {
	return e.write(ctx, key, value, func(now engine.Revision) bool { return now == before })
}

func (e *Engine) write(ctx context.Context, key string, value []byte, may func(now engine.Revision) bool) (engine.Revision, error) {
	err := ended(ctx)
	if len(value) > engine.MaxValue {
		err = engine.ErrTooLarge
	}
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", key, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !may(e.entries[key].Revision) {
		return 0, fmt.Errorf("write %s: %w", key, engine.ErrConflict)
	}
	e.last++
	entry := engine.Entry{Key: key, Value: bytes.Clone(value), Revision: e.last}
	e.entries[key] = entry
	e.tell(engine.Change{Entry: entry})
	return e.last, nil
}

// Delete is [engine.Registry]'s.
func (e *Engine) Delete(ctx context.Context, key string) error {
	if err := ended(ctx); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.entries[key]; ok {
		e.last++
		delete(e.entries, key)
		e.tell(engine.Change{Entry: engine.Entry{Key: key, Revision: e.last}, Gone: true})
	}
	return nil
}

// tell tells every watcher of a change. The lock is held.
func (e *Engine) tell(c engine.Change) {
	for w := range e.watchers {
		if w.wants(c.Key) {
			w.add(c)
		}
	}
}

// watcher is one Watch. The engine's lock guards its fields.
type watcher struct {
	prefixes []string // without the last dot
	waiting  []engine.Change
	places   map[string]int // of a key in waiting
	bell     chan struct{}  // has one token while something waits
}

func (w *watcher) wants(key string) bool {
	return slices.ContainsFunc(w.prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix+".") })
}

func (w *watcher) add(c engine.Change) {
	if at, ok := w.places[c.Key]; ok && !c.Synced {
		w.waiting[at] = c
		return
	}
	if !c.Synced {
		w.places[c.Key] = len(w.waiting)
	}
	w.waiting = append(w.waiting, c)
	select {
	case w.bell <- struct{}{}:
	default:
	}
}

// Watch is [engine.Registry]'s.
func (e *Engine) Watch(ctx context.Context, prefixes ...string) (<-chan engine.Change, error) {
	if err := ended(ctx); err != nil {
		return nil, fmt.Errorf("watch %s: %w", prefixes, err)
	}
	w := &watcher{prefixes: prefixes, places: map[string]int{}, bell: make(chan struct{}, 1)}
	e.mu.Lock()
	for _, key := range slices.Sorted(maps.Keys(e.entries)) {
		if w.wants(key) {
			w.add(engine.Change{Entry: e.entries[key]})
		}
	}
	w.add(engine.Change{Synced: true})
	e.watchers[w] = struct{}{}
	e.mu.Unlock()
	out := make(chan engine.Change)
	go e.deliver(ctx, w, out)
	return out, nil
}

func (e *Engine) deliver(ctx context.Context, w *watcher, out chan<- engine.Change) {
	defer close(out)
	defer func() {
		e.mu.Lock()
		delete(e.watchers, w)
		e.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.bell:
		}
		e.mu.Lock()
		list := w.waiting
		w.waiting, w.places = nil, map[string]int{}
		e.mu.Unlock()
		for _, c := range list {
			c.Value = bytes.Clone(c.Value)
			select {
			case <-ctx.Done():
				return
			case out <- c:
			}
		}
	}
}

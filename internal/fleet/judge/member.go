package judge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// Member speaks for one machine. Its methods may be called by any goroutine.
type Member struct {
	registry Writer
	host     string
	opts     Options

	mu      sync.Mutex // of what follows
	reached time.Time  // when the last digest that was acknowledged was sent; zero: none was
	left    map[string]bool
}

// Writer is what a member needs of an engine.
type Writer interface {
	Put(ctx context.Context, key string, value []byte) (engine.Revision, error)
}

// NewMember returns the member of a machine, whose name no other has. It does nothing before Run.
func NewMember(registry Writer, host string, opts Options) *Member {
	return &Member{registry: registry, host: host, opts: opts.withDefaults(), left: map[string]bool{}}
}

// Run writes a digest every beat until ctx ends, and then that this machine has left. troubles are those that the monitor has, which it is
// asked for each time. It returns ctx's error.
func (m *Member) Run(ctx context.Context, troubles func() []Trouble) error {
	tick := time.NewTicker(Beat)
	defer tick.Stop()
	count := uint64(time.Now().UnixNano()) // another one than any of an earlier run
	for {
		m.beat(ctx, Digest{Version: format, Host: m.host, Count: count, Reach: m.opts.Reach(), Troubles: troubles()})
		count++
		select {
		case <-ctx.Done():
			m.beat(context.WithoutCancel(ctx), Digest{Version: format, Host: m.host, Count: count, Left: true})
			return fmt.Errorf("the fleet's member %s: %w", m.host, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// beat writes one digest. One that is lost is followed by the next.
func (m *Member) beat(ctx context.Context, d Digest) {
	ctx, cancel := context.WithTimeout(ctx, Beat)
	defer cancel()
	sent := time.Now()
	if _, err := m.registry.Put(ctx, BeatKey(m.host), jsonOf(d)); err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reached = sent
	clear(m.left)
	for _, t := range d.Troubles {
		if !t.Told {
			m.left[t.Cause] = true
		}
	}
}

// Leaves reports whether people are told of a cause by the judge, and not by this machine. The machine tells by itself when it does not
// reach the fleet; of what it had left to the judge before, only after keepFor, since that was told, or will be.
func (m *Member) Leaves(cause string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	silent := time.Since(m.reached)
	return !m.reached.IsZero() && (silent < silence || m.left[cause] && silent < keepFor)
}

package gate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine has one agent, and what survives a kill of its programs: the agent and the gate's file.
type machine struct {
	t    *testing.T
	path string

	mu          sync.Mutex
	incarnation int
	cause       int // why it is in trouble; 0: it is well
	causes      int // how many there were
	mended      map[int]int
	harmed      int // commands that were carried out on an agent that was well
	mending     bool
	life        int // of the machine's programs
	takes       time.Duration
	obeyed      []lease.Term

	gate *Gate
	stop func()
}

func newMachine(t *testing.T) *machine {
	return &machine{t: t, path: filepath.Join(t.TempDir(), "gate.json"), incarnation: 1, mended: map[int]int{}}
}

// sicken gives the agent a new trouble.
func (m *machine) sicken() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cause == 0 {
		m.causes++
		m.cause = m.causes
	}
}

// seen is what a judge can know of the agent: no trouble is reported while something is done about it.
func (m *machine) seen() (incarnation string, sick bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strconv.Itoa(m.incarnation), m.cause != 0 && !m.mending
}

// life is one life of a machine's programs.
type life struct {
	*machine
	number int
}

// Carry mends the agent. A kill divides it: the incarnation is on disk, and the agent is not mended.
func (l life) Carry(ctx context.Context, c Command) (string, error) {
	m := l.machine
	m.mu.Lock()
	if m.life != l.number {
		m.mu.Unlock()
		return "", errors.New("killed")
	}
	if strconv.Itoa(m.incarnation) != c.Incarnation {
		m.mu.Unlock()
		return "", fmt.Errorf("%w: it is %d", ErrChanged, m.incarnation)
	}
	m.incarnation++
	m.mending = true
	cause := m.cause
	if cause == 0 {
		m.harmed++
	}
	takes := m.takes
	m.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life != l.number {
		return "", errors.New("killed")
	}
	m.mending = false
	if cause != 0 && m.cause == cause {
		m.cause = 0
		m.mended[cause]++
	}
	return "mended", nil
}

// start begins a life of the machine's programs, after a kill of those before.
func (m *machine) start(bus engine.Bus) {
	m.mu.Lock()
	m.life++
	m.mending = false
	number := m.life
	m.mu.Unlock()
	if m.stop != nil {
		m.stop()
	}
	g, err := Open(m.path, life{m, number})
	if err != nil {
		m.t.Error(err)
		return
	}
	m.gate = g
	if m.stop, err = g.Serve(bus, "host"); err != nil {
		m.t.Error(err)
	}
}

// note keeps the order of the terms that are obeyed.
func (m *machine) note(name string) {
	m.gate.mu.Lock()
	term := m.gate.state.Obeyed[name]
	m.gate.mu.Unlock()
	if last := len(m.obeyed) - 1; term != (lease.Term{}) && (last < 0 || m.obeyed[last] != term) {
		if last >= 0 && m.obeyed[last].Epoch >= term.Epoch {
			m.t.Errorf("%+v was obeyed after %+v", term, m.obeyed[last])
		}
		m.obeyed = append(m.obeyed, term)
	}
}

package e2e

import (
	"sync"
	"testing"
	"time"
)

// outcome is what came of one cell, as the document tells it.
type outcome struct {
	era, version string            // the client's side of the conversation; "" if it never came about
	passed       map[string]bool   // by the trial's name
	impossible   map[string]string // trials that one side has no means for, and why
}

// bridged says whether the two sides spoke different eras.
func (o outcome) bridged(c cell) bool { return c.server.era != "dual" && c.server.era != o.era }

// board collects the outcomes of all cells.
type board struct {
	mu    sync.Mutex
	cells map[string]outcome
	slow  []cell // connected too late while others ran too
}

func (b *board) put(c cell, o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cells[c.name()] = o
}

// late notes a cell whose connection is to be timed once more, alone.
func (b *board) late(c cell) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow = append(b.slow, c)
}

// connectLimit is the longest time that a client may wait for its handshake: the shortest patience of a real client,
// with room for two starts of a server that dies of a probe.
const connectLimit = 3 * time.Second

// TestBridge: every client with every server, over `outlive run` and over the gateway's HTTP, and again after kills of
// the server. What comes of it must be what docs/COMPATIBILITY.md says.
//
//	E2E_WRITE_COMPATIBILITY=1 e2e/run.sh -run TestBridge    writes the document
func TestBridge(t *testing.T) {
	b := &board{cells: map[string]outcome{}}
	for _, lane := range lanes {
		t.Run(lane.key, func(t *testing.T) {
			for _, c := range cells() {
				if c.lane != lane.key {
					continue
				}
				t.Run(c.client.key+"×"+c.server.key, func(t *testing.T) {
					t.Parallel()
					b.play(t, c)
				})
			}
		})
	}
	for _, c := range b.slow {
		t.Run("alone/"+c.name(), c.connectsInTime)
	}
}

// play connects one client to one server and makes every trial on that one connection.
func (b *board) play(t *testing.T, c cell) {
	began := time.Now()
	o := outcome{passed: map[string]bool{}, impossible: map[string]string{}}
	defer func() { b.put(c, o) }()
	s, g := c.open(t)
	o.era, o.version = s.hello.Era, s.hello.Version
	if c.client.era != "dual" && o.era != c.client.era {
		t.Errorf("connected as %s (%s) although it speaks %s only", o.era, o.version, c.client.era)
	}
	for _, trial := range trialsOf(c) {
		if reason := impossible(c, o.era, trial.name); reason != "" {
			o.impossible[trial.name] = reason
			continue
		}
		s.run(t, trial.name, func(t *testing.T) {
			trial.run(t, s)
			o.passed[trial.name] = !t.Failed() // not reached after a fatal failure
		})
	}
	s.run(t, "close", func(t *testing.T) { c.shut(t, s, g) })
	if s.hello.MS >= int(connectLimit.Milliseconds()) {
		b.late(c)
	}
	t.Logf("%s %s, connected in %d ms, all of it in %d ms", o.era, o.version, s.hello.MS, time.Since(began).Milliseconds())
}

// connectsInTime connects again, with the machine to itself.
func (c cell) connectsInTime(t *testing.T) {
	s, g := c.open(t)
	if limit := int(connectLimit.Milliseconds()); s.hello.MS >= limit {
		t.Errorf("connected after %d ms, want less than %d", s.hello.MS, limit)
	}
	s.depart(t)
	if g != nil {
		g.stop(t)
	}
}

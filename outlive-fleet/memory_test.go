package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
)

// inMemory is a machine's connection to a fleet in memory, which can be lost, and notes when what was written.
type inMemory struct {
	*enginemem.Engine

	mu      sync.Mutex
	away    bool     // there is no connection
	refuses []string // tables that take nothing
	writes  []wrote
}

type wrote struct {
	table string
	at    time.Time
}

var errRefuses = errors.New("the registry takes nothing")

// Connected implements connection.
func (e *inMemory) Connected() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.away
}

// set says whether there is a connection, and which tables take nothing.
func (e *inMemory) set(away bool, refuses ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.away, e.refuses = away, refuses
}

// Get implements engine.Registry.
func (e *inMemory) Get(ctx context.Context, key string) (engine.Entry, error) {
	if !e.Connected() {
		return engine.Entry{}, errRefuses
	}
	return e.Engine.Get(ctx, key)
}

// CAS implements engine.Registry.
func (e *inMemory) CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error) {
	if !e.Connected() {
		return 0, errRefuses
	}
	return e.Engine.CAS(ctx, key, value, before)
}

// Put implements engine.Registry.
func (e *inMemory) Put(ctx context.Context, key string, value []byte) (engine.Revision, error) {
	table, _, _ := strings.Cut(key, ".")
	e.mu.Lock()
	e.writes = append(e.writes, wrote{table, time.Now()})
	refused := e.away || slices.Contains(e.refuses, table)
	e.mu.Unlock()
	if refused {
		return 0, errRefuses
	}
	return e.Engine.Put(ctx, key, value)
}

// tried are the times since a moment at which a table was written to, or would have been.
func (e *inMemory) tried(table string, since time.Time) (at []time.Duration) {
	synctest.Wait() // what is due at this moment is done
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.writes {
		if w.table == table && !w.at.Before(since) {
			at = append(at, w.at.Sub(since))
		}
	}
	return at
}

// memberIn is a machine of a fleet in memory. Nothing of it runs.
func memberIn(fleet *enginemem.Engine, name, dir string) (*member, *inMemory) {
	e := &inMemory{Engine: fleet}
	m := &member{settings: &settings{state: dir}, membership: membership{Host: name}, engine: e, log: slog.New(slog.DiscardHandler)}
	m.link.connected, m.link.at = true, time.Now()
	m.publisher, m.view, m.jobs = newPublisher(m), newView(m), newJobs(m)
	m.judging = &judging{m: m, herald: newHerald(m)}
	return m, e
}

package sessionstore

import (
	"io/fs"
	"maps"
	"sync"
	"time"
)

// Entry is a record with its key.
type Entry struct {
	Key    string    `json:"key"`
	Record []byte    `json:"record"`
	Until  time.Time `json:"until"`
}

// Memory is a store that lasts as long as the process. The zero value is empty.
type Memory struct {
	mu      sync.Mutex
	entries map[string]Entry
	cleared time.Time
}

// Load returns a record; an error that wraps [fs.ErrNotExist] says that there is none that is valid.
func (m *Memory) Load(key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[key]
	if !ok || !time.Now().Before(e.Until) {
		return nil, fs.ErrNotExist
	}
	return e.Record, nil
}

// Save stores a record until a time, in place of an earlier one. It keeps record. It does not fail.
func (m *Memory) Save(key string, record []byte, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries == nil {
		m.entries = map[string]Entry{}
	}
	m.entries[key] = Entry{key, record, until}
	if now := time.Now(); now.Sub(m.cleared) >= clearEvery {
		m.cleared = now
		maps.DeleteFunc(m.entries, func(_ string, e Entry) bool { return !now.Before(e.Until) })
	}
	return nil
}

// Drop removes a record. It does not fail.
func (m *Memory) Drop(key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
	return nil
}

// Entries returns everything in the store, in no order.
func (m *Memory) Entries() []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Entry, 0, len(m.entries))
	for _, e := range m.entries {
		all = append(all, e)
	}
	return all
}

package sessionstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

const (
	// clearEvery is how often records that are no longer valid are removed.
	clearEvery = 10 * time.Minute
	// logMost is the longest log that is read, in bytes.
	logMost = 1 << 30
	// outdatedMost is how much of the log may be outdated, in bytes, if that is more than half of it.
	outdatedMost = 1 << 20
)

// File is a store in a log file, with mode 0600 in a directory with mode 0700. One process uses it at a time.
type File struct {
	path string
	most int

	mu      sync.Mutex
	log     *os.File // for reading and appending
	size    int64    // of the log
	lines   map[string]line
	live    int64 // bytes of those lines
	cleared time.Time
}

// line is where in the log a valid record is.
type line struct {
	at, size int64
	until    time.Time
}

// change is one line of the log.
type change struct {
	Key    string          `json:"key"`
	Until  time.Time       `json:"until,omitzero"`
	Record json.RawMessage `json:"record,omitempty"` // none: the session has ended
}

// Open opens the log at path for at most so many records; missing directories are created. Of more records those that end
// first are removed. The caller closes it.
func Open(path string, most int) (*File, error) {
	f := &File{path: path, most: most}
	dir := filepath.Dir(path)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700) // it may be older; and it must be ours
	}
	if err == nil {
		err = f.read()
	}
	if err != nil {
		return nil, fmt.Errorf("open the session store: %w", err)
	}
	return f, nil
}

// read reads the log, and writes it anew without what is outdated.
func (f *File) read() error {
	now := time.Now()
	if err := atomicfile.Sweep(f.path, now); err != nil { // of what killed processes have left
		return err
	}
	text, err := atomicfile.Read(f.path, logMost)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	latest := map[string]change{}
	for one := range bytes.Lines(text) {
		var c change
		if json.Unmarshal(one, &c) != nil {
			continue // a process was killed while it wrote this line
		}
		if delete(latest, c.Key); c.Record != nil && now.Before(c.Until) {
			latest[c.Key] = c
		}
	}
	all := make([]change, 0, len(latest))
	for _, c := range latest {
		all = append(all, c)
	}
	return f.writeAnew(all, now)
}

// writeAnew replaces the log by one of these records. The lock is held, or nobody else has the store yet.
func (f *File) writeAnew(all []change, now time.Time) error {
	slices.SortFunc(all, func(a, b change) int { return b.Until.Compare(a.Until) })
	all = all[:min(len(all), f.most)]
	var text []byte
	lines := make(map[string]line, len(all))
	for _, c := range all {
		one := c.line()
		lines[c.Key] = line{int64(len(text)), int64(len(one)), c.Until}
		text = append(text, one...)
	}
	log, err := f.replace(text)
	if err != nil {
		return err
	}
	f.log, f.lines, f.size, f.live, f.cleared = log, lines, int64(len(text)), int64(len(text)), now
	return nil
}

func openLog(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0) }

// line is the change as it stands in the log.
func (c change) line() []byte {
	text, _ := json.Marshal(c) // it fails only for a record that is no JSON, which Save refuses
	return append(text, '\n')
}

// Load returns a record; an error that wraps [fs.ErrNotExist] says that there is none that is valid.
func (f *File) Load(key string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.lines[key]
	if !ok || !time.Now().Before(l.until) {
		return nil, fs.ErrNotExist
	}
	c, err := f.at(l)
	return c.Record, err
}

func (f *File) at(l line) (c change, err error) {
	text := make([]byte, l.size)
	if _, err = f.log.ReadAt(text, l.at); err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		err = fmt.Errorf("load a session: %w", err)
	}
	return c, err
}

// Save stores a record until a time, in place of an earlier one. It is not synced to disk: a killed process loses
// nothing that Save has returned from, a loss of power may lose the last seconds.
func (f *File) Save(key string, record []byte, until time.Time) error {
	if !json.Valid(record) {
		return fmt.Errorf("save a session: %q is no JSON", record)
	}
	return f.append(change{key, until.Round(0), record})
}

// Drop removes a record, if there is one.
func (f *File) Drop(key string) error {
	f.mu.Lock()
	_, ok := f.lines[key]
	f.mu.Unlock()
	if !ok {
		return nil
	}
	return f.append(change{Key: key})
}

func (f *File) append(c change) error {
	text := c.line()
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.log.Write(text)
	at := f.size
	f.size += int64(n)
	if err != nil {
		if n > 0 { // what comes next must begin a line
			if m, err := f.log.Write([]byte("\n")); err == nil {
				f.size += int64(m)
			}
		}
		return fmt.Errorf("save a session: %w", err)
	}
	f.live -= f.lines[c.Key].size
	delete(f.lines, c.Key)
	if c.Record != nil {
		f.lines[c.Key] = line{at, int64(n), c.Until}
		f.live += int64(n)
	}
	return f.clear(time.Now())
}

// clear writes the log anew if too much of it is outdated, or if it has too many records. The lock is held.
func (f *File) clear(now time.Time) error {
	outdated := f.size - f.live
	if outdated <= max(outdatedMost, f.live) && len(f.lines) <= f.most+f.most/8 && now.Sub(f.cleared) < clearEvery {
		return nil
	}
	all := make([]change, 0, len(f.lines))
	for _, l := range f.lines {
		if !now.Before(l.until) {
			continue
		}
		c, err := f.at(l)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	if err := f.writeAnew(all, now); err != nil {
		f.cleared = now // it is tried again later, and the old log goes on
		return fmt.Errorf("clear the session store: %w", err)
	}
	return nil
}

// Close closes the log. Nothing may be called afterwards.
func (f *File) Close() error { return f.log.Close() }

package sessionstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

// Entry is a record with its key.
type Entry struct {
	Key    string    `json:"key"`
	Record []byte    `json:"record"`
	Until  time.Time `json:"until"`
}

// Store keeps records in a log file, with mode 0600 in a directory with mode 0700. One process uses it at a time.
//
// What the disk does not take stays in memory, and is written when the disk takes something again. Without a log all of it stays there.
type Store struct {
	path string // "": there is no log
	most int

	mu      sync.Mutex
	log     *os.File // for reading and appending; nil: it could not be opened yet
	size    int64    // of the log
	torn    bool     // the log ends within a line
	damaged int      // lines that were no changes when the log was read
	lines   map[string]line
	live    int64             // bytes of those lines
	unsaved map[string]change // what was not written, by key
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

// line is the change as it stands in the log.
func (c change) line() []byte {
	text, _ := json.Marshal(c) // it fails only for a record that is no JSON, which Save refuses
	return append(text, '\n')
}

// New returns a store in the log at path, for at most about so many records: of more those that end first are removed. "": a store that
// lasts as long as the process, for any number. The caller closes it.
func New(path string, most int) *Store {
	return &Store{path: path, most: most, lines: map[string]line{}, unsaved: map[string]change{}}
}

// Open reads the log; missing directories are created. After an error the store can be used all the same: it has what could
// be read, and tries again to open or write the log with each change.
func (f *Store) Open() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

// Damaged is how many lines of the log were no records when it was opened.
func (f *Store) Damaged() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.damaged
}

// open reads the log, if that has not been done, and writes it anew without what is outdated. The lock is held.
func (f *Store) open() error {
	if f.log != nil || f.path == "" {
		return nil
	}
	now := time.Now()
	err := f.read(now)
	if err == nil {
		err = f.writeAnew(now)
	}
	if err != nil {
		return fmt.Errorf("open the session store: %w", err)
	}
	return nil
}

// seeCut has the log read again if it was changed from outside: its records are at other places then. The lock is held.
func (f *Store) seeCut() {
	if f.log == nil {
		return
	}
	if info, err := f.log.Stat(); err == nil && info.Size() != f.size {
		_ = f.log.Close() // every line was written
		f.log = nil
	}
}

// read finds the valid records of the log.
func (f *Store) read(now time.Time) error {
	dir := filepath.Dir(f.path)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700) // it may be older; and it must be ours
	}
	if err == nil {
		err = atomicfile.Sweep(f.path, now) // of what killed processes have left
	}
	if err != nil {
		return err
	}
	text, err := atomicfile.Read(f.path, logMost)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	log, err := openLog(f.path)
	if err != nil {
		return err
	}
	f.log, f.size, f.torn = log, int64(len(text)), len(text) > 0 && text[len(text)-1] != '\n'
	f.lines, f.live = map[string]line{}, 0
	at := int64(0)
	for one := range bytes.Lines(text) {
		size := int64(len(one))
		f.take(one, line{at: at, size: size}, now)
		at += size
	}
	return nil
}

// take notes what one line of the log says.
func (f *Store) take(text []byte, at line, now time.Time) {
	var c change
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return
	case json.Unmarshal(text, &c) != nil || c.Key == "":
		f.damaged++ // such as one that a process was writing when it was killed
		return
	}
	at.until = c.Until
	f.forget(c.Key)
	if c.Record != nil && now.Before(c.Until) {
		f.lines[c.Key] = at
		f.live += at.size
	}
}

func (f *Store) forget(key string) {
	f.live -= f.lines[key].size
	delete(f.lines, key)
}

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
}

// writeAnew replaces the log by one of the valid records. If it fails, the old one goes on. The lock is held.
func (f *Store) writeAnew(now time.Time) error {
	f.cleared = now
	all, err := f.valid(now)
	if err != nil {
		return err
	}
	var text []byte
	lines := make(map[string]line, len(all))
	for _, c := range all {
		one := c.line()
		lines[c.Key] = line{int64(len(text)), int64(len(one)), c.Until}
		text = append(text, one...)
	}
	if err := f.replace(text); err != nil {
		return err
	}
	f.lines, f.size, f.live, f.torn = lines, int64(len(text)), int64(len(text)), false
	clear(f.unsaved)
	return nil
}

// replace writes the log anew. It is closed meanwhile: Windows does not replace a file that is open.
func (f *Store) replace(text []byte) error {
	_ = f.log.Close() // every line was written
	f.log = nil
	err := atomicfile.Write(f.path, text)
	log, openErr := openLog(f.path)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	f.log = log
	return err
}

// valid are the records that count, those that end last first.
func (f *Store) valid(now time.Time) ([]change, error) {
	all := make([]change, 0, len(f.lines)+len(f.unsaved))
	for key, l := range f.lines {
		if _, newer := f.unsaved[key]; newer || !now.Before(l.until) {
			continue
		}
		c, err := f.at(l)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	for _, c := range f.unsaved {
		if c.Record != nil && now.Before(c.Until) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b change) int { return b.Until.Compare(a.Until) })
	return all[:min(len(all), f.most)], nil
}

// Load returns a record; an error that wraps [fs.ErrNotExist] says that there is none that is valid, or that can be read.
func (f *Store) Load(key string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.open() // without the log there is what was saved since
	now := time.Now()
	if c, ok := f.unsaved[key]; ok {
		if c.Record == nil || !now.Before(c.Until) {
			return nil, fs.ErrNotExist
		}
		return c.Record, nil
	}
	l, ok := f.lines[key]
	if !ok || !now.Before(l.until) {
		return nil, fs.ErrNotExist
	}
	c, err := f.at(l)
	return c.Record, err
}

func (f *Store) at(l line) (c change, err error) {
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
// nothing that Save has returned from without an error, a loss of power may lose the last seconds.
func (f *Store) Save(key string, record []byte, until time.Time) error {
	if !json.Valid(record) {
		return fmt.Errorf("save a session: %q is no JSON", record)
	}
	return f.append(change{key, until.Round(0), record})
}

// Drop removes a record, if there is one.
func (f *Store) Drop(key string) error {
	f.mu.Lock()
	_, stored := f.lines[key]
	_, unsaved := f.unsaved[key]
	f.mu.Unlock()
	if !stored && !unsaved {
		return nil
	}
	return f.append(change{Key: key})
}

// append writes a change, and those that could not be written before.
func (f *Store) append(c change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.path == "" {
		f.remember(c, now)
		return nil
	}
	f.note(c, now)
	f.seeCut()
	if err := f.open(); err != nil && f.log == nil {
		return err
	}
	if err := f.write(c); err != nil {
		return err
	}
	for _, c := range f.unsaved {
		if err := f.write(c); err != nil {
			return err
		}
	}
	return f.clear(time.Now())
}

// remember keeps a change for as long as it is valid. The lock is held.
func (f *Store) remember(c change, now time.Time) {
	f.unsaved[c.Key] = c
	if c.Record == nil {
		delete(f.unsaved, c.Key)
	}
	if now.Sub(f.cleared) >= clearEvery {
		f.cleared = now
		maps.DeleteFunc(f.unsaved, func(_ string, c change) bool { return !now.Before(c.Until) })
	}
}

// note keeps a change until it is written, if there is room. The lock is held.
func (f *Store) note(c change, now time.Time) {
	if len(f.unsaved) >= f.most {
		maps.DeleteFunc(f.unsaved, func(_ string, c change) bool { return c.Record != nil && !now.Before(c.Until) })
	}
	if _, known := f.unsaved[c.Key]; known || len(f.unsaved) < f.most {
		f.unsaved[c.Key] = c
	}
}

// Unsaved is what could not be written, in no order; of sessions that have ended without a record.
func (f *Store) Unsaved() []Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Entry, 0, len(f.unsaved))
	for _, c := range f.unsaved {
		all = append(all, Entry{c.Key, c.Record, c.Until})
	}
	return all
}

// write appends a change to the log. The lock is held.
func (f *Store) write(c change) error {
	text, at := c.line(), f.size
	if f.torn { // what comes next must begin a line
		text = append([]byte{'\n'}, text...)
		at++
	}
	n, err := f.log.Write(text)
	if err != nil && n > 0 && f.log.Truncate(f.size) == nil {
		n = 0
	}
	f.size += int64(n)
	if err != nil {
		f.torn = f.torn || n > 0
		return fmt.Errorf("save a session: %w", err)
	}
	f.torn = false
	delete(f.unsaved, c.Key)
	f.forget(c.Key)
	if c.Record != nil {
		f.lines[c.Key] = line{at, f.size - at, c.Until}
		f.live += f.size - at
	}
	return nil
}

// clear writes the log anew if too much of it is outdated, or if it has too many records. The lock is held.
func (f *Store) clear(now time.Time) error {
	outdated := f.size - f.live
	if outdated <= max(outdatedMost, f.live) && len(f.lines) <= f.most+f.most/8 && now.Sub(f.cleared) < clearEvery {
		return nil
	}
	if err := f.writeAnew(now); err != nil { // it is tried again later
		return fmt.Errorf("clear the session store: %w", err)
	}
	return nil
}

// Close closes the log. Nothing may be called afterwards.
func (f *Store) Close() error {
	if f.log == nil {
		return nil
	}
	return f.log.Close()
}

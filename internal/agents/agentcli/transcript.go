package agentcli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// parser parses one vendor's transcripts.
type parser interface {
	line(text []byte) bool // reports whether the line is relevant
	now() *turn
	what() *about
}

// about is what a transcript says about its session as a whole.
type about struct {
	id, dir, version string
	subagent         bool
}

func (a *about) what() *about { return a }

// learn keeps the values with which a session began: Claude Code repeats them in every line, and a later line has the
// directory to which the agent has changed.
func (a *about) learn(id, dir, version string) {
	if a.id == "" {
		a.id = id
	}
	if a.dir == "" && filepath.IsAbs(dir) {
		a.dir = filepath.Clean(dir)
	}
	if version != "" {
		a.version = version
	}
}

const (
	firstLook  = 512 << 10 // bytes of a transcript's end that are read at first
	deepestEnd = 16 << 20  // and at most, if they do not show what is open
)

// errOld is the error for a file that is too old to be opened.
var errOld = errors.New("not written for long")

// transcript is a file of records that is read incrementally.
type transcript struct {
	tail    tail
	fresh   func() parser
	parser  parser
	seq     int64
	partial bool
	whole   bool   // it is one value that is rewritten, not lines
	looked  uint64 // the look that last used it
}

func newTranscript(path string, fresh func() parser) *transcript {
	return &transcript{tail: tail{path: path}, fresh: fresh, parser: fresh(), whole: filepath.Ext(path) == ".json"}
}

// look reads what is new. A new file that was last written before since is not opened: the error is [errOld]. A known
// one is always read further. If there is no such file the error wraps [fs.ErrNotExist].
func (t *transcript) look(since time.Time) error {
	info, err := os.Lstat(t.tail.path)
	if err != nil {
		return err
	}
	if t.tail.unchanged(info) {
		return nil
	}
	if t.tail.info == nil && info.ModTime().Before(since) {
		return errOld
	}
	file, info, err := openRegular(t.tail.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if t.whole {
		return t.readWhole(file, info)
	}
	if t.tail.continues(file, info) && info.Size()-t.tail.offset <= deepestEnd {
		return t.tail.read(file, info, t.take)
	}
	return t.begin(file, info)
}

// begin reads the end of a new file, and further back until it is clear what is open.
func (t *transcript) begin(file *os.File, info fs.FileInfo) error {
	t.tail.replaced()
	for window := int64(firstLook); ; window *= 4 {
		t.tail.begin(max(0, info.Size()-window))
		t.parser = t.fresh()
		t.partial = t.tail.offset > 0
		if t.partial {
			*t.parser.what() = learnHead(file, t.fresh())
		}
		if err := t.tail.read(file, info, t.take); err != nil {
			return err
		}
		if !t.partial || window >= deepestEnd || t.parser.now().settled() {
			return nil
		}
	}
}

// readWhole reads a file that is one value. A partly written one is ignored.
func (t *transcript) readWhole(file *os.File, info fs.FileInfo) error {
	if info.Size() > deepestEnd {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(file, deepestEnd))
	if err != nil {
		return fmt.Errorf("read %s: %w", t.tail.path, err)
	}
	if p := t.fresh(); p.line(text) {
		t.parser, t.tail.info = p, info
		t.seq = max(t.seq+1, info.ModTime().UnixMilli())
	}
	return nil
}

func (t *transcript) take(line []byte, end int64) {
	if t.parser.line(line) {
		t.seq = max(t.seq, end)
	}
}

// session is what the file shows.
func (t *transcript) session(kind Kind) Session {
	a := t.parser.what()
	now := t.parser.now()
	s := Session{Kind: kind, ID: a.id, Dir: a.dir, Version: a.version, File: t.tail.path, Subagent: a.subagent, Turn: now.snapshot()}
	s.Turn.Sequence, s.Turn.Partial = t.seq, t.partial
	s.Status, s.StatusAt = now.status()
	return s
}

// missing reports an error that means that the file does not exist, not that it cannot be read.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) || errors.Is(err, errOld)
}

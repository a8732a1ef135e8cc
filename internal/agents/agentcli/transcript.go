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

// parser is one vendor's understanding of a transcript.
type parser interface {
	line(text []byte) bool // tells whether the line means something
	now() *turn
	what() *about
}

// about is what a transcript says of its session.
type about struct {
	id, dir, version string
	subagent         bool
}

func (a *about) what() *about { return a }

// learn keeps what a session began with: Claude Code repeats it in every line, and the directory of a line is where the
// agent has gone to since.
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
	deepestEnd = 16 << 20  // and at most, when nothing in them says what is open
)

// errOld is the error for a file that is too old to be opened.
var errOld = errors.New("not written for long")

// transcript is a file of records that is read on from look to look.
type transcript struct {
	tail    tail
	fresh   func() parser
	parser  parser
	seq     int64
	partial bool
	whole   bool   // it is one value that is rewritten, not lines
	looked  uint64 // the look at which somebody last wanted it
}

func newTranscript(path string, fresh func() parser) *transcript {
	return &transcript{tail: tail{path: path}, fresh: fresh, parser: fresh(), whole: filepath.Ext(path) == ".json"}
}

// look reads what is new. A file that was not written for some time is not opened; a known one is read further. The
// error is [errOld] then, and wraps [fs.ErrNotExist] when there is no such file.
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

// begin reads a file that is new, at its end, and further back until it is clear what is open.
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

// readWhole reads a file that is one value. One that is half written says nothing new.
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

// missing is an error that means that there is nothing to be seen, not that it cannot be seen.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) || errors.Is(err, errOld)
}

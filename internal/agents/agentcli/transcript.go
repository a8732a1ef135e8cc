package agentcli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// parser parses one vendor's transcripts.
type parser interface {
	line(text []byte) bool // reports whether the line is relevant
	now() *turn
	what() *about
}

// about is what a transcript says about its session as a whole.
type about struct {
	id, dir  string
	subagent bool
}

func (a *about) what() *about { return a }

// learn keeps the values with which a session began: Claude Code repeats them in every line, and a later line has the
// directory to which the agent has changed.
func (a *about) learn(id, dir string) {
	if a.id == "" {
		a.id = id
	}
	if a.dir == "" && filepath.IsAbs(dir) {
		a.dir = filepath.Clean(dir)
	}
}

const (
	firstLook  = 512 << 10 // bytes of a transcript's end that are read at first, besides the rest of a long line
	deepestEnd = 16 << 20  // and at most, if they do not show what is open
	caughtUp   = 64 << 20  // bytes up to which a known transcript is read on; beyond them it is begun anew at its end
)

// errOld is the error for a file that is too old to be opened.
var errOld = errors.New("not written for long")

// errUnread is wrapped by the errors about something that was not read because there is too much of it. What it would
// have shown is not known, so that it is evidence that is missing.
var errUnread = errors.New("not read completely")

// transcript is a file of records that is read incrementally.
type transcript struct {
	tail    tail
	fresh   func() parser
	parser  parser
	seq     int64
	partial bool
	unread  string // what could not be read; "": nothing
	known   int    // how often the turn was known when that happened
	looked  uint64 // the look that last used it
}

func newTranscript(path string, fresh func() parser) *transcript {
	return &transcript{tail: tail{path: path}, fresh: fresh, parser: fresh()}
}

// look reads what is new. A new file that was last written before since is not opened: the error is [errOld]. A known
// one is always read further. If there is no such file the error wraps [fs.ErrNotExist].
func (t *transcript) look(since time.Time) error {
	info, err := os.Lstat(t.tail.path)
	if err != nil {
		return err
	}
	if sameFile(info, t.tail.info) {
		return nil
	}
	if t.tail.info == nil && info.ModTime().Before(since) {
		return errOld
	}
	file, info, err := atomicfile.OpenPlain(t.tail.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if !t.tail.continues(file, info) || info.Size()-t.tail.at > caughtUp {
		return t.begin(file, info)
	}
	if err := t.tail.read(file, info.Size(), t.take); err != nil {
		return err
	}
	return t.tail.settle(file, info)
}

// begin reads the end of a new file, and further back until it is clear what is open. Each step goes back from the
// beginning of a line, however long the last lines are.
func (t *transcript) begin(file *os.File, info fs.FileInfo) error {
	t.tail.replaced()
	start := info.Size()
	for step, sum := int64(firstLook), int64(0); ; step *= 3 {
		from, midway, err := lineStart(file, max(0, start-step))
		if err != nil {
			return fmt.Errorf("read %s: %w", t.tail.path, err)
		}
		start, sum = from, sum+step
		t.tail.begin(start, midway)
		t.parser, t.unread = t.fresh(), ""
		if t.partial = start > 0; t.partial {
			*t.parser.what() = learnHead(file, info.Size(), t.fresh())
		}
		if err := t.tail.read(file, info.Size(), t.take); err != nil {
			return err
		}
		if !t.partial || midway || sum >= deepestEnd || t.parser.now().settled() {
			return t.tail.settle(file, info)
		}
	}
}

// take handles a line; nil: one that could not be read.
func (t *transcript) take(line []byte, end int64) bool {
	if line == nil {
		t.unread, t.known = "one of its lines", t.parser.now().known
	} else if t.parser.line(line) {
		t.seq = max(t.seq, end)
	}
	return true
}

// leftOut says what was not read and may change what the transcript shows; "": nothing but its last line, if that is not
// complete. What came before an answer of the model, or before the beginning or the end of a turn, changes nothing any more.
func (t *transcript) leftOut() string {
	now := t.parser.now()
	switch {
	case t.unread != "" && t.known == now.known:
		return t.unread
	case t.partial && now.known == 0:
		return fmt.Sprintf("what is before its last %d bytes", t.tail.at-t.tail.first)
	case now.overflowed:
		return fmt.Sprintf("all but the last %d of its open calls", openCalls)
	}
	return ""
}

func (t *transcript) session(kind Kind) Session {
	a := t.parser.what()
	now := t.parser.now()
	s := Session{Kind: kind, ID: a.id, Dir: a.dir, File: t.tail.path, Subagent: a.subagent, Turn: now.snapshot()}
	s.Turn.Sequence = t.seq
	switch what := t.leftOut(); {
	case what != "":
		s.Unread = fmt.Sprintf("%s: %s", t.tail.path, what)
	case t.tail.half > 0:
		s.Unread, s.Unfinished = fmt.Sprintf("%s: its last line, which is not complete after %d bytes", t.tail.path, t.tail.half), true
	}
	s.Status, s.StatusAt = now.status()
	return s
}

// missing reports an error that means that the file does not exist, not that it cannot be read.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, atomicfile.ErrIrregular) || errors.Is(err, errOld)
}

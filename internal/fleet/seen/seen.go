package seen

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
)

// Order is the last that was seen of what has one newest form, such as a machine's state.
type Order struct {
	run    string
	number uint64
}

// Newer reports whether what a run has said with a number is newer than all before, and notes it.
func (o *Order) Newer(run string, number uint64) bool {
	if run == o.run && number <= o.number {
		return false
	}
	o.run, o.number = run, number
	return true
}

// Log are the last events of a machine.
type Log struct {
	Format int    `json:"v"`
	Run    string `json:"inc"` // of the machine's program
	// Began is the number of the run's first event, First that of the first one that is kept.
	Began uint64            `json:"began"`
	First uint64            `json:"first"`
	Lines []json.RawMessage `json:"lines"`
}

// NewLog is the log of a run that has just begun.
func NewLog(format int, run string) Log { return Log{Format: format, Run: run, Began: 1, First: 1} }

// end is the number of the next event.
func (l Log) end() uint64 { return l.First + uint64(len(l.Lines)) }

// Add adds an event. So many are kept, with so many bytes in all; copies of the log stay as they are.
func (l *Log) Add(line []byte, most, bytesMost int) {
	l.Lines = append(l.Lines[:len(l.Lines):len(l.Lines)], bytes.Clone(line))
	size := 0
	for n := len(l.Lines) - 1; n >= 0; n-- {
		if size += len(l.Lines[n]); size > bytesMost || len(l.Lines)-n > most {
			l.First += uint64(n + 1)
			l.Lines = l.Lines[n+1:]
			break
		}
	}
}

// GoOn has a log that was not written yet go on with the numbers of the run before.
func (l *Log) GoOn(before Log) {
	if before.Run != "" && before.Run != l.Run && before.end() > l.Began {
		l.First += before.end() - l.Began
		l.Began = before.end()
	}
}

// Reader is how far somebody has read the events of one machine. Of the zero value that is not known yet.
type Reader struct {
	run  string
	next uint64
}

// noRun is the run of a machine that has told nothing.
const noRun = "none"

// Start begins behind what a machine has told, unless it is known where to go on.
func (r *Reader) Start(l Log) {
	if r.run == "" {
		r.run, r.next = cmp.Or(l.Run, noRun), max(l.end(), 1)
	}
}

// Take returns the events that are new, and how many before them are kept no more.
func (r *Reader) Take(l Log) (fresh []json.RawMessage, missing uint64) {
	if r.run == "" || l.Run == "" {
		return nil, 0
	}
	if l.Run != r.run {
		missing = max(l.Began, r.next) - r.next
		r.run, r.next = l.Run, max(l.Began, 1)
	}
	missing += max(l.First, r.next) - r.next
	r.next = max(r.next, l.First)
	if r.next >= l.end() {
		return nil, missing
	}
	fresh = l.Lines[r.next-l.First:]
	r.next = l.end()
	return fresh, missing
}

// String is where a reader goes on later, for [ReaderAt].
func (r Reader) String() string { return r.run + ":" + strconv.FormatUint(r.next, 10) }

// ReaderAt is the reader at a position, and what follows that after a colon.
func ReaderAt(position string) (r Reader, rest string) {
	run, number, _ := strings.Cut(position, ":")
	number, rest, _ = strings.Cut(number, ":")
	next, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return Reader{}, ""
	}
	return Reader{run, max(next, 1)}, rest
}

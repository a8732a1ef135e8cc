package streamhttp

import (
	"bytes"
	"sync"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// streamStore is shared by the streams of one session: their lock, and the limit of what is kept. A modern request has a store
// of its own.
type streamStore struct {
	mu       sync.Mutex
	maxQueue int // bytes that may wait for a reader
	maxStore int // bytes that are kept, and at most maxKept streams
	kept     []*stream
	size     int // bytes of the kept streams
	lastID   uint64
	before   uint64             // numbers up to this one were used by another process
	unended  int                // requests that have no answer yet
	loads    map[*load]struct{} // theirs
	over     bool               // the session has ended
}

// maxKept limits the resumable streams of a session: even an empty one costs memory.
const maxKept = 64

// stream is one sequence of messages to the client: those still to be written and, if it is kept, those already written.
// Messages are numbered from 1; the initial event without data has the number of the last one that was written before.
type stream struct {
	streamStore *streamStore
	endless     bool // it has no answer, and does not end by itself

	// Guarded by streamStore.mu.
	id       uint64   // on a store that keeps; 0 for one that is not kept, and for the GET stream
	due      int      // outstanding answers
	said     bool     // it has had a message that is no answer
	answered bool     // it has had an answer
	log      [][]byte // the messages number first, first+1, …
	first    uint64
	next     uint64 // the first that is not written yet
	waits    int    // bytes from next on
	reader   wake   // who writes it to a connection; nil: none
	keep     bool   // written messages are kept for another reader
	ended    bool   // it takes no more messages, and its reader ends
	load     *load  // of its requests, until they are answered; nil: it is somebody else's
	lost     bool   // its reader was too slow

	mark func(line []byte) []byte // changes an answer, if it is not nil; set before anything is sent
}

// wake holds a token when there is something to look at. Each connection that writes a stream, its reader, has one of its own, so that none
// takes another one's signal.
type wake chan struct{}

func newWake() wake { return make(wake, 1) }

// signal wakes who waits, if not nil.
func (w wake) signal() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// newStream makes a stream for due answers, with its first reader. It ends the load of the requests when they are answered;
// nil: the caller does.
func (sh *streamStore) newStream(due int, held *load) (*stream, wake) {
	r := newWake()
	s := &stream{streamStore: sh, due: due, first: 1, next: 1, reader: r}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.unended++
	if held != nil && !sh.over {
		if sh.loads == nil {
			sh.loads = make(map[*load]struct{})
		}
		s.load, held.kept = held, true
		sh.loads[held] = struct{}{}
	}
	return s, r
}

// settled ends the load of a stream. The lock is held.
func (s *stream) settled() {
	s.streamStore.unended--
	if _, ok := s.streamStore.loads[s.load]; ok {
		delete(s.streamStore.loads, s.load)
		s.load.end()
	}
}

// newEndless makes a stream without answers; it has no reader yet, and its messages are kept.
func (sh *streamStore) newEndless() *stream {
	s := &stream{streamStore: sh, endless: true, first: sh.before + 1, next: sh.before + 1}
	sh.mu.Lock()
	s.preserve(0)
	sh.mu.Unlock()
	return s
}

// Send implements Stream.
func (s *stream) Send(line []byte) {
	copied := bytes.Clone(line)
	jsonrpc.OneLine(copied) // an event's data ends with its line
	final := !s.endless && isAnswer(copied)
	if final && s.mark != nil {
		copied = s.mark(copied)
	}
	s.streamStore.mu.Lock()
	if s.ended || s.complete() || s.reader == nil && !s.keep {
		s.finish(final)
		s.streamStore.mu.Unlock()
		return
	}
	s.said, s.answered = s.said || !final, s.answered || final
	tooSlow := s.waits > s.streamStore.maxQueue // without this message: a long answer does not make its reader slow
	s.log = append(s.log, copied)
	s.waits += len(copied)
	if s.keep {
		s.streamStore.size += len(copied)
	}
	s.finish(final)
	s.reader.signal()
	if s.reader != nil && tooSlow {
		s.reader = nil // it was woken by the excess, and sees that
		if !s.keep {
			s.lost = true
			s.drop()
		}
	}
	s.streamStore.trim()
	s.streamStore.mu.Unlock()
}

// Withdraw implements Stream. A kept stream without any answer stays open: clients resume one that ends so, and report an error when they
// cannot.
func (s *stream) Withdraw(string) {
	s.streamStore.mu.Lock()
	defer s.streamStore.mu.Unlock()
	s.finish(true)
	if s.complete() && s.keep && !s.answered && !s.streamStore.over {
		s.ended = false
	}
	s.reader.signal()
}

// finish counts an answer, and ends the stream after the last. The lock is held.
func (s *stream) finish(final bool) {
	if !final || s.ended || s.complete() {
		return
	}
	if s.due--; s.due == 0 {
		s.ended = true
		s.settled()
	}
}

// complete reports whether each request of the stream was answered or withdrawn: nothing is written any more but what it holds. The lock
// is held.
func (s *stream) complete() bool { return !s.endless && s.due == 0 }

// drop ends the stream and forgets what is in it. The lock is held.
func (s *stream) drop() {
	if !s.ended && s.due > 0 {
		s.settled()
	}
	s.ended = true
	s.log, s.waits = nil, 0
	s.first, s.next = 1, 1
}

// preserve makes the stream resumable, before anything was written. The lock is held.
func (s *stream) preserve(id uint64) {
	s.keep, s.id = true, id
	s.streamStore.size += sizeOf(s.log)
	s.streamStore.kept = append(s.streamStore.kept, s)
	s.streamStore.trim()
}

// startKeeping gives the stream an id for resumption, unless it has one.
func (s *stream) startKeeping() {
	s.streamStore.mu.Lock()
	defer s.streamStore.mu.Unlock()
	if s.keep || s.endless {
		return
	}
	s.streamStore.lastID++
	s.preserve(s.streamStore.lastID)
}

// trim removes the oldest kept messages until the rest fits: first whole streams that have ended, then the beginnings of
// others. The newest message of a stream stays, since it may be the answer a client comes back for. The lock is held.
func (sh *streamStore) trim() {
	for i := 0; i < len(sh.kept) && (sh.size > sh.maxStore || len(sh.kept) > maxKept); {
		if s := sh.kept[i]; (s.ended || s.complete()) && s.reader == nil && i < len(sh.kept)-1 {
			sh.size -= sizeOf(s.log)
			s.keep = false
			s.drop()
			sh.kept = append(sh.kept[:i], sh.kept[i+1:]...)
			continue
		}
		i++
	}
	for _, s := range sh.kept {
		for sh.size > sh.maxStore && len(s.log) > 1 && (s.first < s.next || s.reader == nil) {
			s.forget()
		}
	}
}

func sizeOf(lines [][]byte) (n int) {
	for _, line := range lines {
		n += len(line)
	}
	return n
}

// forget drops the oldest message that is kept. The lock is held.
func (s *stream) forget() {
	n := len(s.log[0])
	s.streamStore.size -= n
	s.log[0] = nil
	s.log = s.log[1:]
	if s.first == s.next {
		s.next++
		s.waits -= n
	}
	s.first++
}

// batch is what a reader has to write now.
type batch struct {
	lines [][]byte
	first uint64 // the number of lines[0]
	ended bool   // nothing comes after them
	idle  bool   // nothing comes after them, and the stream stays open
	taken bool   // another reader has the stream, or this one was too slow
}

// take returns what a reader must write, and counts it as written.
func (s *stream) take(r wake) batch {
	s.streamStore.mu.Lock()
	defer s.streamStore.mu.Unlock()
	if s.reader != r {
		return batch{taken: true}
	}
	b := batch{first: s.next, ended: s.ended, idle: s.complete() && !s.ended, lines: s.log[s.next-s.first:]}
	s.next = s.first + uint64(len(s.log))
	s.waits = 0
	if s.keep {
		b.lines = append([][]byte(nil), b.lines...) // trim changes the log while they are written
	} else {
		s.first, s.log = s.next, nil
	}
	return b
}

// answers returns the messages of a stream that has ended, and ok, if all of them are answers; there are none where each request was
// withdrawn. begun says that they must be written as events: one is no answer, or there is much, or the stream is kept.
func (s *stream) answers() (all [][]byte, ok, begun bool) {
	s.streamStore.mu.Lock()
	defer s.streamStore.mu.Unlock()
	if s.ended && !s.said && !s.keep && !s.lost {
		return s.log, true, true
	}
	return nil, false, s.said || s.ended || s.waits > s.streamStore.maxQueue/2
}

// seen is a stream at one moment.
type seen struct {
	ended    bool   // it takes no more messages; some of it may still be unwritten
	answered bool   // it has had an answer
	holds    bool   // there is something to write
	written  uint64 // the number of the last message that a reader was given; 0: there was none
}

func (s *stream) look() seen {
	s.streamStore.mu.Lock()
	defer s.streamStore.mu.Unlock()
	return seen{s.ended, s.answered, s.waits > 0, s.next - 1}
}

// from makes the caller the stream's reader, after the message numbered after.
func (s *stream) from(after uint64) wake {
	s.streamStore.mu.Lock()
	defer s.streamStore.mu.Unlock()
	s.next = min(max(after+1, s.first), s.first+uint64(len(s.log)))
	s.waits = sizeOf(s.log[s.next-s.first:])
	return s.takeOver()
}

// resume makes the caller the stream's reader, of all unwritten messages.
func (s *stream) resume() wake {
	s.streamStore.mu.Lock()
	defer s.streamStore.mu.Unlock()
	return s.takeOver()
}

func (s *stream) takeOver() wake {
	s.reader.signal() // the previous reader ends
	s.reader = newWake()
	return s.reader
}

// left says that a reader has gone, unless another one has the stream. Where no client can resume it, its messages are counted, but not
// kept.
func (s *stream) left(r wake) {
	s.streamStore.mu.Lock()
	defer s.streamStore.mu.Unlock()
	if s.reader != r {
		return
	}
	if s.reader = nil; !s.keep {
		s.log, s.waits, s.first, s.next = nil, 0, 1, 1
	}
}

// Abandoned reports whether no client waits on the stream now, though one may come back.
func (s *stream) Abandoned() bool {
	s.streamStore.mu.Lock()
	defer s.streamStore.mu.Unlock()
	return s.reader == nil
}

// find returns the kept stream with an id.
func (sh *streamStore) find(id uint64) *stream {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, s := range sh.kept {
		if s.id == id {
			return s
		}
	}
	return nil
}

// end ends all kept streams and wakes their readers.
func (sh *streamStore) end() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, s := range sh.kept {
		s.ended = true
		s.reader.signal()
	}
	for l := range sh.loads {
		l.end()
	}
	sh.loads, sh.over = nil, true
}

// running reports whether a request has no answer yet.
func (sh *streamStore) running() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.unended > 0
}

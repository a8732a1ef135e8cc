package streamhttp

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// longMessage is the length from which a message is written directly instead of copied into the buffer, and a JSON body
// gets a deadline: the system's buffers take shorter ones at once.
const longMessage = 32 << 10

// buffers are reused to build events.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// eventWriter writes one event stream.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	stream  uint64 // its id, in event ids
	ids     bool   // events have ids
	alive   string // the comment that shows that the connection is alive; "": an empty one
}

// withdrawn is the comment on the stream of a request that was withdrawn. Another gateway that passes the stream on learns by it that nothing
// more comes.
const withdrawn = ": withdrawn\n\n"

// begin sends the header. A stream with ids begins with an event without data, so that a client that loses the
// connection at once can resume (SEP-1699), after the message of the number after; clients before 2025-11-25 do not expect it.
func (e *eventWriter) begin(prime bool, after uint64) error {
	h := e.w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
	if !prime {
		return e.flush(nil)
	}
	return e.flush(append(e.appendID(nil, after), "data: \n\n"...))
}

// write sends messages; first is the number of the first. The last ones of a stream leave with its end, which net/http writes: to whoever
// passes the stream on, one that has its answer and not its end looks as if its gateway was lost before it had answered.
func (e *eventWriter) write(lines [][]byte, first uint64, last bool) error {
	kept := buffers.Get().(*[]byte)
	defer buffers.Put(kept)
	buf := (*kept)[:0]
	e.deadline()
	for i, line := range lines {
		buf = append(buf, "event: message\n"...)
		if e.ids {
			buf = e.appendID(buf, first+uint64(i))
		}
		buf = append(buf, "data: "...)
		if len(line) < longMessage {
			buf = append(buf, line...)
		} else {
			if _, err := e.w.Write(buf); err != nil {
				return err
			}
			if _, err := e.w.Write(line); err != nil {
				return err
			}
			buf = buf[:0]
		}
		buf = append(buf, "\n\n"...)
	}
	*kept = buf
	if last {
		_, err := e.w.Write(buf)
		return err
	}
	return e.flush(buf)
}

// comment shows that the connection is alive.
func (e *eventWriter) comment() error { return e.flush([]byte(cmp.Or(e.alive, ": \n\n"))) }

func (e *eventWriter) appendID(buf []byte, number uint64) []byte {
	buf = append(buf, "id: "...)
	buf = strconv.AppendUint(buf, e.stream, 10)
	buf = append(buf, '-')
	buf = strconv.AppendUint(buf, number, 10)
	return append(buf, '\n')
}

func (e *eventWriter) flush(buf []byte) error {
	e.deadline()
	if _, err := e.w.Write(buf); err != nil {
		return err
	}
	return e.control.Flush()
}

// deadline bounds the next writes. A test's recorder has none.
func (e *eventWriter) deadline() { _ = e.control.SetWriteDeadline(time.Now().Add(e.timeout)) }

// end removes the deadline: the connection may serve other requests.
func (e *eventWriter) end() { _ = e.control.SetWriteDeadline(time.Time{}) }

// parseEventID reads the id of an event: that of its stream, and its number there.
func parseEventID(id string) (stream, number uint64, ok bool) {
	a, b, found := strings.Cut(id, "-")
	stream, errA := strconv.ParseUint(a, 10, 64)
	number, errB := strconv.ParseUint(b, 10, 64)
	return stream, number, found && errA == nil && errB == nil
}

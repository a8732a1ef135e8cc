package remote

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// sseEvent is one server-sent event of the HTML standard, with the fields that matter here.
type sseEvent struct {
	name    string // "" is message
	data    []byte // lines joined by \n; the receiver's to keep
	hasData bool
	tooLong bool // its data was too long and was discarded
}

// sseReader reads a text/event-stream with bounded memory.
type sseReader struct {
	from   *bufio.Reader
	max    int // longest data of one event in bytes
	lastID string
	retry  time.Duration // the server's last retry time; negative: none

	afterCR bool // a following line feed belongs to the previous line
	begun   bool // the position of the byte order mark is over
	line    []byte
}

func newSSEReader(from io.Reader, max int) *sseReader {
	return &sseReader{from: bufio.NewReaderSize(from, 8<<10), max: max, retry: -1}
}

// longestRetry is the longest retry time that is accepted.
const longestRetry = 5 * time.Minute

// next returns the next event, even without data, since it may have the id to resume from. io.EOF: the stream ended
// properly. Text after the last blank line is discarded, as the standard requires, unless it is a whole message: some servers
// end the stream without that line.
func (r *sseReader) next() (sseEvent, error) {
	var e sseEvent
	any, id := false, r.lastID
	for {
		line, err := r.readLine()
		switch {
		case err == io.EOF && e.isMessage(), err == nil && len(line) == 0 && any:
			r.lastID = id
			return e, nil
		case err != nil:
			return sseEvent{}, err
		case len(line) == 0:
			continue
		}
		key, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(key) {
		case "data":
			any = true
			e.append(value, r.max)
		case "event":
			any, e.name = true, string(value)
		case "id":
			if !bytes.ContainsRune(value, 0) && len(value) <= min(maxEventID, r.max) { // a longer one may be truncated
				any, id = true, string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				any, r.retry = true, min(time.Duration(ms)*time.Millisecond, longestRetry)
			}
		}
	}
}

// isMessage reports whether the data so far is a message from its beginning to its end.
func (e *sseEvent) isMessage() bool {
	var envelope jsonrpc.Envelope
	return e.hasData && !e.tooLong && envelope.Scan(jsonrpc.Trim(e.data)) == nil
}

// maxEventID is the longest event id kept, in bytes: it goes into a header.
const maxEventID = 4 << 10

func (e *sseEvent) append(value []byte, max int) {
	switch {
	case e.tooLong:
	case len(e.data)+len(value)+1 > max:
		e.data, e.tooLong = nil, true
	default:
		if e.hasData {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
	}
	e.hasData = true
}

// readLine returns a line without its end, valid until the next call. What is behind the last end of line is one, too. Of a line
// longer than any allowed event it returns the beginning, which is long enough to be refused.
func (r *sseReader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		switch _, err := r.from.Peek(1); {
		case err == io.EOF && len(r.line) > 0:
			return r.whole(), nil
		case err != nil:
			return nil, err
		}
		text, _ := r.from.Peek(r.from.Buffered())
		if r.afterCR {
			r.afterCR = false
			if text[0] == '\n' {
				_, _ = r.from.Discard(1)
				continue
			}
		}
		i := endOfLine(text)
		if i < 0 {
			r.keep(text)
			_, _ = r.from.Discard(len(text))
			continue
		}
		r.keep(text[:i])
		r.afterCR = text[i] == '\r'
		_, _ = r.from.Discard(i + 1)
		return r.whole(), nil
	}
}

// whole is the line that was read, the first one without a byte order mark.
func (r *sseReader) whole() []byte {
	if r.begun {
		return r.line
	}
	r.begun = true
	return bytes.TrimPrefix(r.line, []byte("\uFEFF"))
}

// endOfLine is the index of the first line feed or carriage return, -1 if there is none.
func endOfLine(text []byte) int {
	i := bytes.IndexByte(text, '\n')
	if i < 0 {
		return bytes.IndexByte(text, '\r')
	}
	if cr := bytes.IndexByte(text[:i], '\r'); cr >= 0 {
		return cr
	}
	return i
}

func (r *sseReader) keep(part []byte) {
	const field = len("\uFEFFdata: ")
	room := r.max + field + 1 - len(r.line)
	r.line = append(r.line, part[:min(len(part), max(room, 0))]...)
}

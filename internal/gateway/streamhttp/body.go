package streamhttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// headBytes is how much of an over-long body is read to find its id.
const headBytes = 4096

var (
	errTooLarge = errors.New("body too large")
	// errBusy: the body is within the limit, but too much is under way.
	errBusy = errors.New("too many bytes under way")
)

// readBody reads the body of a POST, at most limit bytes and within a time. With errTooLarge it returns the beginning. What it
// reads counts as under way.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, within time.Duration, held *load) ([]byte, error) {
	control := http.NewResponseController(w)
	// http.Server.ReadTimeout would also end the detection of clients that leave. After an error the deadline stays,
	// because net/http reads on before it closes the connection. A test's recorder has no deadline.
	_ = control.SetReadDeadline(time.Now().Add(within))
	body, err := readAtMost(r, limit, held)
	if err == nil {
		_ = control.SetReadDeadline(time.Time{})
	}
	return body, err
}

func readAtMost(r *http.Request, limit int64, held *load) ([]byte, error) {
	switch n := r.ContentLength; {
	case n > limit:
		head := make([]byte, min(headBytes, limit))
		got, _ := io.ReadFull(r.Body, head)
		return head[:got], errTooLarge
	case n >= 0 && !held.add(n):
		return nil, errBusy
	case n >= 0:
		body := make([]byte, n)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(metered{r.Body, held}, limit+1))
	if err == nil && int64(len(body)) > limit {
		return body[:min(headBytes, len(body))], errTooLarge
	}
	return body, err
}

// readMessage reads and checks the body of a POST. false: it was answered.
func (f *Front) readMessage(w http.ResponseWriter, r *http.Request, held *load) (line []byte, e jsonrpc.Envelope, ok bool) {
	var id []byte
	no := headersOfPost(r)
	if no.status == 0 {
		body, err := readBody(w, r, f.opts.MaxBody, f.opts.ReadTimeout, held)
		if err != nil {
			w.Header().Set("Connection", "close") // the rest of the body is not read
		}
		switch {
		case err == nil:
			line = jsonrpc.Trim(body)
			no, id = checkMessage(line, &e)
		case errors.Is(err, errTooLarge):
			id, _ = jsonrpc.RecoverID(body, nil)
			no = refusal{status: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("message too large: the limit is %d bytes", f.opts.MaxBody)}
		case errors.Is(err, errBusy):
			no = refusal{status: http.StatusServiceUnavailable, text: f.noRoom(held.subject)}
		default:
			no = refusal{status: http.StatusBadRequest, code: jsonrpc.ParseError, text: "the body could not be read"}
		}
	}
	if no.status != 0 {
		refuse(w, id, no)
		return nil, e, false
	}
	jsonrpc.OneLine(line) // after the check that no string contains a line break
	return line, e, true
}

// checkMessage scans a message, and returns the refusal and id, if it is refused.
func checkMessage(line []byte, e *jsonrpc.Envelope) (refusal, []byte) {
	err := e.Scan(line)
	id := e.ID.Of(line)
	if e.Kind == jsonrpc.Response || e.Kind == jsonrpc.ErrorResponse || jsonrpc.IsNull(id) {
		id = nil // not a request's id
	}
	switch {
	case errors.Is(err, jsonrpc.ErrSyntax):
		id, _ = jsonrpc.RecoverID(line, line)
		return refusal{status: http.StatusBadRequest, code: jsonrpc.ParseError, text: "parse error: " + jsonrpc.Problem(line)}, id
	case err != nil:
		return refusal{status: http.StatusBadRequest, text: "invalid request: " + err.Error()}, id
	case e.Kind != jsonrpc.Batch && !e.Version2:
		return refusal{status: http.StatusBadRequest, text: `invalid request: "jsonrpc" is not "2.0"`}, id
	case e.Kind == jsonrpc.Request && !isID(id):
		return refusal{status: http.StatusBadRequest, text: "invalid request: the id is neither a string nor an integer"}, id
	case e.BadUTF8 || e.Surrogate:
		return refusal{status: http.StatusBadRequest, code: jsonrpc.InvalidParams, text: "Validation failed: the message is not valid UTF-8, or has half a surrogate pair"}, id
	}
	return refusal{}, nil
}

// isID reports whether a JSON value may be a request's id: a string, or an integer of any size, since clients count in 64 bits and by
// clocks of nanoseconds.
func isID(raw []byte) bool {
	digits := bytes.TrimPrefix(raw, []byte("-"))
	return !jsonrpc.OddID(raw) || len(bytes.Trim(digits, "0123456789")) == 0
}

// headersOfPost checks the transport's rules for every POST. A zero status means accepted.
func headersOfPost(r *http.Request) refusal {
	contentType := r.Header.Get("Content-Type")
	if contentType != "application/json" {
		if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
			return refusal{status: http.StatusUnsupportedMediaType, text: "Content-Type must be application/json"}
		}
	}
	if !accepts(r, "application/json") || !accepts(r, eventStream) {
		return refusal{status: http.StatusNotAcceptable, text: "Accept must list application/json and text/event-stream"}
	}
	return refusal{}
}

const eventStream = "text/event-stream"

// accepts reports whether a client takes a media type. No Accept header means that it takes anything (RFC 9110).
func accepts(r *http.Request, media string) bool {
	fields := r.Header["Accept"]
	if len(fields) == 0 {
		return true
	}
	kind, _, _ := strings.Cut(media, "/")
	for _, field := range fields {
		for one := range strings.SplitSeq(field, ",") {
			name, parameters, _ := strings.Cut(one, ";")
			name = strings.TrimSpace(name)
			if strings.EqualFold(name, media) || name == "*/*" || strings.EqualFold(name, kind+"/*") {
				return !zeroWeight(parameters)
			}
		}
	}
	return false
}

// zeroWeight reports whether a media range has weight 0.
func zeroWeight(parameters string) bool {
	for one := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(one), "=")
		if strings.EqualFold(name, "q") {
			return strings.Trim(value, "0.") == ""
		}
	}
	return false
}

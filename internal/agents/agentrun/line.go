package agentrun

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// lineLimit is how much of a JSON line is read, in bytes. Later parts, such as long results, are not needed.
const lineLimit = 64 << 10

// lineStart is how Claude Code's stream-json, `codex exec --json` and Gemini's stream-json begin every line.
const lineStart = `{"type":"`

// lines finds the lines of JSON in an output, however it is cut into pieces.
type lines struct {
	held    []byte // of the line, up to its limit
	started bool   // a byte of the line has been seen
	other   bool   // the line is none of JSON
}

// scan reads the next piece and hands on each line of JSON that ends in it, without its end, valid until the next call.
func (l *lines) scan(b []byte, emit func(line []byte)) {
	for len(b) > 0 {
		if !l.started {
			l.started, l.other = true, b[0] != '{'
		}
		end := bytes.IndexByte(b, '\n')
		piece := b
		if end >= 0 {
			piece = b[:end]
		}
		if !l.other {
			l.held = append(l.held, piece[:min(len(piece), lineLimit-len(l.held))]...)
		}
		if end < 0 {
			return
		}
		if !l.other && bytes.HasPrefix(l.held, []byte(lineStart)) {
			emit(bytes.TrimSuffix(l.held, []byte("\r")))
		}
		l.held, l.started = l.held[:0], false
		b = b[end+1:]
	}
}

// streamEvent is what a line of JSON has said.
type streamEvent struct {
	last    string // its type
	session string
	result  string
	message string // of an error
	retry   *Retry
	goesOn  bool // the model has answered: retries have succeeded
}

// readLine reads a line, or its beginning. ok is false if it is not an agent's JSON line.
func readLine(line []byte) (e streamEvent, ok bool) {
	rest, _ := bytes.CutPrefix(line, []byte(lineStart))
	end := bytes.IndexByte(rest, '"')
	if end <= 0 || end > 64 {
		return e, false
	}
	e.last = printable(string(rest[:end]), 64)
	switch e.last {
	case "system":
		e.system(members(line))
	case "init": // Gemini
		e.session = text(members(line)["session_id"])
	case "result":
		e.ended(members(line))
	case "thread.started": // Codex
		e.session = text(members(line)["thread_id"])
	case "turn.completed":
		e.result, e.goesOn = "success", true
	case "turn.failed":
		e.result = "error"
		e.message = text(members(members(line)["error"])["message"])
	case "error":
		e.message = text(members(line)["message"])
		e.retry = reconnecting(e.message)
	case "assistant", "user", "stream_event", "item.started", "item.updated", "item.completed", "message", "tool_use", "tool_result":
		e.goesOn = true
	}
	e.message = printable(e.message, titleLimit)
	return e, true
}

// system reads Claude Code's system lines.
func (e *streamEvent) system(m map[string]json.RawMessage) {
	e.session = text(m["session_id"])
	subtype := text(m["subtype"])
	if subtype != "" {
		e.last = printable("system/"+subtype, 64)
	}
	if subtype == "api_retry" {
		e.retry = &Retry{
			Attempt: number(m["attempt"]), Max: number(m["max_retries"]), Status: number(m["error_status"]),
			Delay: time.Duration(min(float(m["retry_delay_ms"]), 1e9) * float64(time.Millisecond)),
		}
		e.message = text(m["error"])
	}
}

// ended reads how a run of Claude Code has ended; Gemini's has a status instead of a subtype.
func (e *streamEvent) ended(m map[string]json.RawMessage) {
	e.session, e.goesOn = text(m["session_id"]), true
	if e.result = printable(text(m["subtype"]), 64); e.result == "" {
		e.result = printable(text(m["status"]), 64)
	}
	if string(m["is_error"]) == "true" && (e.result == "success" || e.result == "") {
		e.result = "error" // an API error ends a run with is_error, although its subtype is success
	}
	if e.result == "error" {
		if e.message = text(m["result"]); e.message == "" {
			e.message = text(members(m["error"])["message"])
		}
	}
}

var (
	reconnects = lazyregexp.New(`^Reconnecting\.\.\. (\d+)/(\d+)`)
	httpStatus = lazyregexp.New(`\b([45]\d\d)\b`)
)

// reconnecting reads Codex's retry message; nil if it is none.
func reconnecting(message string) *Retry {
	m := reconnects.FindStringSubmatch(message)
	if m == nil {
		return nil
	}
	r := &Retry{Attempt: number(json.RawMessage(m[1])), Max: number(json.RawMessage(m[2]))}
	if status := httpStatus.FindString(message[len(m[0]):]); status != "" {
		r.Status = number(json.RawMessage(status))
	}
	return r
}

// members reads the members of an object, as many as a truncated line has.
func members(text []byte) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return m
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return m
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return m
		}
		m[name.(string)] = value
	}
	return m
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// number reads a whole number from 0 up; anything else is 0.
func number(raw json.RawMessage) int {
	n, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil {
		return 0
	}
	return int(max(n, 0))
}

// float reads a number from 0 up; anything else is 0.
func float(raw json.RawMessage) float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0
	}
	return max(f, 0)
}

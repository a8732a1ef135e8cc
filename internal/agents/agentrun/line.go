package agentrun

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
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

// errorLimit is how much is kept of an error, in bytes: the words of a provider within a CLI's own.
const errorLimit = 2 << 10

// streamEvent is what a line of JSON has said.
type streamEvent struct {
	session string
	failed  string // the error that a turn has ended with
	goesOn  bool   // the model has answered, or another turn has begun
}

// readLine reads a line, or its beginning. One that is not an agent's says nothing.
func readLine(line []byte) (e streamEvent) {
	rest, _ := bytes.CutPrefix(line, []byte(lineStart))
	kind, _, _ := bytes.Cut(rest, []byte(`"`))
	switch string(kind) {
	case "system", "init": // Claude Code, Gemini
		e.session = text(agentcli.Members(line)["session_id"])
	case "result":
		e.ended(agentcli.Members(line))
	case "thread.started": // Codex
		e.session = text(agentcli.Members(line)["thread_id"])
	case "turn.failed":
		e.failed = text(agentcli.Members(agentcli.Members(line)["error"])["message"])
	case "turn.completed", "assistant", "user", "stream_event", "item.started", "item.updated", "item.completed", "message", "tool_use", "tool_result":
		e.goesOn = true
	}
	e.session, e.failed = printable(e.session, titleLimit), printable(e.failed, errorLimit)
	return e
}

// ended reads how a run of Claude Code has ended; Gemini's has a status instead of a subtype. An API error ends one of
// Claude Code with is_error, although its subtype is success.
func (e *streamEvent) ended(m map[string]json.RawMessage) {
	e.session, e.goesOn = text(m["session_id"]), true
	switch subtype := text(m["subtype"]); {
	case strings.HasPrefix(subtype, "error_max_"):
		e.failed = subtype // a limit of its own; result is what it had until then
	case string(m["is_error"]) == "true" || text(m["status"]) == "error":
		e.failed = cmp.Or(text(m["result"]), text(agentcli.Members(m["error"])["message"]))
	}
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

package jsonrpc

import "errors"

// Scan's errors for lines that are not messages.
var (
	ErrSyntax       = errors.New("not valid JSON")
	ErrNotObject    = errors.New("neither an object nor an array")
	ErrDuplicateKey = errors.New("a top-level member stands there twice")
	ErrNoMessage    = errors.New("neither a request, a notification nor a response")
)

// Kind is the kind of a line, determined by its top-level members alone.
type Kind uint8

// The kinds of line. A member "method" takes precedence over "result" and "error"; a line with both "result" and
// "error" is an ErrorResponse unless its error is null.
const (
	Invalid       Kind = iota // no message; also every line for which Scan returned an error
	Request                   // method and id
	Notification              // method without id
	Response                  // result and id
	ErrorResponse             // error and id; the id may be null, as in an answer to an unreadable line
	Batch                     // an array, possibly empty; Elements returns its messages
)

// Envelope is the top level of one line, found in one pass without allocating. The spans are ranges of the line
// passed to Scan; all are raw JSON, strings with their quotes.
type Envelope struct {
	Kind     Kind
	Version2 bool // "jsonrpc":"2.0" was present

	ID, Method, Params, Result, Error Span

	// Members of params, when that is an object.
	Name          Span // name
	URI           Span // uri
	Meta          Span // _meta
	Level         Span // level
	RequestID     Span // requestId
	ProgressToken Span // progressToken, as in notifications/progress; a request's own is in _meta
	Progress      Span // progress
	Cursor        Span // cursor
	RequestState  Span // requestState
	Task          Span // task

	// Members of result, when that is an object.
	ResultType Span // resultType
	IsError    Span // isError

	Surrogate bool // some string or key has a surrogate escape without its other half (\ud800)
	BadUTF8   bool // some string or key has raw bytes that are not UTF-8
}

// level is the object whose members are being read.
type level uint8

const (
	top level = iota
	inParams
	inResult
	inVersion // no object: the value of jsonrpc is needed
)

// Scan reads one complete line without its newline; see Trim for what may surround a message. It validates the whole
// text as JSON (RFC 8259, at most 10,000 levels deep), except that raw bytes which are not UTF-8 and lone surrogates
// are only reported. A missing "jsonrpc" is not an error: see Version2.
//
// It returns nil or one of ErrSyntax, ErrNotObject, ErrDuplicateKey (id, method, params, result or error twice; the
// first one is kept) and ErrNoMessage (also for a method that is not a string, and a request whose id is null). After
// an error Kind is Invalid, and the spans found so far are kept, so that an id can be answered.
func (e *Envelope) Scan(line []byte) error {
	*e = Envelope{}
	i := skipSpace(line, 0)
	if i >= len(line) {
		return ErrSyntax
	}
	if line[i] != '{' {
		end, f := skipValue(line, i, 0)
		if end < 0 || skipSpace(line, end) != len(line) {
			return ErrSyntax
		}
		e.note(f)
		if line[i] != '[' {
			return ErrNotObject
		}
		e.Kind = Batch
		return nil
	}
	end, dup := e.members(line, i, top)
	if end < 0 || skipSpace(line, end) != len(line) {
		return ErrSyntax
	}
	if dup {
		return ErrDuplicateKey
	}
	return e.classify(line)
}

// members reads the object at offset i and stores what the envelope needs. It returns the offset after the object, or
// broken. Below the top level it is called once for params and once for result, never for deeper levels.
func (e *Envelope) members(line []byte, i int, at level) (end int, dup bool) {
	open := 0
	if at != top {
		open = 1
	}
	c := openCursor(line, i, open)
	for c.member() {
		if at == top {
			twice, ok := e.topMember(&c)
			if !ok {
				break
			}
			dup = dup || twice
			continue
		}
		field := e.innerField(&c, at) // before skip: after it the key may be far back
		if !c.skip() {
			break
		}
		if field != nil {
			*field = c.val
		}
	}
	e.note(c.f)
	if !c.ended {
		return broken, dup
	}
	return c.at, dup
}

// topMember reads the value of one member of the message itself.
func (e *Envelope) topMember(c *cursor) (dup, ok bool) {
	field, inner := e.topField(c)
	if field == nil {
		if !c.skip() {
			return false, false
		}
		if inner == inVersion {
			e.Version2 = isVersion2(c.b[c.val.Start:c.val.End])
		}
		return false, true
	}
	start := c.at
	if inner != top && start < len(c.b) && c.b[start] == '{' && !field.Present() {
		end, _ := e.members(c.b, start, inner)
		if end < 0 {
			return false, false
		}
		c.at = end
		*field = Span{start, end}
		return false, true
	}
	if !c.skip() {
		return false, false
	}
	if field.Present() {
		return true, true
	}
	*field = c.val
	return false, true
}

// isVersion2 reports whether raw is the string 2.0. Longer texts than its longest encoding are not decoded.
func isVersion2(raw []byte) bool {
	return string(raw) == `"2.0"` || len(raw) <= len(`""`)+len("2.0")*escapeMost && EqualString(raw, "2.0")
}

// topField returns where to store the current member of the message, nil for nowhere, and which level of its value
// has to be read, top for none.
func (e *Envelope) topField(c *cursor) (*Span, level) {
	var plain [maxName]byte
	switch string(c.name(plain[:0])) {
	case "id":
		return &e.ID, top
	case "method":
		return &e.Method, top
	case "params":
		return &e.Params, inParams
	case "result":
		return &e.Result, inResult
	case "error":
		return &e.Error, top
	case "jsonrpc":
		return nil, inVersion
	}
	return nil, top
}

// innerField returns where to store the current member of params or result, nil for nowhere.
func (e *Envelope) innerField(c *cursor, at level) *Span {
	var plain [maxName]byte
	name := c.name(plain[:0])
	if at == inResult {
		switch string(name) {
		case "resultType":
			return &e.ResultType
		case "isError":
			return &e.IsError
		}
		return nil
	}
	switch string(name) {
	case "name":
		return &e.Name
	case "uri":
		return &e.URI
	case "_meta":
		return &e.Meta
	case "level":
		return &e.Level
	case "requestId":
		return &e.RequestID
	case "progressToken":
		return &e.ProgressToken
	case "progress":
		return &e.Progress
	case "cursor":
		return &e.Cursor
	case "requestState":
		return &e.RequestState
	case "task":
		return &e.Task
	}
	return nil
}

func (e *Envelope) note(f flags) {
	e.Surrogate = e.Surrogate || f&hasSurrogate != 0
	e.BadUTF8 = e.BadUTF8 || f&hasBadUTF8 != 0
}

// classify determines the kind by the members found.
func (e *Envelope) classify(line []byte) error {
	switch {
	case e.Method.Present():
		switch {
		case line[e.Method.Start] != '"', e.ID.Present() && line[e.ID.Start] == 'n':
			return ErrNoMessage
		case e.ID.Present():
			e.Kind = Request
		default:
			e.Kind = Notification
		}
	case !e.ID.Present():
		return ErrNoMessage
	case e.Error.Present() && (line[e.Error.Start] != 'n' || !e.Result.Present()):
		e.Kind = ErrorResponse
	case e.Result.Present():
		e.Kind = Response
	default:
		return ErrNoMessage
	}
	return nil
}

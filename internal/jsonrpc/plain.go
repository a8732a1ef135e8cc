package jsonrpc

// Plain is a message as most are: printable ASCII without an escape, the members of a call or of its result and no
// other. It is found with little code that touches little memory, for the moment in which neither is in the
// processor's cache: there [Envelope.Scan], which knows everything, waits for memory most of its time. The spans are
// ranges of the line given to Scan, as an Envelope's are.
type Plain struct {
	ID     Span // digits without a sign, at most plainDigits
	Method Span // of a request; absent in an answer
	Name   Span // of a request: params.name, unless it is no string
	Result Span // of an answer
}

// plainDigits is how long the id of a plain message may be: every parser keeps such a number exactly.
const plainDigits = 15

// plainDepth is how deep a plain message may be nested: one bit for each level.
const plainDepth = 60

// Scan reports whether line is plain, and where its members stand. Then Envelope.Scan finds no fault with it, finds the
// same members, and no task, requestState, inputResponses, nor a resultType but "complete". Of a line that is not plain
// nothing is known.
func (p *Plain) Scan(line []byte) bool {
	*p = Plain{}
	s := plainScan{line: line, plain: p}
	if !s.object() || !p.ID.Present() || s.seen&seenVersion == 0 {
		return false
	}
	if p.Method.Present() {
		return !p.Result.Present()
	}
	return p.Result.Present() && s.seen&seenParams == 0
}

// plainScan is where the scan of one line stands.
type plainScan struct {
	line  []byte
	plain *Plain
	at    int
	want  plainWant
	stack uint64 // a bit for each open container, the innermost last: 1 is an object
	depth int
	key   Span  // the key last read, without quotes, in an object
	inner level // what the open member of the message is
	seen  uint8 // members that may stand there once and have no span of their own
}

// plainWant is what must come next.
type plainWant uint8

const (
	wantValue  plainWant = iota
	wantFirst            // a value, or the end of the array
	wantMember           // a key, or the end of the object
	wantKey
	wantAfter // a comma, or the end of the container
)

const (
	seenVersion = 1 << iota
	seenParams
)

// object reads the whole line, which must be one object.
func (s *plainScan) object() bool {
	if n := len(s.line); n == 0 || s.line[0] != '{' || s.line[n-1] != '}' {
		return false // what would be trimmed is not plain
	}
	for s.at < len(s.line) {
		if c := s.line[s.at]; c == ' ' {
			s.at++
		} else if !s.step(c) {
			return false
		}
	}
	return s.depth == 0 && s.want == wantAfter
}

// step reads what begins with c.
func (s *plainScan) step(c byte) bool {
	switch {
	case s.want == wantAfter && c == ',':
		s.at++
		s.want = wantValue
		if s.stack&1 == 1 {
			s.want = wantKey
		}
		return s.depth > 0
	case s.want == wantAfter, s.want == wantMember && c == '}', s.want == wantFirst && c == ']':
		return s.closes(c)
	case s.want == wantMember, s.want == wantKey:
		s.want = wantValue
		return s.readKey()
	case c == '{', c == '[':
		return s.opens(c)
	}
	start := s.at
	if s.depth == 0 || !s.scalar(c) {
		return false
	}
	s.want = wantAfter
	return s.depth > 2 || s.stack&1 == 0 || s.note(Span{start, s.at})
}

// opens enters a container. At the top level it learns whose members follow.
func (s *plainScan) opens(c byte) bool {
	if s.depth == 1 {
		switch string(s.key.Of(s.line)) {
		case "params":
			if s.seen&seenParams != 0 {
				return false
			}
			s.seen |= seenParams
			s.inner = inParams
		case "result":
			if s.plain.Result.Present() || c != '{' {
				return false
			}
			s.plain.Result.Start = s.at
			s.inner = inResult
		default:
			return false
		}
		if c != '{' {
			return false
		}
	} else if s.depth == 2 && !s.foreign() || s.depth == plainDepth {
		return false
	}
	s.at++
	s.depth++
	s.stack, s.want = s.stack<<1, wantFirst
	if c == '{' {
		s.stack, s.want = s.stack|1, wantMember
	}
	return true
}

// closes leaves a container if c ends it.
func (s *plainScan) closes(c byte) bool {
	if s.depth == 0 || c != '}' && s.stack&1 == 1 || c != ']' && s.stack&1 == 0 {
		return false
	}
	s.at++
	s.want = wantAfter
	s.stack >>= 1
	s.depth--
	if s.depth == 1 {
		if s.inner == inResult {
			s.plain.Result.End = s.at
		}
		s.inner = top
	}
	return true
}

// readKey reads a key and its colon.
func (s *plainScan) readKey() bool {
	start := s.at
	if s.line[start] != '"' || !s.text() {
		return false
	}
	s.key = Span{start + 1, s.at - 1}
	for s.at < len(s.line) && s.line[s.at] == ' ' {
		s.at++
	}
	if s.at == len(s.line) || s.line[s.at] != ':' {
		return false
	}
	s.at++
	return true
}

// note keeps a scalar that is a member of the message, of its params or of its result.
func (s *plainScan) note(v Span) bool {
	key, p := string(s.key.Of(s.line)), s.plain
	if s.depth == 2 {
		if s.inner == inParams && key == "name" && !p.Name.Present() {
			p.Name = v
			return true
		}
		return s.foreign() || s.inner == inResult && key == "resultType" && string(v.Of(s.line)) == `"complete"`
	}
	switch {
	case key == "id" && !p.ID.Present() && v.End-v.Start <= plainDigits && s.line[v.Start]-'0' <= 9:
		p.ID = v
		return wholeNumber(v.Of(s.line))
	case key == "method" && !p.Method.Present() && s.line[v.Start] == '"':
		p.Method = v
		return true
	case key == "jsonrpc" && s.seen&seenVersion == 0 && string(v.Of(s.line)) == `"2.0"`:
		s.seen |= seenVersion
		return true
	}
	return false
}

// foreign reports whether the current member of params or result is none that decides anything.
func (s *plainScan) foreign() bool {
	key := s.key.Of(s.line)
	if s.inner == inResult {
		return string(key) != "resultType"
	}
	switch string(key) {
	case "name", "task", "requestState", "inputResponses":
		return false
	}
	return true
}

func wholeNumber(raw []byte) bool {
	for _, c := range raw {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}

// scalar reads a string, a number without an exponent, or a word.
func (s *plainScan) scalar(c byte) bool {
	switch c {
	case '"':
		return s.text()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

// text reads a string.
func (s *plainScan) text() bool {
	for i := s.at + 1; i < len(s.line); i++ {
		c := s.line[i]
		if c == '"' {
			s.at = i + 1
			return true
		}
		if c-' ' > '~'-' ' || c == '\\' {
			return false
		}
	}
	return false
}

func (s *plainScan) word(w string) bool {
	if len(s.line)-s.at < len(w) || string(s.line[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

// number reads a number as most are written. What follows it decides whether it has ended.
func (s *plainScan) number() bool {
	i := s.at
	if s.line[i] == '-' {
		i++
	}
	from := i
	i = s.digits(i)
	if i == from || i > from+1 && s.line[from] == '0' {
		return false
	}
	if i < len(s.line) && s.line[i] == '.' {
		from = i + 1
		if i = s.digits(from); i == from {
			return false
		}
	}
	s.at = i
	return true
}

func (s *plainScan) digits(i int) int {
	for i < len(s.line) && s.line[i]-'0' <= 9 {
		i++
	}
	return i
}

package bridge

import (
	"slices"
	"time"
)

// levelFor is how long a call waits for a legacy server to confirm the log level that the call asks for. A server that
// works on several requests at once would otherwise begin the call at the old level. Servers confirm at once; one that does
// not must not keep the call for long.
const levelFor = time.Second

// leveling is a change of the log level that the server has not confirmed yet.
type leveling struct {
	ID    string    // raw id of the bridge's logging/setLevel, "" for none
	Lines []leveled // what waits for it, in order
	Until time.Time // when that goes out in any case; zero while nothing waits
}

// leveled is a line for the server that waits for the log level of its call.
type leveled struct {
	Wire   string // of the call
	Line   []byte
	Begins bool // the call itself, not an answer within it
}

// sendOf sends the server a line of a call, once the log level that the call asks for is in force.
func (s *modernSide) sendOf(t *task, line []byte, begins bool) {
	l := &s.Leveling
	if l.ID == "" || t.Level < 0 {
		s.toServer(line)
		return
	}
	if len(l.Lines) == 0 {
		l.Until = s.now.Add(levelFor)
	}
	l.Lines = append(l.Lines, leveled{Wire: t.Wire, Line: line, Begins: begins})
}

// levelConfirmed notes that the server has answered one of the bridge's own requests.
func (s *modernSide) levelConfirmed(id string) {
	if s.Leveling.ID == id {
		s.levelNow()
	}
}

// levelNow sends what waits for the log level.
func (s *modernSide) levelNow() {
	waiting := s.Leveling.Lines
	s.Leveling = leveling{}
	for _, one := range waiting {
		s.toServer(one.Line)
	}
}

// unsent reports whether the server has not been told of a call yet.
func (s *modernSide) unsent(t *task) bool {
	return slices.ContainsFunc(s.Leveling.Lines, func(one leveled) bool { return one.Begins && one.Wire == t.Wire })
}

// unsend forgets what waits of a call.
func (s *modernSide) unsend(t *task) {
	l := &s.Leveling
	if l.Lines = slices.DeleteFunc(l.Lines, func(one leveled) bool { return one.Wire == t.Wire }); len(l.Lines) == 0 {
		l.Until = time.Time{}
	}
}

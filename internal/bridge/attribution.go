package bridge

import "slices"

// A legacy server that many clients share does not say which call its question belongs to. What is certain is this: the
// call was at the server when the question came, and it does not end before the question is answered. So a question has
// suspects, the calls at the server when it came; whoever ends is none any more, and the last one left has asked. A call
// that came later is none. One that the client has withdrawn stays one, because the server may not have heard, or not
// care: it is cleared by nothing but the server's answer.
//
// When as many questions wait as calls can have asked them, nobody will end by itself. If all those calls are one
// party's, it does not matter to which of them its questions come: the server knows its answers by the question. Otherwise
// the latest question is refused, so that its call can end and leave the others clear.

// suspect is a call that may have asked.
type suspect struct {
	party party
	can   abilities // what the client can be asked within the call
	gone  bool      // the client does not wait for it any more
	asked bool      // it has asked something else that is not answered yet
}

// inquiry is a question that waits.
type inquiry struct {
	need     abilities
	suspects []int // by their place among all, the oldest call first
}

// party is who is behind a call, as far as that is known.
type party struct {
	Principal string // whom the transport has authenticated; "" for nobody
	Info      string // raw clientInfo; "" for none
}

// alike reports whether two calls may well be of one client.
func (p party) alike(other party) bool { return p == other && p.Info != "" }

// same reports whether two calls are certainly of one party.
func (p party) same(other party) bool { return p.alike(other) && p.Principal != "" }

// verdict is what becomes of a question.
type verdict uint8

const (
	give      verdict = iota // to a call
	noCall                   // it can belong to no call
	unable                   // its call is of a client that cannot be asked
	withdrawn                // its call is not waited for any more
	undecided                // it cannot become clear whose it is
)

// ruling is one thing that is certain about the questions that wait.
type ruling struct {
	question int
	verdict  verdict
	suspect  int  // give: to which call
	certain  bool // no other call can have asked it
}

// attribute returns what can be said next of questions, the earliest first. ok is false while nothing is certain of any
// of them.
func attribute(questions []inquiry, suspects []suspect) (r ruling, ok bool) {
	for i, q := range questions {
		switch len(q.suspects) {
		case 0:
			return ruling{question: i, verdict: noCall}, true
		case 1:
			r = ruling{question: i, suspect: q.suspects[0], certain: true}
			switch one := suspects[r.suspect]; {
			case one.gone:
				r.verdict = withdrawn
			case q.need&^one.can != 0:
				r.verdict = unable
			}
			return r, true
		}
	}
	for _, q := range questions {
		if r, ok = stuck(q.suspects, questions, suspects); ok {
			return r, true
		}
	}
	return ruling{}, false
}

// stuck rules on the questions that only some of the calls can have asked, if there are as many of them as such calls.
func stuck(of []int, questions []inquiry, suspects []suspect) (ruling, bool) {
	onePartys, waits := true, 0
	for _, s := range of {
		onePartys = onePartys && suspects[s].party.same(suspects[of[0]].party)
		if !suspects[s].gone && !suspects[s].asked {
			waits++
		}
	}
	var theirs []int
	for i, q := range questions {
		if !slices.ContainsFunc(q.suspects, func(s int) bool { return !slices.Contains(of, s) }) {
			theirs = append(theirs, i)
		}
	}
	if !onePartys {
		return ruling{question: theirs[len(theirs)-1], verdict: undecided}, len(theirs) >= len(of)
	}
	if len(theirs) < waits {
		return ruling{}, false
	}
	r := ruling{question: theirs[0], verdict: withdrawn}
	for _, s := range questions[theirs[0]].suspects {
		switch one := suspects[s]; {
		case one.gone || one.asked && waits > 0:
		case questions[theirs[0]].need&^one.can == 0:
			return ruling{question: theirs[0], suspect: s}, true
		default:
			r.verdict = unable
		}
	}
	return r, true
}

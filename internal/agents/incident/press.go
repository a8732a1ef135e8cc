package incident

import (
	"fmt"
	"time"
)

const (
	answerLimit = 200 // characters of an answer to a press (Telegram's answerCallbackQuery)
	nameLimit   = 64  // of these, for the name of the user who pressed
)

// press handles a press of a button, and always answers.
func (s *step) press(e Pressed) {
	i := &s.i
	e.By = shorten(e.By, nameLimit)
	switch {
	case i.Opened.IsZero():
		s.answer("This is not known any more")
	case i.State == Resolved:
		s.answer("already resolved " + s.p.at(i.Resolved, s.now))
	case e.Nonce != "" && e.Nonce == i.Done.Nonce && e.Verb.Acts():
		s.answer(fmt.Sprintf("already done: %s by %s %s", i.Done.Verb, i.Done.By, s.p.at(i.Done.At, s.now)))
	case !i.offers(e.Verb):
		s.answer("That is not possible here, or not any more")
	case e.Verb.Acts():
		s.act(e)
	case e.Verb == Details:
		i.Expanded, s.changed = true, true
		s.answer("The message shows more now")
	case e.Verb == Ack && i.State == Acknowledged && !i.Snoozed:
		s.answer(fmt.Sprintf("already acknowledged by %s %s", i.AckedBy, s.p.at(i.AckedAt, s.now)))
	case e.Verb == Ack:
		s.acknowledge(e.By, ackFor, false)
		s.answer("acknowledged until " + s.p.at(i.AckedUntil, s.now))
	default:
		s.acknowledge(e.By, snoozeFor, true)
		s.answer("snoozed until " + s.p.at(i.AckedUntil, s.now))
	}
}

// act handles a button that may be pressed once: its nonce has to be the present one, and is used up.
func (s *step) act(e Pressed) {
	i := &s.i
	if i.Nonce == "" || e.Nonce != i.Nonce {
		s.answer("This button is out of date: use those of the newest message")
		return
	}
	do := Do{Verb: e.Verb, Agent: i.Key.Agent, By: e.By}
	i.Done = Done{Verb: e.Verb, By: e.By, At: s.now, Nonce: i.Nonce}
	if i.Nonce = e.Next; e.Next == i.Done.Nonce {
		i.Nonce = ""
	}
	if e.Verb == Allow || e.Verb == Deny {
		do.Request = i.Facts.Request
		i.Answered, i.Facts.Request, i.Facts.Input = do.Request, "", ""
	}
	s.effects = append(s.effects, do)
	// The action needs time to take effect. If it has none, the incident continues from here.
	s.acknowledge(e.By, s.p.ackTimeout(), false)
	s.answer(doing[e.Verb])
}

func (s *step) acknowledge(by string, hold time.Duration, snoozed bool) {
	i := &s.i
	i.State, i.AckedBy, i.AckedAt, i.AckedUntil = Acknowledged, by, s.now, s.now.Add(hold)
	i.Snoozed, i.News = snoozed, false
	s.changed = true
}

func (s *step) answer(text string) {
	s.effects = append(s.effects, Answer{shorten(text, answerLimit-1)})
}

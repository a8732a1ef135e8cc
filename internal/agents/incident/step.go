package incident

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// Step handles an event: it returns the new incident and the effects to perform. It is pure, and does not modify i.
func Step(i Incident, e Event, p Policy, now time.Time) (Incident, []Effect) {
	s := &step{i: i, p: p, now: now, before: i.Channels}
	s.lapse()
	s.apply(e)
	s.advance()
	if (s.changed || s.reworded) && len(s.before) > 0 {
		s.effects = append(s.effects, Edit{
			Key: s.i.ID, Channels: s.before, Message: Compose(s.i, p, now), InPlace: !s.changed || p.Silent(now) && !s.i.critical(),
		})
	}
	return s.i, append(s.effects, s.sends...)
}

// step is the state of one call of Step.
type step struct {
	i        Incident
	p        Policy
	now      time.Time
	before   []string // the channels that were notified before
	changed  bool     // the message that was sent is outdated
	reworded bool     // this version says the same in other words than the one before
	effects  []Effect
	sends    []Effect
}

// apply updates the incident for the event. advance decides who is notified.
func (s *step) apply(e Event) {
	i := &s.i
	if press, ok := e.(Pressed); ok {
		s.press(press)
		return
	}
	opened, ok := e.(Opened)
	switch {
	case ok && i.Opened.IsZero():
		i.State, i.Opened, i.TierAt = Open, s.now, s.now
		s.learn(opened.Facts, opened.Nonce)
		return
	case ok && i.State == Resolved:
		if s.now.Sub(i.Resolved) < reopenFor {
			s.reopen(opened)
		}
		return
	case i.Opened.IsZero() || i.State == Resolved:
		return
	}
	switch e := e.(type) {
	case Opened:
		s.learn(e.Facts, e.Nonce)
	case Changed:
		s.learn(e.Facts, e.Nonce)
	case Sent:
		i.NotifiedAt = s.now
		i.Failing = without(i.Failing, e.Channel)
		if i.State == Open {
			i.State = Notified
		}
	case Failed:
		if slices.Contains(i.Channels, e.Channel) {
			i.Failing = append(without(i.Failing, e.Channel), e.Channel)
		}
	case Recovered:
		s.resolve(e.How)
		i.Recovered = true
		s.close()
	case Gone:
		s.resolve(e.Why)
	}
}

func without(list []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == one })
}

// learn updates the facts. A new permission request, and trouble that has become critical, are news even to a user
// who has acknowledged the old ones.
func (s *step) learn(f Facts, nonce string) {
	i := &s.i
	if f.Request == i.Answered {
		f.Request, f.Input = "", "" // the agent has not received the answer yet
	}
	asks := f.Request != "" && f.Request != i.Facts.Request
	// What the agent waits for may be seen a moment before the request itself: that is the question that was told already, with buttons now.
	late := i.Facts.Request == "" && i.Answered == "" && !f.Since.IsZero() && !f.Since.After(i.Opened)
	switch {
	case nonce != "" && nonce != i.Done.Nonce:
		s.changed = s.changed || nonce != i.Nonce
		i.Nonce = nonce
	case asks:
		i.Nonce = "" // a button must belong to what is shown
	}
	was := i.critical()
	switch {
	case reflect.DeepEqual(i.Facts, f):
	case i.Version != s.p.Version && i.Facts.reworded(f):
		s.reworded = true
	default:
		s.changed = true
	}
	i.Facts, i.Version = f, s.p.Version
	if asks {
		i.State, i.AckedUntil, i.Snoozed = s.awake(), time.Time{}, false
		i.TierAt, i.Repeats = s.now, 0
	}
	if i.told() && (asks && !late || i.critical() && !was && i.State != Acknowledged) {
		i.News = true
	}
}

func (s *step) awake() State {
	if s.i.NotifiedAt.IsZero() {
		return Open
	}
	return Notified
}

// reopen continues an incident that had ended. Notifications are repeated at the next repetition, beginning with the
// first tier. An acknowledgement was for the trouble that is over: once the agent has worked again, those who were
// notified are notified again at once. If the trouble had only gone from sight, it holds on.
func (s *step) reopen(e Opened) {
	i := &s.i
	i.State, i.Resolved, i.Ending = s.awake(), time.Time{}, ""
	i.Reopened++
	i.Tier, i.TierAt, i.Repeats = 0, s.now, 0
	i.Failing = nil // its message is sent anew
	switch acked := s.now.Before(i.AckedUntil); {
	case acked && i.Recovered:
		i.AckedBy, i.AckedAt, i.AckedUntil, i.Snoozed = "", time.Time{}, time.Time{}, false
		i.News = i.told()
	case acked:
		i.State = Acknowledged
	}
	i.Recovered = false
	s.changed = true
	s.learn(e.Facts, e.Nonce)
}

func (s *step) resolve(how string) {
	s.i.State, s.i.Resolved, s.i.Ending, s.i.Recovered = Resolved, s.now, how, false
	s.i.News, s.i.Nonce, s.i.Expanded = false, "", false
	s.changed = true
}

// close reports the end to those who were notified, except in quiet hours if it is not critical, or if an end was
// reported since the last notification.
func (s *step) close() {
	i := &s.i
	if i.Done.Verb == Allow || i.Done.Verb == Deny {
		return // the user who answered knows; the edited message shows the rest
	}
	if _, quiet := s.p.quiet(s.now); i.Rings == i.Closing || quiet && !i.critical() {
		return
	}
	i.Closing = i.Rings
	s.sends = append(s.sends, Send{
		Key: fmt.Sprintf("%s/recovered/%d", i.ID, i.Reopened), Channels: i.Channels, Message: i.ended(s.p, s.now),
	})
}

// Next is when the incident needs a [Timer]. Zero: it does not need one.
func (i Incident) Next(p Policy, now time.Time) time.Time {
	due := i.nextRing(p)
	if i.State == Acknowledged {
		due = i.AckedUntil
	}
	if due.IsZero() || i.critical() {
		return due
	}
	if due.Before(now) {
		due = now
	}
	if until, quiet := p.quiet(due); quiet {
		return until
	}
	return due
}

// nextRing is when the next notification is due, or the incident expires, without regard to quiet hours.
func (i *Incident) nextRing(p Policy) time.Time {
	if i.Opened.IsZero() || i.State == Resolved || i.State == Acknowledged || i.Facts.Severity == Info || p.tierAfter(-1) < 0 {
		return time.Time{}
	}
	if !i.told() || i.News {
		return i.TierAt
	}
	if i.State == Expired {
		return time.Time{}
	}
	more := p.tierAfter(i.Tier) > 0
	if more && len(i.Failing) == len(i.Channels) {
		return i.Rang // no message has arrived
	}
	var due time.Time
	if more {
		due = i.TierAt.Add(p.ackTimeout())
	}
	if repeat := i.Rang.Add(p.repeat()); p.repeat() > 0 && i.Repeats < p.repeats() && (due.IsZero() || repeat.Before(due)) {
		due = repeat
	}
	if due.IsZero() {
		due = i.Rang.Add(max(p.ackTimeout(), p.repeat()))
	}
	return due
}

// tierAfter is the next tier, after -1 the first one; -1: there is none.
func (p Policy) tierAfter(tier int) int {
	if tier+1 < len(p.Tiers) {
		return tier + 1
	}
	return -1
}

// lapse ends an expired acknowledgement: those who were notified are notified again.
func (s *step) lapse() {
	i := &s.i
	if i.State == Acknowledged && !s.now.Before(i.AckedUntil) {
		i.State, i.Snoozed = s.awake(), false
		i.TierAt, i.Repeats, i.News = s.now, 0, i.told()
		s.changed = true
	}
}

// advance notifies the tiers that are due: at most one round in each step.
func (s *step) advance() {
	i := &s.i
	due := i.nextRing(s.p)
	if due.IsZero() || s.now.Before(due) {
		return
	}
	if _, quiet := s.p.quiet(s.now); quiet && !i.critical() {
		return
	}
	next := s.p.tierAfter(i.Tier)
	raise := next > 0 && (!s.now.Before(i.TierAt.Add(s.p.ackTimeout())) || len(i.Failing) == len(i.Channels))
	switch {
	case !i.told():
		s.ring(s.p.tierAfter(-1))
	case i.News:
		s.remind()
	case raise:
		s.ring(next)
	case i.Repeats < s.p.repeats() && s.p.repeat() > 0:
		i.Repeats++
		s.remind()
	default:
		i.State = Expired
		s.changed = true
	}
}

// ring notifies a tier: first with the incident's message, later with reminders.
func (s *step) ring(tier int) {
	i := &s.i
	i.Channels = slices.Clone(i.Channels)
	var fresh []string
	for _, c := range s.p.Tiers[tier] {
		if !slices.Contains(i.Channels, c) {
			i.Channels, fresh = append(i.Channels, c), append(fresh, c)
		}
	}
	i.Tier, i.TierAt = tier, s.now
	s.changed = true
	if len(fresh) == 0 {
		s.remind()
		return
	}
	if i.State == Expired {
		i.State = s.awake()
	}
	s.rang(i.ID, fresh, Compose(*i, s.p, s.now))
}

// remind notifies all channels that have the message again.
func (s *step) remind() {
	i := &s.i
	if i.State == Expired {
		i.State = s.awake()
		s.changed = true
	}
	i.Failing = nil
	s.rang(fmt.Sprintf("%s/again/%d", i.ID, i.Rings), i.Channels, i.reminder(s.p, s.now))
}

func (s *step) rang(key string, channels []string, m notify.Message) {
	i := &s.i
	i.Rang, i.News, i.Rung = s.now, false, i.Facts.Request
	i.Rings++
	s.sends = append(s.sends, Send{Key: key, Channels: channels, Message: m})
}

package notify

import (
	"sync"
	"time"
)

// Pace is how often a channel may be used. The zero value is as often as one likes.
type Pace struct {
	Gap       time.Duration // between two messages
	PerMinute int           // at most; 0: no limit
	// Of is what the limits are of, such as a chat that several channels write to. "": the channel itself.
	Of string
}

// keptForAnswers is how many messages of a minute are kept for answers: a person who asks does not wait for a minute of messages.
const keptForAnswers = 2

// next is when the next message may be sent, given when the last ones were, oldest first.
func (p Pace) next(sent []time.Time) time.Time {
	var due time.Time
	if n := len(sent); n > 0 {
		due = sent[n-1].Add(p.Gap)
		if p.PerMinute > 0 && n >= p.PerMinute {
			if t := sent[n-p.PerMinute].Add(time.Minute); t.After(due) {
				due = t
			}
		}
	}
	return due
}

// remembered is how many messages a pace looks back at most.
const remembered = 20

// sends are the times of the last messages, oldest first, by what [Pace] counts for. Lanes share it.
type sends struct {
	mu   sync.Mutex
	last map[string][]time.Time
}

// next is when the lane's next message may be sent.
func (s *sends) next(l *lane, asked bool) time.Time {
	c, ok := l.channel.(Paced)
	if !ok {
		return time.Time{}
	}
	p := c.Pace()
	if p.PerMinute > keptForAnswers && !asked {
		p.PerMinute -= keptForAnswers
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.next(s.last[p.key(l)])
}

// note adds a message.
func (s *sends) note(l *lane, at time.Time) {
	c, ok := l.channel.(Paced)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := c.Pace().key(l)
	list := append(s.last[key], at)
	s.last[key] = list[max(0, len(list)-remembered):]
}

func (p Pace) key(l *lane) string {
	if p.Of == "" {
		return "channel " + l.name
	}
	return p.Of
}

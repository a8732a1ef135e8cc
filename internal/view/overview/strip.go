package overview

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

const (
	// cells are the parts of a strip: 15 minutes each.
	cells = 96
	// brief is how long a state may last and not be seen in a strip: most restarts, which it counts instead.
	brief = 10 * time.Second
)

// after is how a server stands after an event; false: the event does not tell.
func after(t event.Type) (Health, bool) {
	switch t {
	case event.ServerReady, event.RestartCompleted, event.ServerCleared, event.BreakerClosed:
		return Good, true
	case event.ServerStarting, event.ServerCrashed, event.ServerUnhealthy:
		return Busy, true
	case event.ServerSuspect:
		return Warn, true
	case event.BreakerOpened, event.ServerUnusable, event.StartTimeout, event.SpawnFailed:
		return Bad, true
	case event.ServerSlept, event.CleanShutdown:
		return Idle, true
	case event.ProxyStopped:
		return Unknown, true
	}
	return Unknown, false
}

// stretch is a time in which something stood one way, as exactly as is known.
type stretch struct {
	from, to time.Time
	health   Health
}

// historyOf is how a server stood, from the events about it, the oldest first, since outlive started; it ends with how it stands.
func historyOf(events []Event, started, now time.Time, health Health) (list []stretch, restarts []time.Time) {
	at, is := started, Unknown
	for _, e := range events {
		if e.Type == event.RestartInitiated {
			restarts = append(restarts, e.At)
		}
		if h, ok := after(e.Type); ok {
			list = append(list, stretch{at, e.At, is})
			at, is = e.At, h
		}
	}
	if is == Unknown {
		is = health // no event tells of it
	}
	list = append(list, stretch{at, now, is})
	return list, restarts
}

// stripOf cuts a history of the last day into quarters of an hour, the last of which now is in, each with the worst that was not brief, and
// joins those that are alike.
func stripOf(list []stretch, restarts []time.Time, now time.Time, health Health) (spans []Span) {
	const width = Day / cells
	end := now.Truncate(width) // by the clock, so that a strip stays as it is for a while
	if end.Before(now) {
		end = end.Add(width)
	}
	from := end.Add(-Day)
	for n := range cells {
		s := Span{From: from.Add(time.Duration(n) * width), To: from.Add(time.Duration(n+1) * width)}
		s.Health = worst(list, s.From, s.To)
		if n == cells-1 {
			s.Health = health
		}
		for _, at := range restarts {
			if !at.Before(s.From) && at.Before(s.To) {
				s.Restarts++
			}
		}
		last := len(spans) - 1
		if last >= 0 && spans[last].Health == s.Health && spans[last].Restarts == 0 && s.Restarts == 0 {
			spans[last].To = s.To
			continue
		}
		spans = append(spans, s)
	}
	return spans
}

// worst is the worst that lasted a while between two times, else what lasted longest.
func worst(list []stretch, from, to time.Time) (h Health) {
	var longest time.Duration
	var most Health
	for _, one := range list {
		a, b := one.from, one.to
		if a.Before(from) {
			a = from
		}
		if b.After(to) {
			b = to
		}
		lasted := b.Sub(a)
		if lasted >= brief {
			h = max(h, one.health)
		}
		if lasted > longest {
			longest, most = lasted, one.health
		}
	}
	if h == Unknown {
		return most
	}
	return h
}

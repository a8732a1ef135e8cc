package overview

import (
	"fmt"
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
	case event.ServerStarting:
		return Busy, true
	case event.ServerCrashed, event.ConnectionLost, event.ServerUnhealthy, event.ServerSuspect:
		return Warn, true
	case event.BreakerOpened, event.ServerUnusable, event.StartTimeout, event.SpawnFailed:
		return Bad, true
	case event.ServerSlept, event.CleanShutdown:
		return Idle, true
	case event.ProxyStopped, event.ProxyLost:
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
func historyOf(events []*Event, started, now time.Time, health Health) []stretch {
	list := make([]stretch, 0, len(events)/2+1) // most are restarts, of which not every event tells something new
	at, is := started, Unknown
	for _, e := range events {
		h, ok := after(e.Type)
		if h == Busy && is.Wrong() || h == Warn && is == Bad {
			continue // another try, until one comes to something
		}
		if ok && h != is {
			list = append(list, stretch{at, e.At, is})
			at, is = e.At, h
		}
	}
	if is == Unknown {
		is = health // no event tells of it
	}
	return append(list, stretch{at, now, is})
}

// stripOf cuts a history of the last day into quarters of an hour, the last of which now is in, each with the worst that was not brief, and
// joins those that are alike.
func stripOf(list []stretch, restarts []time.Time, now time.Time, health Health) (spans []Span) {
	const width = Day / cells
	from := stripEnd(now).Add(-Day)
	seen := make([]part, cells)
	for _, one := range list {
		for n := max(0, int(one.from.Sub(from)/width)); n < cells && one.to.After(from.Add(time.Duration(n)*width)); n++ {
			begins := from.Add(time.Duration(n) * width)
			seen[n].add(one.health, min(one.to.Sub(begins), width)-max(one.from.Sub(begins), 0)) // what of it is in that part
		}
	}
	for _, at := range restarts {
		if n := int(at.Sub(from) / width); !at.Before(from) && n < cells {
			seen[n].restarts++
		}
	}
	for n := range cells {
		s := Span{From: from.Add(time.Duration(n) * width), To: from.Add(time.Duration(n+1) * width), Health: seen[n].health(), Restarts: seen[n].restarts}
		if n == cells-1 {
			s.Health = health
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

// StripFrom is where strips begin at a time.
func StripFrom(now time.Time) time.Time { return stripEnd(now).Add(-Day) }

// WellText says since when a strip is well, if its thing stands as it does for a shorter time only. It adds how many restarts were too brief to
// be drawn. "": both are the same, or it is not well. It says nothing of how well the thing worked.
func WellText(strip []Span, since, now time.Time) string {
	n, restarts := len(strip), 0
	for n > 0 && strip[n-1].Health == Good {
		n--
		restarts += strip[n].Restarts
	}
	if n == len(strip) || since.Sub(strip[n].From) < Day/cells {
		return ""
	}
	text := "up for 24 h"
	if n > 0 {
		text = "up since about " + Minute(strip[n].From, now)
	}
	switch {
	case restarts == 1:
		text += ", but for a short restart"
	case restarts > 1:
		text += fmt.Sprintf(", but for %d short restarts", restarts)
	}
	return text
}

// stripEnd is the end of the last part of a strip, by the clock: so a strip stays as it is until then, if nothing happens.
func stripEnd(now time.Time) time.Time {
	end := now.Truncate(Day / cells)
	if end.Before(now) {
		end = end.Add(Day / cells)
	}
	return end
}

// part is what is known of one part of a strip.
type part struct {
	worst    Health // that was not brief
	most     Health // that lasted longest
	longest  time.Duration
	restarts int
}

func (p *part) add(h Health, lasted time.Duration) {
	if lasted >= brief {
		p.worst = max(p.worst, h)
	}
	if lasted > p.longest {
		p.longest, p.most = lasted, h
	}
}

// health is the worst that lasted a while, else what lasted longest.
func (p *part) health() Health {
	if p.worst == Unknown {
		return p.most
	}
	return p.worst
}

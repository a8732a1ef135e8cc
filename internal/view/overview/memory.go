package overview

import (
	"slices"
	"time"
)

// Memory is what one overview leaves to the next one, so that only what has changed is computed anew. The zero value is ready. It is
// of one goroutine at a time. Events may only be added and dropped between two overviews; after any other change of them: [Memory.Forget].
type Memory struct {
	day    []*Event // of the last day, the oldest first
	by     map[of][]*Event
	its    map[pastKey][]*Event
	pasts  map[pastKey]past
	strips map[*Home]agentStrips
}

// of says whose an event is: numbers of processes are of one machine.
type of struct {
	host string
	pid  int
}

type pastKey struct {
	of
	server string // of a gateway
}

// past is what has happened to a server, and what it was computed of.
type past struct {
	strip    []Span
	since    time.Time
	renewals []Renewal
	waiting  []Renewal

	n           int       // events
	first, last time.Time // of the first and last one
	started     time.Time
	end         time.Time // of the strip
	health      Health
}

// agentStrips are the strips of a home's agents, in their order, until the end of their last part.
type agentStrips struct {
	end  time.Time
	list [][]Span
}

// Forget makes the next overview compute everything.
func (w *Memory) Forget() { *w = Memory{} }

// begin sorts the events, and drops what is known of homes and servers that are no more.
func (w *Memory) begin(in Input) {
	w.sort(in.Events, in.At)
	homes := map[*Home]bool{in.Home: true}
	for n := range in.Machines {
		homes[in.Machines[n].Seen.Home] = true
	}
	for h := range w.strips {
		if !homes[h] {
			delete(w.strips, h)
		}
	}
	for key := range w.pasts {
		if len(w.by[key.of]) == 0 {
			delete(w.pasts, key)
		}
	}
}

// dayOf are the events of the last day, the oldest first, without those for debugging; of one time in the order that they came. It uses
// the room that list has.
func dayOf(list []*Event, all []Event, now time.Time) []*Event {
	list = slices.Grow(list[:0], len(all))
	for n := range all {
		if e := &all[n]; now.Sub(e.At) <= Day && e.Level != "DEBUG" {
			list = append(list, e)
		}
	}
	older := func(a, b *Event) int { return a.At.Compare(b.At) }
	if !slices.IsSortedFunc(list, older) {
		slices.SortStableFunc(list, older)
	}
	return list
}

// sort takes the events of the last day, those of each running outlive, and those of each of its servers.
func (w *Memory) sort(all []Event, now time.Time) {
	w.day = dayOf(w.day, all, now)
	w.by, w.its = emptied(w.by), emptied(w.its)
	for _, e := range w.day {
		key := of{e.Host, e.PID}
		w.by[key] = append(w.by[key], e)
		if e.Server != "" {
			one := pastKey{key, e.Server}
			w.its[one] = append(w.its[one], e)
		}
	}
}

// emptied are lists without events, with the room that they had. Those that had none are dropped.
func emptied[K comparable](by map[K][]*Event) map[K][]*Event {
	if by == nil {
		return map[K][]*Event{}
	}
	for key, list := range by {
		if by[key] = list[:0]; len(list) == 0 {
			delete(by, key)
		}
	}
	return by
}

// stripsOf are the strips of a home's agents as far as they are known: nil where they are not.
func (w *Memory) stripsOf(h *Home, now time.Time) [][]Span {
	s := w.strips[h]
	if end := stripEnd(now); !s.end.Equal(end) {
		s = agentStrips{end, make([][]Span, len(h.Agents))}
		if w.strips == nil {
			w.strips = map[*Home]agentStrips{}
		}
		w.strips[h] = s
	}
	return s.list
}

// eventsOf are the events of a running outlive, the oldest first, or of one of its servers.
type eventsOf struct {
	w      *Memory
	key    pastKey
	events []*Event
}

// of are the events of a running outlive.
func (w *Memory) of(host string, pid int) eventsOf {
	key := of{host, pid}
	return eventsOf{w, pastKey{of: key}, w.by[key]}
}

// at are those of one of its servers.
func (h eventsOf) at(server string) eventsOf {
	h.key.server = server
	h.events = h.w.its[h.key]
	return h
}

// past is what they come to.
func (h eventsOf) past(started, now time.Time, health Health) past {
	if len(h.events) == 0 {
		return pastOf(nil, started, now, health)
	}
	is := past{n: len(h.events), first: h.events[0].At, last: h.events[len(h.events)-1].At, started: started, end: stripEnd(now), health: health}
	if was := h.w.pasts[h.key]; was.n == is.n && was.first.Equal(is.first) && was.last.Equal(is.last) && was.started.Equal(is.started) &&
		was.end.Equal(is.end) && was.health == is.health {
		return was
	}
	p := pastOf(h.events, started, now, health)
	is.strip, is.since, is.renewals, is.waiting = p.strip, p.since, p.renewals, p.waiting
	if h.w.pasts == nil {
		h.w.pasts = map[pastKey]past{}
	}
	h.w.pasts[h.key] = is
	return is
}

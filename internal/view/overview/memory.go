package overview

import (
	"slices"
	"time"
)

// Memory is what one overview leaves to the next one, so that only what has changed is computed anew. The zero value is ready. It is
// of one goroutine at a time. Events may only be added and dropped between two overviews; after any other change of them: [Memory.Forget].
type Memory struct {
	day    []*Event // of the last day, the oldest first
	by     map[whose][]*Event
	pasts  map[whose]past
	strips map[*Home]agentStrips
}

// whose events are: a running outlive's, or those of one of its servers. Numbers of processes are of one machine.
type whose struct {
	host   string
	pid    int
	server string // of a gateway; "": all that the outlive tells of
}

// past is what has happened to a server, and what it was computed of.
type past struct {
	strip    []Span
	since    time.Time
	renewals []Renewal
	waiting  []Renewal
	of       basis
}

// basis is what a past is computed of. Times are Unix microseconds.
type basis struct {
	events      int
	first, last int64 // of them
	started     int64
	end         int64 // of the strip
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
		if len(w.by[key]) == 0 {
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

// sort takes the events of the last day, those of each running outlive, and those of each of its servers. Lists keep the room that they
// had; those without events are dropped.
func (w *Memory) sort(all []Event, now time.Time) {
	w.day = dayOf(w.day, all, now)
	if w.by == nil {
		w.by, w.pasts, w.strips = map[whose][]*Event{}, map[whose]past{}, map[*Home]agentStrips{}
	}
	for key, list := range w.by {
		if w.by[key] = list[:0]; len(list) == 0 {
			delete(w.by, key)
		}
	}
	for _, e := range w.day {
		key := whose{host: e.Host, pid: e.PID}
		w.by[key] = append(w.by[key], e)
		if key.server = e.Server; e.Server != "" {
			w.by[key] = append(w.by[key], e)
		}
	}
}

// stripsOf are the strips of a home's agents as far as they are known: nil where they are not.
func (w *Memory) stripsOf(h *Home, now time.Time) [][]Span {
	s := w.strips[h]
	if end := stripEnd(now); !s.end.Equal(end) {
		s = agentStrips{end, make([][]Span, len(h.Agents))}
		w.strips[h] = s
	}
	return s.list
}

// eventsOf are the events of a running outlive, the oldest first, or of one of its servers.
type eventsOf struct {
	w   *Memory
	key whose
}

// of are the events of a running outlive.
func (w *Memory) of(host string, pid int) eventsOf { return eventsOf{w, whose{host: host, pid: pid}} }

// at are those of one of its servers.
func (h eventsOf) at(server string) eventsOf {
	h.key.server = server
	return h
}

// past is what they come to.
func (h eventsOf) past(started, now time.Time, health Health) past {
	events := h.w.by[h.key]
	if len(events) == 0 {
		return pastOf(nil, started, now, health)
	}
	is := basis{len(events), events[0].At.UnixMicro(), events[len(events)-1].At.UnixMicro(), started.UnixMicro(), stripEnd(now).UnixMicro(), health}
	p := h.w.pasts[h.key]
	if p.of != is {
		p = pastOf(events, started, now, health)
		p.of = is
		h.w.pasts[h.key] = p
	}
	return p
}

package curve

import (
	"context"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/latency"
)

// Totals are what a server has done since its outlive started, and what its processes use now.
type Totals struct {
	Calls   int64 // that are over
	Errors  int64 // of these
	Latency latency.Histogram
	Memory  int64                 // bytes
	CPU     map[int]time.Duration // processor time of each process with all it started, by its number
}

// Recorder keeps the curves of one outlive's servers. The zero value is empty.
type Recorder struct {
	mu      sync.Mutex
	servers map[string]*recorded
}

// recorded is what is kept of one server.
type recorded struct {
	was   Totals
	at    time.Time // of was
	curve Curve
}

// Run looks at the servers at the end of each minute, until the context ends. totals are theirs, by name.
func (r *Recorder) Run(ctx context.Context, totals func() map[string]Totals) {
	for {
		now := time.Now()
		select {
		case <-ctx.Done():
			return
		case at := <-time.After(now.Truncate(time.Minute).Add(time.Minute).Sub(now)):
			r.take(at, totals())
		}
	}
}

// take notes what was new in the minute that has ended.
func (r *Recorder) take(at time.Time, totals map[string]Totals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, is := range totals {
		one := r.servers[name]
		if one == nil {
			if is.Calls == 0 {
				continue
			}
			if r.servers == nil {
				r.servers = map[string]*recorded{}
			}
			one = &recorded{}
			r.servers[name] = one
		}
		if is.Calls < one.was.Calls {
			if is.Calls == 0 {
				continue // it could not be asked
			}
			one.was = Totals{} // it was taken out, and has come again
		}
		if minuteOf(at)-1 == one.curve.last {
			continue // the clock was set back by a moment: what is new is of the next minute
		}
		one.curve.add(minuteOf(at)-1, one.since(is, at))
		one.was, one.at = is, at
	}
	for name, one := range r.servers {
		if _, there := totals[name]; !there && minuteOf(at)-one.curve.last > Minutes { // all it has is older than a day
			delete(r.servers, name)
		}
	}
}

// since is what was new since the last look.
func (o *recorded) since(is Totals, at time.Time) Point {
	took := is.Latency
	took.Subtract(&o.was.Latency)
	p := Point{
		Known: true, Calls: float32(is.Calls - o.was.Calls), Errors: float32(is.Errors - o.was.Errors), Memory: float32(is.Memory),
		P50: float32(took.Quantile(0.5).Seconds()), P99: float32(took.Quantile(0.99).Seconds()),
	}
	if took.Count() == 0 {
		p.P50, p.P99 = 0, 0 // the longest of all is still known
	}
	for pid, cpu := range is.CPU {
		if before, known := o.was.CPU[pid]; known && cpu > before && at.After(o.at) {
			p.CPU += float32((cpu - before).Seconds() / at.Sub(o.at).Seconds())
		}
	}
	return p
}

// After are the parts of the curves that have come after a minute, by the server's name. Those to which nothing has come are left out.
func (r *Recorder) After(minute int64) map[string]Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	parts := map[string]Part{}
	for name, one := range r.servers {
		if p := one.curve.after(minute); len(p.Points) > 0 {
			parts[name] = p
		}
	}
	return parts
}

package collect

import (
	"context"
	"maps"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/curve"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	curvesLate    = 2 * time.Second        // after the end of a minute, outlives have noted it
	curvesPatient = 200 * time.Millisecond // a look waits so long for all curves; what comes later is seen by the next
)

// curves are how the servers of a running outlive did, as far as was asked.
type curves struct {
	minute time.Time // that was asked for last
	asking *question[map[string]curve.Part]
	begun  bool // by this look, which waits a moment for it
	newest int64
	seen   map[string]*curve.Curve
}

// askCurves asks each outlive that answers for what its curves have new, once a minute.
func (c *Collector) askCurves(ctx context.Context, all []overview.Instance) {
	over, end := context.WithCancel(ctx)
	end()
	look, cancel := context.WithTimeout(ctx, curvesPatient)
	defer cancel()
	minute := time.Now().Add(-curvesLate).Truncate(time.Minute)
	for _, i := range all {
		if k := &c.known[i.Path].curves; !i.Silent && k.asking == nil && k.minute.Before(minute) {
			after := k.after(minute)
			k.minute, k.begun = minute, true
			k.asking = begin(ctx, c, func(ctx context.Context) (map[string]curve.Part, error) { return i.Instance.Curves(ctx, after) })
		}
	}
	for n := range all {
		k := &c.known[all[n].Path].curves
		wait := over
		if k.begun {
			wait = look
		}
		if k.begun = false; k.asking != nil && k.asking.answered(wait) {
			k.take(k.asking.answer)
			k.asking = nil
		}
		all[n].Curves = k.seen
	}
}

// after is the newest minute that is there. Where the clock was in the future once, as before it was set, nothing is.
func (k *curves) after(now time.Time) int64 {
	if curve.Ahead(k.newest, now.Unix()/60) {
		k.newest, k.seen = 0, nil
	}
	return k.newest
}

// take takes up what is new. Whoever has the curves of before keeps them as they are.
func (k *curves) take(parts map[string]curve.Part) {
	if len(parts) == 0 {
		return
	}
	k.seen = maps.Clone(k.seen)
	if k.seen == nil {
		k.seen = map[string]*curve.Curve{}
	}
	for name, part := range parts {
		k.seen[name] = k.seen[name].With(part)
		k.newest = max(k.newest, k.seen[name].Newest())
	}
}

// forget ends the question to an outlive that is not there any more.
func (k *curves) forget() {
	if k.asking != nil {
		k.asking.cancel()
	}
}

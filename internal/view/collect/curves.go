package collect

import (
	"maps"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/curve"
)

// curvesLate is how long after the end of a minute outlives have noted it.
const curvesLate = 2 * time.Second

// curvesDue reports whether an outlive is asked for what its curves have new, too: once a minute while somebody watches.
func (c *Collector) curvesDue(k *known, now time.Time) bool {
	minute := now.Add(-curvesLate).Truncate(time.Minute)
	if !c.opts.Curves || !c.watched() || !k.minute.Before(minute) {
		return false
	}
	k.minute = minute
	return true
}

// after is the newest minute that is there. Where the clock was in the future once, as before it was set, nothing is.
func (k *known) after(now time.Time) int64 {
	if curve.Ahead(k.newest, now.Unix()/60) {
		k.newest, k.one.Curves = 0, nil
	}
	return k.newest
}

// addCurves takes up what is new. Whoever has the curves of before keeps them as they are.
func (k *known) addCurves(parts map[string]curve.Part) {
	if len(parts) == 0 {
		return
	}
	k.one.Curves = maps.Clone(k.one.Curves)
	if k.one.Curves == nil {
		k.one.Curves = map[string]*curve.Curve{}
	}
	for name, part := range parts {
		k.one.Curves[name] = k.one.Curves[name].With(part)
		k.newest = max(k.newest, k.one.Curves[name].Newest())
	}
}

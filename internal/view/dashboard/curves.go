package dashboard

import (
	"cmp"
	"fmt"
	"html/template"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/curve"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// period is how much of the past a page shows.
type period struct {
	Name   string // as the parameter has it
	last   time.Duration
	step   time.Duration // of a point in a plot
	row    time.Duration // of a row in the table
	labels time.Duration // between two labels of the axis
}

// periods are those that can be chosen, the shortest first.
var periods = []period{
	{"1h", time.Hour, time.Minute, 5 * time.Minute, 15 * time.Minute},
	{"6h", 6 * time.Hour, time.Minute, 30 * time.Minute, time.Hour},
	{"24h", overview.Day, 4 * time.Minute, 2 * time.Hour, 6 * time.Hour},
}

// periodOf is the one that the page of a server was asked for; else the shortest that has all there is to show in it.
func periodOf(name string, s overview.Server, now time.Time) period {
	if at := slices.IndexFunc(periods, func(p period) bool { return p.Name == name }); at >= 0 {
		return periods[at]
	}
	oldest := now
	if n := len(s.Renewals); n > 0 {
		oldest = s.Renewals[n-1].At
	}
	if s.Curve != nil {
		points := s.Curve.Last(curve.Minutes, now)
		if first := slices.IndexFunc(points, func(o curve.Point) bool { return o.Known }); first >= 0 {
			oldest = slices.MinFunc([]time.Time{oldest, now.Add(time.Duration(first-len(points)) * time.Minute)}, time.Time.Compare)
		}
	}
	for _, p := range periods {
		if now.Sub(oldest) <= p.last {
			return p
		}
	}
	return periods[len(periods)-1]
}

// labelsAfter is the time of the first label of an axis that begins then, by the clock of this place.
func labelsAfter(from time.Time, every time.Duration) time.Time {
	_, zone := from.Local().Zone()
	offset := time.Duration(zone) * time.Second
	return from.Add(offset).Truncate(every).Add(every - offset)
}

// curvesShown is what the section of curves shows.
type curvesShown struct {
	Key     string
	Host    string // "": this machine
	Periods []period
	Period  period
	Noted   string // of how much of the time something is known
	Slow    string // when calls took long; "": they did not
	Plots   []plot
	Rows    []curveRow
}

// plot is one picture, and what it shows.
type plot struct {
	Title string
	SVG   template.HTML
}

// curveRow is a row of the table that says the same as the plots.
type curveRow struct {
	From, To              time.Time
	Calls, Errors         int
	P50, P99, Memory, CPU string
}

// curvesOf makes the section of a server.
func curvesOf(s overview.Server, p period, now time.Time) curvesShown {
	v := curvesShown{Key: s.Key, Host: s.Host, Periods: periods, Period: p}
	if s.Curve == nil {
		return v
	}
	end := now.Truncate(time.Minute)
	points := s.Curve.Last(int(p.last/time.Minute), now)
	v.Noted, v.Slow = notedText(points, p, now), slowText(points, now)
	steps := joined(points, int(p.step/time.Minute))
	draw := func(title, quiet string, show func(float64) string, of ...func(curve.Point) float64) {
		v.Plots = append(v.Plots, plot{title, plotSVG(plotted{title, quiet, show, of}, p, end, steps)})
	}
	perMinute := func(n float64) string { return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64) }
	draw("calls a minute (filled), and those that failed (line)", "no calls", perMinute, func(o curve.Point) float64 { return float64(o.Calls) }, func(o curve.Point) float64 { return float64(o.Errors) })
	draw("how long calls took: half of them less than the filled part (p50), one in 100 more than the line (p99)", "no calls", secondsText,
		func(o curve.Point) float64 { return float64(o.P50) }, func(o curve.Point) float64 { return float64(o.P99) })
	draw("memory", "", func(bytes float64) string { return overview.Size(int64(bytes)) }, func(o curve.Point) float64 { return float64(o.Memory) })
	draw("processors kept busy", "", perMinute, func(o curve.Point) float64 { return float64(o.CPU) })
	size := int(p.row / time.Minute)
	for n := 0; n < len(points); n += size {
		part := points[n:min(n+size, len(points))]
		if !slices.ContainsFunc(part, func(o curve.Point) bool { return o.Known }) {
			continue
		}
		from := end.Add(time.Duration(n-len(points)) * time.Minute)
		row := curveRow{From: from, To: from.Add(p.row)}
		for _, o := range part {
			row.Calls += int(o.Calls)
			row.Errors += int(o.Errors)
		}
		worst := joined(part, len(part))[0]
		row.P50, row.P99, row.Memory, row.CPU = secondsText(float64(worst.P50)), secondsText(float64(worst.P99)), overview.Size(int64(worst.Memory)), perMinute(float64(worst.CPU))
		v.Rows = append(v.Rows, row)
	}
	slices.Reverse(v.Rows) // the newest first
	return v
}

// joined makes one point of several minutes: how many calls a minute there were on the average, and the most of all else.
func joined(points []curve.Point, each int) []curve.Point {
	list := make([]curve.Point, 0, len(points)/each+1)
	for part := range slices.Chunk(points, each) {
		var one curve.Point
		known := float32(0)
		for _, o := range part {
			if !o.Known {
				continue
			}
			known++
			one.Known = true
			one.Calls += o.Calls
			one.Errors += o.Errors
			one.P50, one.P99 = max(one.P50, o.P50), max(one.P99, o.P99)
			one.Memory, one.CPU = max(one.Memory, o.Memory), max(one.CPU, o.CPU)
		}
		if known > 0 {
			one.Calls, one.Errors = one.Calls/known, one.Errors/known
		}
		list = append(list, one)
	}
	return list
}

// notedText says how much of the time was measured, and in how many of its minutes there were calls.
func notedText(points []curve.Point, p period, now time.Time) string {
	noted, called, first := 0, 0, len(points)
	calls, failed := float32(0), float32(0)
	for n, o := range points {
		if !o.Known {
			continue
		}
		calls, failed = calls+o.Calls, failed+o.Errors
		noted++
		first = min(first, n)
		if o.Calls > 0 {
			called++
		}
	}
	const grey = " Grey was not measured: a server is measured from its first call on, until its outlive ends or is upgraded."
	switch noted {
	case 0:
		return "Nothing was measured in this time." + grey
	case len(points):
		return fmt.Sprintf("Measured all the time; calls in %d of these %d minutes, %.0f of %.0f failed.", called, noted, failed, calls)
	}
	from := now.Truncate(time.Minute).Add(time.Duration(first-len(points)) * time.Minute)
	return fmt.Sprintf("Measured: %s of the last %s, from %s on; calls in %d of these minutes, %.0f of %.0f failed.", overview.Took(time.Duration(noted)*time.Minute), p.Name,
		overview.Clock(from, now), called, failed, calls) + grey
}

// When calls were slow: in at least so many minutes, no further apart than that. They took so many times as long as in half of all minutes, of
// which enough have to be known, and no less than that.
const (
	slowMinutes = 3
	slowApart   = 10
	slowTimes   = 4
	slowFrom    = float32(0.5) // seconds
	slowKnown   = 30
)

// spell is a time in which calls were slow, in minutes from the first.
type spell struct {
	from, to, slow int
	p99            float32
	calls, failed  float32
}

// slowText says when calls took much longer than otherwise, for the longest such time; "": they did not, or too little is known.
func slowText(points []curve.Point, now time.Time) string {
	var all []float32
	for _, o := range points {
		if o.Calls > 0 {
			all = append(all, o.P99)
		}
	}
	if len(all) < slowKnown {
		return ""
	}
	slices.Sort(all)
	usual := all[len(all)/2]
	var longest, is spell
	for n, o := range points {
		if o.Calls == 0 || o.P99 < max(slowTimes*usual, slowFrom) {
			continue
		}
		if is.slow == 0 || n-is.to > slowApart {
			is = spell{from: n}
		}
		is = spell{is.from, n + 1, is.slow + 1, max(is.p99, o.P99), is.calls + o.Calls, is.failed + o.Errors}
		if is.slow > longest.slow {
			longest = is
		}
	}
	if longest.slow < slowMinutes {
		return ""
	}
	at := func(minute int) string {
		return overview.Minute(now.Truncate(time.Minute).Add(time.Duration(minute-len(points))*time.Minute), now)
	}
	return fmt.Sprintf("Slow from %s to %s: at worst one call in 100 took more than %s, where %s is usual; %.0f of %.0f calls failed then.", at(longest.from), at(longest.to),
		secondsText(float64(longest.p99)), secondsText(float64(usual)), longest.failed, longest.calls)
}

// plotted is what one plot shows.
type plotted struct {
	title string
	quiet string // what stands where all of it is 0; "": nothing
	show  func(float64) string
	of    []func(curve.Point) float64 // its lines, the first of them filled
}

// The height of a plot: where the highest value is, and where 0 is.
const plotTop, plotBase = 16.0, 92.0

// plotSVG draws lines over time. Its right edge is now. What was not measured is grey, and a gap in the lines. What is drawn is as wide as
// the page; texts keep their size, so that a narrow screen has all of them.
func plotSVG(what plotted, p period, end time.Time, points []curve.Point) template.HTML {
	most := 0.0
	for _, o := range points {
		for _, value := range what.of {
			most = max(most, value(o))
		}
	}
	scale := cmp.Or(most, 1)
	y := func(v float64) float64 { return (plotBase - plotTop) * (1 - v/scale) }
	var b strings.Builder
	label := template.HTMLEscapeString(fmt.Sprintf("%s, the last %s: at most %s", what.title, p.Name, what.show(most)))
	fmt.Fprintf(&b, `<svg class="curve" width="100%%" height="112" role="img" aria-label="%s"><title>%s</title>`, label, label)
	fmt.Fprintf(&b, `<svg y="%.0f" width="100%%" height="%.0f" viewBox="0 0 %d %.0f" preserveAspectRatio="none">`, plotTop, plotBase-plotTop, len(points), plotBase-plotTop)
	var gaps strings.Builder
	for at, n := range runs(points, func(o curve.Point) bool { return !o.Known }) {
		fmt.Fprintf(&gaps, "M%d 0h%dv%.0fh-%dz", at, n, plotBase-plotTop, n)
	}
	fmt.Fprintf(&b, `<path class="gap" d="%s"/><path class="line" d="M0 %.0fh%d"/>`, gaps.String(), plotBase-plotTop, len(points))
	for k, value := range what.of {
		var d strings.Builder
		for at, n := range runs(points, func(o curve.Point) bool { return o.Known && (what.quiet == "" || o.Calls > 0) }) {
			fmt.Fprintf(&d, "M%d %.1f", at, y(value(points[at])))
			for m := at; m < at+n; m++ {
				fmt.Fprintf(&d, "V%.1fH%d", y(value(points[m])), m+1)
			}
			if k == 0 {
				fmt.Fprintf(&d, "V%.0fH%dz", plotBase-plotTop, at)
			}
		}
		if d.Len() > 0 {
			fmt.Fprintf(&b, `<path class="of-%d" d="%s"/>`, k, d.String())
		}
	}
	b.WriteString("</svg>")
	if most > 0 {
		fmt.Fprintf(&b, `<text class="most" x="0" y="11">%s</text>`, what.show(most))
	}
	for _, one := range []struct {
		text string
		is   func(curve.Point) bool
	}{{"not measured", func(o curve.Point) bool { return !o.Known }}, {what.quiet, func(o curve.Point) bool { return o.Known && o.Calls == 0 }}} {
		for at, n := range runs(points, one.is) {
			if one.text != "" && 4*n >= len(points) { // there is room for it
				fmt.Fprintf(&b, `<text x="%.1f%%" y="%.0f">%s</text>`, 100*(float64(at)+float64(n)/2)/float64(len(points)), (plotTop+plotBase)/2, one.text)
			}
		}
	}
	writeAxis(&b, p, end, plotBase)
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// runs are the points in a row that are so: where each row begins, and how long it is.
func runs(points []curve.Point, is func(curve.Point) bool) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for at := 0; at < len(points); at++ {
			n := 0
			for at+n < len(points) && is(points[at+n]) {
				n++
			}
			if n > 0 && !yield(at, n) {
				return
			}
			at += n
		}
	}
}

// writeAxis writes the times below a plot whose right edge is now. Where a day begins that is not today, or ends, stands which it is.
func writeAxis(b *strings.Builder, p period, end time.Time, base float64) {
	day := end.Local().Weekday()
	for t := labelsAfter(end.Add(-p.last), p.labels); !t.After(end); t = t.Add(p.labels) {
		at := 100 * (1 - end.Sub(t).Seconds()/p.last.Seconds())
		if at < 9 || at > 86 { // it would be cut, or be where now is
			continue
		}
		text := t.Local().Format("15:04")
		if is := t.Local().Weekday(); is != day {
			text, day = is.String()[:3]+" "+text, is
		}
		fmt.Fprintf(b, `<line class="line" x1="%.1f%%" x2="%.1f%%" y1="%.0f" y2="%.0f"/><text x="%.1f%%" y="%.0f">%s</text>`, at, at, base, base+4, at, base+18, text)
	}
	fmt.Fprintf(b, `<text class="now" x="100%%" y="%.0f">now</text>`, base+18)
}

// secondsText is how long something took; nothing took no time.
func secondsText(s float64) string { return latencyText(curve.Took(float32(s))) }

// sparkSVG is the calls of the last hour, for a table of many; "" if nothing is known of it.
func sparkSVG(c *curve.Curve, now time.Time) template.HTML {
	if c == nil {
		return ""
	}
	hour := c.Last(60, now)
	points := joined(hour, 2)
	scale, most, all := float32(0), float32(0), float32(0)
	for _, o := range hour {
		all, most = all+o.Calls, max(most, o.Calls)
	}
	for _, o := range points {
		scale = max(scale, o.Calls)
	}
	if !slices.ContainsFunc(hour, func(o curve.Point) bool { return o.Known }) {
		return ""
	}
	if all == 0 {
		return "none"
	}
	var d strings.Builder
	for n, o := range points {
		if o.Calls > 0 {
			fmt.Fprintf(&d, "M%d 20v-%.1fh4v%.1fz", 4*n, 20*o.Calls/scale, 20*o.Calls/scale)
		}
	}
	text := fmt.Sprintf("%.0f calls in the last hour, at most %.0f a minute", all, most)
	return template.HTML(fmt.Sprintf(`<svg class="spark" viewBox="0 0 120 20" preserveAspectRatio="none" role="img" aria-label="%s"><title>%s</title><path d="%s"/></svg>`, text, text, d.String()))
}

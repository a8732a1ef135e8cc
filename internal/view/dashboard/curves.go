package dashboard

import (
	"fmt"
	"html/template"
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
	for _, r := range s.Renewals {
		if r.At.Before(oldest) {
			oldest = r.At
		}
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
	Name    string
	Key     string
	Host    string // "": this machine
	Periods []period
	Period  period
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
	v := curvesShown{Name: s.Name, Key: s.Key, Host: s.Host, Periods: periods, Period: p}
	if s.Curve == nil {
		return v
	}
	end := now.Truncate(time.Minute)
	points := s.Curve.Last(int(p.last/time.Minute), now)
	steps := joined(points, int(p.step/time.Minute))
	draw := func(title string, show func(float64) string, of ...func(curve.Point) float64) {
		v.Plots = append(v.Plots, plot{title, plotSVG(title, p, end, steps, show, of)})
	}
	perMinute := func(n float64) string { return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64) }
	draw("calls a minute; the line: those that failed", perMinute, func(o curve.Point) float64 { return float64(o.Calls) }, func(o curve.Point) float64 { return float64(o.Errors) })
	draw("how long half of the calls took at most; the line: 99 of 100", secondsText, func(o curve.Point) float64 { return float64(o.P50) }, func(o curve.Point) float64 { return float64(o.P99) })
	draw("memory", memoryText, func(o curve.Point) float64 { return float64(o.Memory) })
	draw("processors kept busy", perMinute, func(o curve.Point) float64 { return float64(o.CPU) })
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
		row.P50, row.P99, row.Memory, row.CPU = secondsText(float64(worst.P50)), secondsText(float64(worst.P99)), memoryText(float64(worst.Memory)), perMinute(float64(worst.CPU))
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

// plotSVG draws lines over time, the first of them filled. Its right edge is now. A gap is one in the line, too.
func plotSVG(title string, p period, end time.Time, points []curve.Point, show func(float64) string, of []func(curve.Point) float64) template.HTML {
	const left, width, top, base = 70.0, 640.0, 10.0, 90.0
	most := 0.0
	for _, o := range points {
		for _, value := range of {
			most = max(most, value(o))
		}
	}
	scale := most
	if scale == 0 {
		scale = 1
	}
	x := func(n int) float64 { return left + width*float64(n)/float64(len(points)) }
	y := func(v float64) float64 { return base - (base-top)*v/scale }
	var b strings.Builder
	label := template.HTMLEscapeString(fmt.Sprintf("%s, the last %s: at most %s", title, p.Name, show(most)))
	fmt.Fprintf(&b, `<svg class="curve" viewBox="0 0 720 115" role="img" aria-label="%s"><title>%s</title>`, label, label)
	if most > 0 {
		fmt.Fprintf(&b, `<text class="most" x="%.0f" y="%.0f">%s</text>`, left-6, top+5, show(most))
	}
	fmt.Fprintf(&b, `<text class="most" x="%.0f" y="%.0f">0</text>`, left-6, base+4)
	fmt.Fprintf(&b, `<path class="line" d="M%.0f %.0fh%.0f"/>`, left, base, width)
	for t := labelsAfter(end.Add(-p.last), p.labels); !t.After(end); t = t.Add(p.labels) {
		if at := left + width*(1-end.Sub(t).Seconds()/p.last.Seconds()); at < left+width-40 {
			fmt.Fprintf(&b, `<path class="line" d="M%.1f %.0fv4"/><text x="%.1f" y="110">%s</text>`, at, base, at, t.Local().Format("15:04"))
		}
	}
	fmt.Fprintf(&b, `<text x="%.0f" y="110">now</text>`, left+width-12)
	for k, value := range of {
		var d strings.Builder
		for n := 0; n < len(points); n++ {
			if !points[n].Known {
				continue
			}
			begun := n
			fmt.Fprintf(&d, "M%.1f %.1f", x(n), y(value(points[n])))
			for ; n < len(points) && points[n].Known; n++ {
				fmt.Fprintf(&d, "V%.1fH%.1f", y(value(points[n])), x(n+1))
			}
			if k == 0 {
				fmt.Fprintf(&d, "V%.0fH%.1fz", base, x(begun))
			}
		}
		if d.Len() > 0 {
			fmt.Fprintf(&b, `<path class="of-%d" d="%s"/>`, k, d.String())
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// secondsText is how long something took; nothing took no time.
func secondsText(s float64) string { return latencyText(curve.Took(float32(s))) }

func memoryText(bytes float64) string {
	if bytes == 0 {
		return "–"
	}
	return overview.Size(int64(bytes))
}

// sparkSVG is the calls of the last hour, for a table of many; "" if there were none.
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
	if all == 0 {
		return ""
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

package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/curve"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// curveOf is a curve whose last minute is the one before noon.
func curveOf(points ...curve.Point) *curve.Curve {
	return (*curve.Curve)(nil).With(curve.Part{First: noon.Unix()/60 - int64(len(points)), Points: points})
}

// Whoever opens the page of a server sees how it did, in numbers, too; a minute in which outlive did not run is a gap.
func TestCurvesOfAServer(t *testing.T) {
	points := make([]curve.Point, 70)
	for n := range points {
		if n >= 30 && n < 40 {
			continue
		}
		points[n] = curve.Point{Known: true, Calls: 10, Errors: 1, P50: 0.01, P99: 0.5, Memory: 34 << 20, CPU: 0.5}
	}
	points[69].Calls = 60
	s := overview.State{At: noon, Servers: []overview.Server{{Key: "till@7", Name: "till", Health: overview.Good, State: "ready", Curve: curveOf(points...)}}}
	c, at, _ := open(t, Options{Source: &fixed{state: s}})
	for path, want := range map[string][]string{
		"/server/till@7":         {"How it did in the last 6h", "calls a minute (filled), and those that failed (line), the last 6h: at most 60"}, // it was called for longer than an hour
		"/server/till@7?last=1h": {"How it did in the last 1h", "Measured: 50 min of the last 1h, from 11:00:00 on; calls in 50 of these minutes, 50 of 550 failed. Grey was not measured", "one in 100 more than the line (p99), the last 1h: at most 500 ms", "memory, the last 1h: at most 34 MiB", "processors kept busy", "11:55:00 100 5 10 ms 500 ms 34 MiB 0.5", "11:15 ", "now"},
		"/server/till@7?last=x":  {"How it did in the last 6h"},
		"/":                      {"550 calls in the last hour, at most 60 a minute"},
	} {
		_, page := get(t, c, at+path)
		text, _, _ := parsed(t, page)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not say %q:\n%s", path, w, text)
			}
		}
	}
	calls := string(curvesOf(s.Servers[0], periods[0], noon).Plots[0].SVG)
	if !strings.Contains(calls, `class="gap" d="M20 0h10v76h-10z"`) || strings.Count(calls, "zM") != 1 {
		t.Errorf("the ten minutes without outlive are no gap: %s", calls)
	}
	if !strings.Contains(calls, "H60V76H30z") {
		t.Errorf("the last minute does not end at the right edge: %s", calls)
	}
}

// Whoever asks whether it was slow yesterday evening learns whether it was called then, and whether anything was measured, on every width
// of the page.
func TestAPlotSaysWhatIsNotKnown(t *testing.T) {
	points := make([]curve.Point, 45)
	for n := range points {
		points[n] = curve.Point{Known: true, Memory: 1 << 20}
		if n >= 30 {
			points[n].Calls, points[n].P50, points[n].P99 = 4, 0.1, 2
		}
	}
	one := overview.Server{Key: "till@7", Name: "till", Curve: curveOf(points...)}
	shown := curvesOf(one, periods[0], noon)
	if want := "Measured: 45 min of the last 1h, from 11:15:00 on; calls in 15 of these minutes, 0 of 60 failed. Grey"; !strings.HasPrefix(shown.Noted, want) {
		t.Errorf("it says %q, want %q", shown.Noted, want)
	}
	for n, plot := range shown.Plots {
		svg := string(plot.SVG)
		if !strings.Contains(svg, ">not measured<") || strings.Contains(svg, ">no calls<") != (n < 2) {
			t.Errorf("%s: it does not say what it does not know: %s", plot.Title, svg)
		}
		if !strings.HasPrefix(svg, `<svg class="curve" width="100%"`) || !strings.Contains(svg, `<text x="50.0%"`) || !strings.Contains(svg, ">11:30</text>") {
			t.Errorf("%s: it does not fit the page, or has no times: %s", plot.Title, svg)
		}
	}
	if svg := string(shown.Plots[1].SVG); !strings.Contains(svg, ">2.0 s</text>") || strings.Contains(svg, `class="of-0" d="M15 `) {
		t.Errorf("calls took at most 2 s, and none while there were none: %s", svg)
	}
	evening := curvesOf(one, periods[2], noon).Plots[0].SVG
	if !strings.Contains(string(evening), ">Sun 18:00</text>") || !strings.Contains(string(evening), ">Mon 00:00</text>") || !strings.Contains(string(evening), ">06:00</text>") {
		t.Errorf("it does not say which evening it was: %s", evening)
	}
	if spark := sparkSVG(curveOf(points[:30]...), noon); spark != "none" {
		t.Errorf("an hour without calls is %q in the overview", spark)
	}
}

// A slow spell stands above the plots in words: when it was, how slow, and how it is otherwise.
func TestASlowSpellInWords(t *testing.T) {
	points := make([]curve.Point, 600)
	for n := range points {
		points[n] = curve.Point{Known: true, Calls: 20, P50: 0.05, P99: 0.3}
		if n >= 100 && n < 190 && n != 150 || n == 400 {
			points[n].P99, points[n].Errors = 4.2, 1
		}
	}
	want := "Slow from 03:40 to 05:10: at worst one call in 100 took more than 4.2 s, where 300 ms is usual; 89 of 1780 calls failed then."
	if got := curvesOf(overview.Server{Curve: curveOf(points...)}, periods[2], noon).Slow; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := curvesOf(overview.Server{Curve: curveOf(points...)}, periods[0], noon).Slow; got != "" {
		t.Errorf("in an hour like all others: %q", got)
	}
	if got := curvesOf(overview.Server{Curve: curveOf(points[85:110]...)}, periods[2], noon).Slow; got != "" {
		t.Errorf("of a server that was called for 25 minutes: %q", got)
	}
}

// What is below each other on the page of a server is of the same time.
func TestAStripAndAPlotLineUp(t *testing.T) {
	now := noon.Add(4 * time.Minute) // the last quarter of an hour has begun
	points := make([]curve.Point, 720)
	for n := range points {
		points[n] = curve.Point{Known: true, Calls: 1}
	}
	spans := []overview.Span{{From: noon.Add(15*time.Minute - overview.Day), To: noon.Add(-12 * time.Hour)}, {From: noon.Add(-12 * time.Hour), To: noon.Add(15 * time.Minute), Health: overview.Good}}
	one := overview.Server{Curve: curveOf(points...)} // from midnight on
	strip, plot := string(stripSVG(spans, "till", now)), string(curvesOf(one, periods[2], now).Plots[0].SVG)
	times := func(svg string) string {
		_, below, _ := strings.Cut(svg, "</svg>")
		return strings.ReplaceAll(strings.ReplaceAll(below[strings.Index(below, "<line"):], `"58"`, "y"), `"110"`, "y")
	}
	if a, b := times(strip), times(plot); strings.Count(a, "%") == 0 || strings.Join(strings.Split(a, `y1="40" y2="44"`), "") != strings.Join(strings.Split(b, `y1="92" y2="96"`), "") {
		t.Errorf("below the strip stands\n%s\nand below the plot\n%s", a, b)
	}
	if !strings.Contains(strip, `class="h-good" x="143.2"`) || !strings.Contains(plot, `class="of-0" d="M179 `) { // 11 h 56 min of 24 h
		t.Errorf("midnight is not at one place: %s\n%s", strip, plot)
	}
}

// Eleven kills in seven minutes are eleven marks on an axis that fits.
func TestAnAxisThatFits(t *testing.T) {
	one := overview.Server{Key: "till@7"}
	for n := range 11 {
		one.Renewals = append(one.Renewals, overview.Renewal{At: noon.Add(-time.Duration(n) * 40 * time.Second), Cause: "crash"})
	}
	p := periodOf("", one, noon)
	if p.Name != "1h" {
		t.Fatalf("the axis has %s", p.Name)
	}
	places := map[string]bool{}
	for part := range strings.SplitSeq(string(axisSVG(one.Renewals, p, noon)), `class="unplanned" x="`) {
		if x, _, is := strings.Cut(part, `%"`); is && !strings.HasPrefix(x, "<svg") {
			places[x] = true
		}
	}
	if len(places) != 11 {
		t.Errorf("%d marks: %v", len(places), places)
	}
	one.Renewals = append(one.Renewals, overview.Renewal{At: noon.Add(-7 * time.Hour)})
	if p := periodOf("", one, noon); p.Name != "24h" {
		t.Errorf("with one in the morning the axis has %s", p.Name)
	}
}

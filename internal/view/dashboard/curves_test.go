package dashboard

import (
	"fmt"
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
		"/server/till@7":         {"How it did in the last 6h", "calls a minute; the line: those that failed, the last 6h: at most 60"}, // it was called for longer than an hour
		"/server/till@7?last=1h": {"How it did in the last 1h", "the line: 99 of 100, the last 1h: at most 500 ms", "memory, the last 1h: at most 34 MiB", "processors kept busy", "11:55:00 100 5 10 ms 500 ms 34 MiB 0.5", "11:15 ", "now"},
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
	shown := curvesOf(s.Servers[0], periods[0], noon)
	if d := string(shown.Plots[0].SVG); strings.Count(d, "z\"") != 1 || strings.Count(d, "zM") != 1 {
		t.Errorf("the ten minutes without outlive are no gap: %s", d)
	}
	if !strings.Contains(string(shown.Plots[0].SVG), "H710.0") {
		t.Errorf("the last minute does not end at the right edge: %s", shown.Plots[0].SVG)
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
	for part := range strings.SplitSeq(string(axisSVG(one.Renewals, p, noon)), `<line x1="`) {
		if x, _, is := strings.Cut(part, `"`); is && !strings.HasPrefix(x, "<svg") {
			var at float64
			if _, err := fmt.Sscan(x, &at); err != nil {
				t.Fatal(err)
			}
			places[fmt.Sprintf("%.0f", at)] = true
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

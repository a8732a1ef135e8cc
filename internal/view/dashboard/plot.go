package dashboard

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// stripHeight is how high a state is in a strip: what is wrong is higher.
var stripHeight = [...]float64{overview.Unknown: 2, overview.Idle: 4, overview.Good: 8, overview.Busy: 11, overview.Warn: 14, overview.Bad: 16}

// stripSVG is the last 24 hours as a strip above its times, as wide as the plots of a day. What is wrong is higher, and of another colour;
// restarts are ticks above it, as wide on each screen. The label says the same for those who do not see it.
func stripSVG(spans []overview.Span, name string, now time.Time) template.HTML {
	if len(spans) == 0 {
		return ""
	}
	const base = 40.0
	day, end := periods[len(periods)-1], now.Truncate(time.Minute)
	at := func(t time.Time) float64 { return min(288, max(0, 288*(1-end.Sub(t).Seconds()/day.last.Seconds()))) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="axis" width="100%%" height="62" role="img" aria-label="%s">`,
		template.HTMLEscapeString("The last 24 hours of "+name+": "+summary(spans)))
	fmt.Fprintf(&b, `<svg class="strip" width="100%%" height="%.0f" viewBox="0 0 288 20" preserveAspectRatio="none">`, base)
	for _, s := range spans {
		text := template.HTMLEscapeString(spanText(s, spans[len(spans)-1].To))
		height := stripHeight[s.Health]
		fmt.Fprintf(&b, `<rect class="h-%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s</title></rect>`,
			s.Health, at(s.From), 20-height, at(s.To)-at(s.From), height, text)
		if s.Restarts > 0 {
			x := min(at(s.From.Add(s.To.Sub(s.From)/2)), 285) // the last one is to be seen whole
			fmt.Fprintf(&b, `<path class="mark" d="M%.1f 0v4"><title>%s</title></path>`, x, text)
		}
	}
	b.WriteString("</svg>")
	writeAxis(&b, day, end, base)
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// stripRowSVG is a strip for a table of many: one shape for each state, and what it says as one title. Each part by itself has its title on the
// page of the server or agent.
func stripRowSVG(spans []overview.Span, name string) template.HTML {
	if len(spans) == 0 {
		return ""
	}
	from := spans[0].From
	quarter := func(t time.Time) int { return int(t.Sub(from) / (15 * time.Minute)) } // three units wide
	var shapes [len(stripHeight)]strings.Builder
	var marks strings.Builder
	for _, s := range spans {
		x, w := 3*quarter(s.From), 3*(quarter(s.To)-quarter(s.From))
		fmt.Fprintf(&shapes[s.Health], "M%d 20h%dv-%gh-%dz", x, w, stripHeight[s.Health], w)
		if s.Restarts > 0 {
			fmt.Fprintf(&marks, "M%d 0v4", min(x+w/2, 285))
		}
	}
	text := template.HTMLEscapeString("The last 24 hours of " + name + ": " + summary(spans))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="strip" viewBox="0 0 288 20" preserveAspectRatio="none" role="img" aria-label="%s"><title>%s</title>`, text, text)
	for h := range shapes {
		if shapes[h].Len() > 0 {
			fmt.Fprintf(&b, `<path class="h-%s" d="%s"/>`, overview.Health(h), shapes[h].String())
		}
	}
	if marks.Len() > 0 {
		fmt.Fprintf(&b, `<path class="mark" d="%s"/>`, marks.String())
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// endsOf are times below strips in a table: where they begin, the middle, and now.
func endsOf(now time.Time) []string {
	from := overview.StripFrom(now)
	return []string{overview.Minute(from, now), from.Add(overview.Day / 2).Local().Format("15:04"), "now"}
}

// spanText is one stretch of a strip in words. The last one ends now, somewhere in its quarter of an hour.
func spanText(s overview.Span, end time.Time) string {
	until := s.To.Local().Format("15:04")
	if s.To.Equal(end) {
		until = "now"
	}
	text := fmt.Sprintf("%s to %s: %s", s.From.Local().Format("15:04"), until, s.Health.Word())
	if s.Restarts > 0 {
		text += fmt.Sprintf(", restarted %d ×", s.Restarts)
	}
	return text
}

// summary is a strip in a few words.
func summary(spans []overview.Span) string {
	var in [6]time.Duration
	restarts := 0
	for _, s := range spans {
		in[s.Health] += s.To.Sub(s.From)
		restarts += s.Restarts
	}
	var words []string
	for _, h := range []overview.Health{overview.Bad, overview.Warn, overview.Busy, overview.Good, overview.Idle} {
		if in[h] > 0 {
			words = append(words, h.Word()+" "+overview.Took(in[h]))
		}
	}
	if restarts > 0 {
		words = append(words, fmt.Sprintf("%d restarts", restarts))
	}
	if words == nil {
		return "nothing known"
	}
	return strings.Join(words, ", ")
}

// axisSVG are restarts on a time axis of the last time: how long each took, and by its shape whether it was planned. Its right edge is now.
func axisSVG(list []overview.Renewal, p period, now time.Time) template.HTML {
	const base = 70.0
	now = now.Truncate(p.step) // or it would be another one every second
	from := now.Add(-p.last)
	longest := time.Second
	for _, r := range list {
		longest = max(longest, r.Took)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="axis" width="100%%" height="96" role="img" aria-label="%d restarts in the last %s; the table below has each">`, len(list), p.Name)
	fmt.Fprintf(&b, `<text class="most" x="0" y="11">%s</text><line class="line" x1="0" x2="100%%" y1="%.0f" y2="%.0f"/>`, overview.Took(longest), base, base)
	for _, r := range list {
		if r.At.Before(from) {
			continue
		}
		at, y := min(99.5, max(0.5, 100*r.At.Sub(from).Seconds()/p.last.Seconds())), base-8-42*float64(r.Took)/float64(longest)
		kind, mark := "planned", fmt.Sprintf(`<circle cy="%.1f" r="3"/>`, y)
		if r.Unplanned() {
			kind, mark = "unplanned", fmt.Sprintf(`<path d="M-3 %.1fl6 6m0 -6l-6 6"/>`, y-3)
		}
		fmt.Fprintf(&b, `<svg class="%s" x="%.2f%%"><title>%s</title><line y1="%.1f" y2="%.0f"/>%s</svg>`, kind, at, template.HTMLEscapeString(r.Text(now)), y, base, mark)
	}
	writeAxis(&b, p, now, base)
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

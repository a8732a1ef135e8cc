package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The plot is horizontal bars in panels: names are long, and figures stand at
// the end of their bars.
const (
	plotWidth  = 860
	labelWidth = 250
	barsWidth  = 480
	barHeight  = 16
	groupGap   = 14
	textFont   = `font-family="system-ui,sans-serif"`
)

// The colours are told apart in grey and by the colour-blind too.
const (
	floorColour   = "#8a99ab"
	outliveColour = "#0b7285"
	inkColour     = "#1b2733"
	faintColour   = "#5c6b7a"
)

// bar is one figure; Reach, when it is greater, is drawn behind it, paler.
type bar struct {
	Colour string
	Value  float64
	Reach  float64
	Text   string
}

// group is the bars of one label.
type group struct {
	Label string
	Bars  []bar
}

// panel is groups on one scale.
type panel struct {
	Title  string
	Legend []bar // Text names the Colour
	Groups []group
}

// plot draws the results as an SVG document.
func plot(r *results) string {
	var body strings.Builder
	y := 16.0
	for _, p := range []panel{latencyPanel(r), gapPanel(r)} {
		if len(p.Groups) > 0 {
			y = p.draw(&body, y)
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img">`+
		"\n<title>What outlive adds to a call, and how long a restart takes</title>\n"+
		`<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n%s</svg>\n", plotWidth, y, plotWidth, y, body.String())
}

// latencyPanel shows the scenarios with one call under way: there the relay
// alone decides.
func latencyPanel(r *results) panel {
	p := panel{
		Title: "Added latency, µs: p50, and p99 in the paler part",
		Legend: []bar{
			{Colour: floorColour, Text: "fastest plain byte relay (floor)"},
			{Colour: outliveColour, Text: "outlive, everything on"},
		},
	}
	for _, row := range r.Latency {
		// A line of 1 MB would stretch the scale until nothing else can be seen.
		if row.InFlight != 1 || row.Size >= 1<<20 {
			continue
		}
		label := sizeName(row.Size) + ", back to back"
		if row.Think {
			label = fmt.Sprintf("%s, %d ms between calls", sizeName(row.Size), thinkTime.Milliseconds())
		}
		p.Groups = append(p.Groups, group{Label: label, Bars: []bar{
			latencyBar(row, floor, floorColour), latencyBar(row, outlive, outliveColour),
		}})
	}
	return p
}

func latencyBar(row latencyRow, way int, colour string) bar {
	p50, p99 := row.addedP50(way), row.addedP99(way)
	return bar{Colour: colour, Value: p50, Reach: p99, Text: number(p50) + " · " + number(p99)}
}

// gapPanel shows each server's cold start beside the gap that a client sees.
func gapPanel(r *results) panel {
	p := panel{
		Title: "Server killed with SIGKILL: ms until the next call is answered",
		Legend: []bar{
			{Colour: floorColour, Text: "the server's own cold start"},
			{Colour: outliveColour, Text: "gap behind outlive"},
		},
	}
	for _, g := range r.Gaps {
		p.Groups = append(p.Groups, group{Label: g.Server, Bars: []bar{
			{Colour: floorColour, Value: g.Cold, Text: number(g.Cold)},
			{Colour: outliveColour, Value: g.Gap, Text: number(g.Gap)},
		}})
	}
	return p
}

// draw writes the panel from y on and returns where the next one begins.
func (p panel) draw(out *strings.Builder, y float64) float64 {
	y += 14
	text(out, 16, y, "start", 15, inkColour, "600", p.Title)
	y += 22
	x := 16.0
	for _, entry := range p.Legend {
		fmt.Fprintf(out, `<rect x="%.0f" y="%.0f" width="12" height="12" fill="%s"/>`+"\n", x, y-10, entry.Colour)
		text(out, x+18, y, "start", 12, faintColour, "400", entry.Text)
		x += 18 + 7*float64(len(entry.Text)) + 20
	}
	y += 16
	scale := barsWidth / p.top()
	for _, g := range p.Groups {
		middle := y + float64(len(g.Bars)*barHeight)/2 + 4
		text(out, labelWidth-10, middle, "end", 12, inkColour, "400", g.Label)
		for _, b := range g.Bars {
			end := b.draw(out, y, scale)
			text(out, end+6, y+barHeight-4, "start", 11, faintColour, "400", b.Text)
			y += barHeight
		}
		y += groupGap
	}
	return y + 10
}

// draw writes the bar and returns where it ends.
func (b bar) draw(out *strings.Builder, y, scale float64) float64 {
	length := drawable(b.Value) * scale
	reach := max(drawable(b.Reach)*scale, length)
	if reach > length {
		fmt.Fprintf(out, `<rect x="%d" y="%.0f" width="%.1f" height="%d" fill="%s" opacity="0.35"/>`+"\n",
			labelWidth, y+1, reach, barHeight-2, b.Colour)
	}
	fmt.Fprintf(out, `<rect x="%d" y="%.0f" width="%.1f" height="%d" fill="%s"/>`+"\n",
		labelWidth, y+1, max(length, 1), barHeight-2, b.Colour)
	return labelWidth + max(reach, 1)
}

// top is the greatest value of the panel, which takes the full width.
func (p panel) top() float64 {
	top := 0.0
	for _, g := range p.Groups {
		for _, b := range g.Bars {
			top = max(top, drawable(b.Value), drawable(b.Reach))
		}
	}
	if top == 0 {
		return 1
	}
	return top
}

// drawable is the length of a bar: a figure that is negative, by noise, or
// missing has none.
func drawable(value float64) float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0
	}
	return max(value, 0)
}

func text(out *strings.Builder, x, y float64, anchor string, size int, colour, weight, content string) {
	fmt.Fprintf(out, `<text x="%.0f" y="%.0f" text-anchor="%s" font-size="%d" fill="%s" font-weight="%s" %s>%s</text>`+"\n",
		x, y, anchor, size, colour, weight, textFont, html.EscapeString(content))
}

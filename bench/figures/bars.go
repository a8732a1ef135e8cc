package figures

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The plot is horizontal bars in panels: names are long, and figures stand at the end of their bars.
const (
	plotWidth  = 860
	labelWidth = 250
	barsWidth  = 480
	barHeight  = 16
	groupGap   = 14
	textFont   = `font-family="system-ui,sans-serif"`
	inkColour  = "#1b2733"
	faintInk   = "#5c6b7a"
)

// The colours of what outlive is compared with and of outlive itself. They are told apart in grey and by the colour-blind too.
const (
	OtherColour   = "#8a99ab"
	OutliveColour = "#0b7285"
)

// Bar is one figure; Reach, when it is greater, is drawn behind it, paler.
type Bar struct {
	Colour string
	Value  float64
	Reach  float64
	Text   string
}

// Group is the bars of one label.
type Group struct {
	Label string
	Bars  []Bar
}

// Panel is groups on one scale.
type Panel struct {
	Title  string
	Legend []Bar // Text names the Colour
	Groups []Group
}

// Plot draws panels as an SVG document; those without groups are left out.
func Plot(title string, panels ...Panel) string {
	var body strings.Builder
	y := 16.0
	for _, p := range panels {
		if len(p.Groups) > 0 {
			y = p.draw(&body, y)
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img">`+
		"\n<title>%s</title>\n"+`<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n%s</svg>\n",
		plotWidth, y, plotWidth, y, html.EscapeString(title), body.String())
}

// draw writes the panel from y on and returns where the next one begins.
func (p Panel) draw(out *strings.Builder, y float64) float64 {
	y += 14
	text(out, 16, y, "start", 15, inkColour, "600", p.Title)
	y += 22
	if len(p.Legend) > 0 {
		p.drawLegend(out, y)
		y += 16
	}
	scale := barsWidth / p.top()
	for _, g := range p.Groups {
		middle := y + float64(len(g.Bars)*barHeight)/2 + 4
		text(out, labelWidth-10, middle, "end", 12, inkColour, "400", g.Label)
		for _, b := range g.Bars {
			end := b.draw(out, y, scale)
			text(out, end+6, y+barHeight-4, "start", 11, faintInk, "400", b.Text)
			y += barHeight
		}
		y += groupGap
	}
	return y + 10
}

// drawLegend writes the legend as one line.
func (p Panel) drawLegend(out *strings.Builder, y float64) {
	x := 16.0
	for _, entry := range p.Legend {
		fmt.Fprintf(out, `<rect x="%.0f" y="%.0f" width="12" height="12" fill="%s"/>`+"\n", x, y-10, entry.Colour)
		text(out, x+18, y, "start", 12, faintInk, "400", entry.Text)
		x += 18 + 7*float64(len(entry.Text)) + 20
	}
}

// draw writes the bar and returns where it ends.
func (b Bar) draw(out *strings.Builder, y, scale float64) float64 {
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
func (p Panel) top() float64 {
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

// drawable is the length of a bar: a figure that is negative, by noise, or missing has none.
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

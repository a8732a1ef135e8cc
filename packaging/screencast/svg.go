package main

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sizes in the picture's units, which are pixels where it is not scaled.
const (
	lineHeight = 20
	charWidth  = 843 // hundredths, of the usual fonts of terminals at fontSize
	fontSize   = 14
	margin     = 18
)

// span is a line of text that stands in a row for a part of the time.
type span struct {
	row      int
	text     string
	from, to time.Duration
}

// spansOf takes the frames apart, so that what stays is written once.
func spansOf(frames []frame, end time.Duration) []span {
	var all []span
	open := map[int]int{} // row → its span in all
	for _, f := range frames {
		for row := range max(len(f.lines), len(open)) {
			text := ""
			if row < len(f.lines) {
				text = f.lines[row]
			}
			i, there := open[row]
			if there && all[i].text == text {
				continue
			}
			if there {
				all[i].to = f.at
			}
			open[row] = len(all)
			all = append(all, span{row, text, f.at, end})
		}
	}
	return slices.DeleteFunc(all, func(s span) bool { return s.text == "" || s.from == s.to })
}

// picture is the recording as an SVG that begins anew when it is over. Who wants no motion sees its last screen.
func picture(frames []frame, end time.Duration, title, description string) string {
	rows := 0
	for _, f := range frames {
		rows = max(rows, len(f.lines))
	}
	width, height := columns*charWidth/100+2*margin, rows*lineHeight+2*margin
	spans := spansOf(frames, end)
	var b, text strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-labelledby=\"title description\">\n", width, height, width, height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"description\">%s</desc>\n<style>\n", escaped(title), escaped(description))
	fmt.Fprintf(&b, "text{font:%dpx ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;fill:#d5dbe3;white-space:pre}\n", fontSize)
	fmt.Fprintf(&b, ".s{visibility:hidden;animation:%.2fs step-end infinite}\n", end.Seconds())
	for i, s := range spans {
		fmt.Fprintf(&text, "<text class=\"s%s\" id=\"s%d\" x=\"%d\" y=\"%d\" xml:space=\"preserve\">%s</text>\n", lasting(s, end), i, margin, margin+s.row*lineHeight+fontSize, escaped(s.text))
		fmt.Fprintf(&b, "#s%d{animation-name:k%d}@keyframes k%d{%s}\n", i, i, i, keyframes(s, end))
	}
	b.WriteString("@media (prefers-reduced-motion:reduce){.s{animation:none}.last{visibility:visible}}\n</style>\n")
	fmt.Fprintf(&b, "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#14181f\"/>\n%s</svg>\n", text.String())
	return b.String()
}

// lasting marks what the last screen shows.
func lasting(s span, end time.Duration) string {
	if s.to == end {
		return " last"
	}
	return ""
}

// keyframes say when a span is to be seen.
func keyframes(s span, end time.Duration) string {
	percent := func(d time.Duration) string { return fmt.Sprintf("%.2f%%", 100*float64(d)/float64(end)) }
	text := percent(s.from) + "{visibility:visible}"
	if s.from > 0 {
		text = "0%{visibility:hidden}" + text
	}
	if s.to < end {
		text += percent(s.to) + "{visibility:hidden}"
	}
	return text
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes all
	return b.String()
}

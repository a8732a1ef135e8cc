package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// pageSection is what the benchmark writes of the page; the rest is the author's.
const pageSection = "bench"

const newPage = `# Benchmarks

What it costs to have outlive between a client and its server, side by side with no relay at all and with a
plain byte relay in Go, which knows nothing of messages. Everything between the markers is written by ` + "`go run ./bench`" + `.
`

// errMarkers means that the page has lost its markers.
var errMarkers = errors.New("the page has no <!-- bench:begin --> … <!-- bench:end -->")

// writeDocs writes the plot and the measured part of the page.
func writeDocs(dir string, r *results) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "benchmarks.svg"), []byte(plot(r)), 0o644); err != nil {
		return fmt.Errorf("write plot: %w", err)
	}
	fresh := figures.AppendSection(newPage, pageSection, "")
	return figures.RewritePage(filepath.Join(dir, "BENCHMARKS.md"), fresh, func(page string) (string, error) {
		return withMeasured(page, section(r))
	})
}

// withMeasured puts section between its markers, which the author has placed.
func withMeasured(page, section string) (string, error) {
	text, ok := figures.ReplaceSection(page, pageSection, section)
	if !ok {
		return "", errMarkers
	}
	return text, nil
}

// section is the measured part of the page.
func section(r *results) string {
	var out strings.Builder
	out.WriteString("![Added latency and restart gap](benchmarks.svg)\n\n")
	fmt.Fprintf(&out, "Measured on %s, in %s.\n\n", r.Machine, r.Took.Round(time.Second))
	out.WriteString("`direct` has no relay in between; `floor` is `bench/floor`, one thread that copies bytes and knows nothing of messages (a ratio below 1 says that outlive added less than it); " +
		"`outlive` is `outlive run` with everything on. All three take turns in one run, against the same server (`bench/echo`), " +
		"with new processes in each round; figures are means over the middle half of the blocks. " +
		"On another machine the figures differ; the ratios are what should stay.\n\n")
	for _, t := range tables(r) {
		out.WriteString(t.Markdown() + "\n")
	}
	out.WriteString("### How to reproduce\n\n```sh\n" +
		"go run ./bench              # everything; rewrites this section\n" +
		"go run ./bench -quick       # what is promised, in half a minute\n" +
		"go run ./bench -check       # exits 1 when a promise is broken\n" +
		"go run ./bench -restarts 10000\n" +
		"go run ./bench -server 'Python SDK=python3 server.py' -server 'TypeScript SDK=node server.js'\n" +
		"go run ./bench -launcher 'npx server-everything=npx -y @modelcontextprotocol/server-everything'\n" +
		"go run ./bench -only reloads -reloads 500\n" +
		"```\n\nLeave the machine alone meanwhile: with a busy core the spread grows and p99 means little.\n")
	return out.String()
}

// plot draws the results as an SVG document.
func plot(r *results) string {
	return figures.Plot("What outlive adds to a call, and how long a restart takes", latencyPanel(r), gapPanel(r))
}

// latencyPanel shows the scenarios with one call under way: there the relay
// alone decides.
func latencyPanel(r *results) figures.Panel {
	p := figures.Panel{
		Title: "Added latency, µs: p50, and p99 in the paler part",
		Legend: []figures.Bar{
			{Colour: figures.OtherColour, Text: "plain byte relay (floor)"},
			{Colour: figures.OutliveColour, Text: "outlive, everything on"},
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
		p.Groups = append(p.Groups, figures.Group{Label: label, Bars: []figures.Bar{
			latencyBar(row, floor, figures.OtherColour), latencyBar(row, outlive, figures.OutliveColour),
		}})
	}
	return p
}

func latencyBar(row latencyRow, way int, colour string) figures.Bar {
	p50, p99 := row.addedP50(way), row.addedP99(way)
	return figures.Bar{Colour: colour, Value: p50, Reach: p99, Text: figures.Number(p50) + " · " + figures.Number(p99)}
}

// gapPanel shows each server's cold start beside the gap that a client sees.
func gapPanel(r *results) figures.Panel {
	p := figures.Panel{
		Title: "Server killed with SIGKILL: ms until the next call is answered",
		Legend: []figures.Bar{
			{Colour: figures.OtherColour, Text: "the server's own cold start"},
			{Colour: figures.OutliveColour, Text: "gap behind outlive"},
		},
	}
	for _, g := range r.Gaps {
		p.Groups = append(p.Groups, figures.Group{Label: g.Server, Bars: []figures.Bar{
			{Colour: figures.OtherColour, Value: g.Cold, Text: figures.Number(g.Cold)},
			{Colour: figures.OutliveColour, Value: g.Gap, Text: figures.Number(g.Gap)},
		}})
	}
	return p
}

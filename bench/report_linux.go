package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// outcome is what one measurement found out.
type outcome struct {
	promises []promise
	tables   []figures.Table
	panels   []figures.Panel
}

// promise is one figure that outlive vows to keep.
type promise struct {
	name  string
	got   float64
	limit float64
	unit  string
	least bool // got must be at least limit; otherwise at most
}

// kept is false for what was not measured, which is NaN.
func (p promise) kept() bool {
	if p.least {
		return p.got >= p.limit
	}
	return p.got <= p.limit
}

func (p promise) bound() string {
	sign := "≤"
	if p.least {
		sign = "≥"
	}
	return fmt.Sprintf("%s %.4g%s", sign, p.limit, p.unit)
}

// report is everything that one run of a part found out.
type report struct {
	part          part
	machine       figures.Machine
	before, after string // what else the machine did
	took          time.Duration
	note          string
	missing       []string
	failures      []string // what could not be measured, and why
	outcome
}

func (r *report) add(o outcome) {
	r.promises = append(r.promises, o.promises...)
	r.tables = append(r.tables, o.tables...)
	r.panels = append(r.panels, o.panels...)
}

// all are the tables with the promises before them.
func (r *report) all() []figures.Table {
	if len(r.promises) == 0 {
		return r.tables
	}
	t := figures.Table{Title: "What is promised", Rows: [][]string{{"figure", "measured", "promised", "kept"}}}
	for _, p := range r.promises {
		kept := "yes"
		if !p.kept() {
			kept = "**no**"
		}
		t.Rows = append(t.Rows, []string{p.name, figures.Number(p.got) + p.unit, p.bound(), kept})
	}
	return append([]figures.Table{t}, r.tables...)
}

// absent says who and what was not measured.
func (r *report) absent() string {
	var out strings.Builder
	if len(r.missing) > 0 {
		fmt.Fprintf(&out, "Not there to be measured: %s.\n", strings.Join(r.missing, "; "))
	}
	if len(r.failures) > 0 {
		fmt.Fprintf(&out, "Failed, so its cells are empty: %s.\n", strings.Join(r.failures, "; "))
	}
	return out.String()
}

// terminal is the report as text.
func (r *report) terminal() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s; measured in %s; %s before it, %s after it\n", r.machine, r.took.Round(time.Second), r.before, r.after)
	for _, t := range r.all() {
		out.WriteString(strings.ReplaceAll(t.Plain(), "**", ""))
	}
	fmt.Fprintf(&out, "\n%s", r.absent())
	return out.String()
}

// section is the part's section of the page.
func (r *report) section() string {
	var out strings.Builder
	fmt.Fprintf(&out, "## %s\n\n", r.part.title)
	if r.part.plot != "" {
		fmt.Fprintf(&out, "![%s](%s)\n\n", r.part.plotTitle, r.part.plot)
	}
	fmt.Fprintf(&out, "Measured on %s, in %s, by `go run ./bench %s`; %s before it, %s after it.\n\n", r.machine, r.took.Round(time.Second), r.part.name, r.before, r.after)
	if more := strings.TrimSpace(strings.ReplaceAll(r.absent(), "\n", " ") + r.note); more != "" {
		out.WriteString(more + "\n\n")
	}
	for _, t := range r.all() {
		out.WriteString(t.Markdown() + "\n")
	}
	return out.String()
}

// write writes the plot and the section of the page.
func (r *report) write(docs string) error {
	if r.part.plot != "" {
		if err := os.WriteFile(filepath.Join(docs, r.part.plot), []byte(figures.Plot(r.part.plotTitle, r.panels...)), 0o644); err != nil {
			return fmt.Errorf("write plot: %w", err)
		}
	}
	return figures.WriteSection(filepath.Join(docs, "BENCHMARKS.md"), r.part.name, r.section())
}

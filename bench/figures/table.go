package figures

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// Table is one block of the report. The first row is the heading; the first
// column is text and the others are figures.
type Table struct {
	Title string
	Note  string
	Rows  [][]string
}

// Add adds a row. Figures of type float64 are written by [Number], everything else as it is.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if figure, is := cell.(float64); is {
			row[i] = Number(figure)
		} else {
			row[i] = fmt.Sprint(cell)
		}
	}
	t.Rows = append(t.Rows, row)
}

// Plain writes the table for a terminal.
func (t Table) Plain() string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s\n", t.Title)
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range t.Rows {
		fmt.Fprintln(columns, "  "+strings.Join(row, "\t"))
	}
	columns.Flush()
	return out.String()
}

// Markdown writes the table for a page.
func (t Table) Markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "### %s\n\n", t.Title)
	if t.Note != "" {
		fmt.Fprintf(&out, "%s\n\n", t.Note)
	}
	for i, row := range t.Rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&out, "|---|%s\n", strings.Repeat("---:|", len(row)-1))
		}
	}
	return out.String()
}

// Number writes a figure with three significant digits, thousands apart, and
// "–" for what was not measured.
func Number(value float64) string {
	if value != value {
		return "–"
	}
	text := fmt.Sprintf("%.0f", value)
	switch size := max(value, -value); {
	case size < 10:
		text = fmt.Sprintf("%.2f", value)
	case size < 100:
		text = fmt.Sprintf("%.1f", value)
	}
	digits := strings.TrimPrefix(text, "-")
	if utf8.RuneCountInString(digits) > 4 && !strings.Contains(digits, ".") {
		text = strings.TrimSuffix(text, digits) + grouped(digits)
	}
	return strings.Replace(text, "-", "−", 1)
}

// grouped puts a narrow space between groups of three digits.
func grouped(digits string) string {
	var out strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteRune('\u202f')
		}
		out.WriteRune(digit)
	}
	return out.String()
}

// Ratio writes a over b as "1.23 ×".
func Ratio(a, b float64) string {
	if b <= 0 || a != a || b != b {
		return "–"
	}
	return fmt.Sprintf("%.2f ×", a/b)
}

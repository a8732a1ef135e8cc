package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/latency"
)

// ContentType is that of Prometheus' text format.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// kind is a type of metric in Prometheus' words.
type kind string

const (
	gauge     kind = "gauge"
	counter   kind = "counter"
	histogram kind = "histogram"
)

// family is one metric.
type family struct {
	name, help string
	kind       kind
	buckets    []time.Duration // of a histogram
}

// series is one line of a metric, or the lines of one histogram.
type series struct {
	value float64
	times latency.Histogram
}

// exposition are metrics with their series.
type exposition map[*family]map[string]*series

// of returns the series with these labels, pairs of name and value; those without a value are left out.
func (x exposition) of(f *family, labels []string) *series {
	var text strings.Builder
	for pair := range slices.Chunk(labels, 2) {
		if pair[1] == "" {
			continue
		}
		if text.Len() > 0 {
			text.WriteByte(',')
		}
		text.WriteString(pair[0] + `="` + labelValue(pair[1]) + `"`)
	}
	if x[f] == nil {
		x[f] = map[string]*series{}
	}
	s := x[f][text.String()]
	if s == nil {
		s = &series{}
		x[f][text.String()] = s
	}
	return s
}

// add adds to the value of a series.
func (x exposition) add(f *family, value float64, labels ...string) { x.of(f, labels).value += value }

// count is add for a counter: a series that would be zero is left out.
func (x exposition) count(f *family, n int64, labels ...string) {
	if n > 0 {
		x.add(f, float64(n), labels...)
	}
}

// observe adds what a histogram has counted; nil: nothing.
func (x exposition) observe(f *family, h *latency.Histogram, labels ...string) {
	if h != nil && h.Count() > 0 {
		x.of(f, labels).times.Merge(h)
	}
}

// text is the exposition in Prometheus' text format, ordered by names and labels.
func (x exposition) text() []byte {
	var b bytes.Buffer
	for _, f := range slices.SortedFunc(maps.Keys(x), func(a, b *family) int { return cmp.Compare(a.name, b.name) }) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
		for _, labels := range slices.Sorted(maps.Keys(x[f])) {
			if s := x[f][labels]; f.kind == histogram {
				writeHistogram(&b, f, labels, &s.times)
			} else {
				writeLine(&b, f.name, labels, s.value)
			}
		}
	}
	return b.Bytes()
}

func writeHistogram(b *bytes.Buffer, f *family, labels string, h *latency.Histogram) {
	joined := labels
	if joined != "" {
		joined += ","
	}
	for _, at := range f.buckets {
		writeLine(b, f.name+"_bucket", joined+`le="`+number(at.Seconds())+`"`, float64(h.Below(at)))
	}
	writeLine(b, f.name+"_bucket", joined+`le="+Inf"`, float64(h.Count()))
	writeLine(b, f.name+"_sum", labels, h.Sum().Seconds())
	writeLine(b, f.name+"_count", labels, float64(h.Count()))
}

func writeLine(b *bytes.Buffer, name, labels string, value float64) {
	b.WriteString(name)
	if labels != "" {
		b.WriteString("{" + labels + "}")
	}
	b.WriteString(" " + number(value) + "\n")
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// labelValue formats the value of a label: valid UTF-8, with these three characters escaped and no others.
func labelValue(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}

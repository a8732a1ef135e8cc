package diagnose

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// listed is the maximum number of differences and unusable lines in a report; all of them are counted.
const listed = 1000

// Report is the result of judging a log again.
type Report struct {
	Judged      int          `json:"judged"`      // lines
	Unchanged   int          `json:"unchanged"`   // lines with the diagnosis that was recorded
	Changed     int          `json:"changed"`     // lines with another diagnosis
	Unusable    int          `json:"unusable"`    // lines that cannot be used
	Differences []Difference `json:"differences"` // the first thousand
	Faults      []Fault      `json:"faults"`      // the first thousand
}

// Difference is a line whose diagnosis differs from the recorded one. Texts for people are not compared.
type Difference struct {
	Line     int       `json:"line"`
	At       time.Time `json:"at"`
	Agent    string    `json:"agent"`
	Recorded Diagnosis `json:"recorded"`
	Judged   Diagnosis `json:"judged"`
}

// Fault is a line that cannot be used, and why.
type Fault struct {
	Line  int    `json:"line"`
	Fault string `json:"fault"`
}

// Replay judges every line of a log again, by the policy of its agent. The error is from r; the report then covers
// the lines before it.
func Replay(r io.Reader, policy func(agent string) Policy) (Report, error) {
	var report Report
	for l, err := range ReadLog(r) {
		switch {
		case errors.Is(err, ErrLine):
			report.Unusable++
			if len(report.Faults) < listed {
				report.Faults = append(report.Faults, Fault{Line: l.Number, Fault: err.Error()})
			}
		case err != nil:
			return report, err
		default:
			report.judge(l, policy(l.Agent))
		}
	}
	return report, nil
}

func (r *Report) judge(l Numbered, p Policy) {
	r.Judged++
	v := Classify(l.Evidence, p)
	if v.same(l.Diagnosis) {
		r.Unchanged++
		return
	}
	r.Changed++
	if len(r.Differences) < listed {
		r.Differences = append(r.Differences, Difference{Line: l.Number, At: l.At, Agent: l.Agent, Recorded: l.Diagnosis, Judged: v})
	}
}

// same reports whether two diagnoses agree in everything that an action depends on.
func (v Diagnosis) same(w Diagnosis) bool {
	v.Details, v.Doubt, w.Details, w.Doubt = "", "", "", ""
	return v == w
}

// String formats the report for a terminal.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d looks judged again: %d unchanged, %d changed", r.Judged, r.Unchanged, r.Changed)
	if r.Unusable > 0 {
		fmt.Fprintf(&b, ", %d unusable lines", r.Unusable)
	}
	b.WriteByte('\n')
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "line %d, %s, %s: was %s, is %s\n  %s\n", d.Line, d.At.Format(time.RFC3339), oneLine(d.Agent),
			d.Recorded.brief(), d.Judged.brief(), oneLine(d.Judged.Details))
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "line %d: %s\n", f.Line, oneLine(f.Fault))
	}
	return b.String()
}

func (v Diagnosis) brief() string {
	s := fmt.Sprintf("%s %s (%s, %s)", v.Rule, v.Class, v.Confidence, v.Tier)
	if v.Since > 0 {
		s += " since " + v.Since.brief()
	}
	return oneLine(s)
}

package diagnose

import (
	"fmt"
	"strings"

	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// Trace explains a diagnosis: the answer of every rule, in order.
type Trace struct {
	Diagnosis Diagnosis `json:"verdict"`
	Steps     []Step    `json:"steps"`
}

// Step is one rule and its answer.
type Step struct {
	Rule  string `json:"rule"`
	Class Class  `json:"class"`
	Tier  Tier   `json:"tier"`
	Part  string `json:"part"` // gate: is there anything to judge; shown: what is seen; rest: no trouble was found
	Held  bool   `json:"held"`
	// Decided is true for the first rule that held. Later rules may hold as well.
	Decided bool   `json:"decided,omitempty"`
	Why     string `json:"why"`
}

// Explain judges like [Classify], and also evaluates the rules after the one that decides.
func Explain(e Evidence, p Policy) Trace {
	p = p.filled()
	var t Trace
	decided := false
	for i := range rules {
		r := &rules[i]
		a := r.ask(&e, p)
		s := Step{Rule: r.id, Class: r.class, Tier: r.tier, Part: r.band.String(), Held: a.held, Why: a.why}
		if a.held && !decided {
			decided, s.Decided = true, true
			t.Diagnosis = r.diagnosis(&e, a)
		}
		t.Steps = append(t.Steps, s)
	}
	return t
}

func (b band) String() string { return [...]string{gate: "gate", shown: "shown", rest: "rest"}[b] }

// String lists the rules for a terminal, up to the one that decided (>): each answer on a line, followed by the names of
// the rules that gave it.
func (t Trace) String() string {
	var b strings.Builder
	for n := 0; n < len(t.Steps); n++ {
		s := t.Steps[n]
		if s.Decided {
			fmt.Fprintf(&b, "> %s (%s %s)\n", logline.Printable(s.Why), s.Rule, s.Class)
			break
		}
		fmt.Fprintf(&b, "- %s (%s %s", logline.Printable(s.Why), s.Rule, s.Class)
		for ; n+1 < len(t.Steps) && !t.Steps[n+1].Decided && t.Steps[n+1].Why == s.Why; n++ { // rules with one reason are one line
			fmt.Fprintf(&b, ", %s %s", t.Steps[n+1].Rule, t.Steps[n+1].Class)
		}
		b.WriteString(")\n")
	}
	return b.String()
}

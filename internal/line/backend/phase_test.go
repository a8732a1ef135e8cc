package backend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	phaseNames = [phaseCount]string{"absent", "fresh", "asked", "greeted", "proven", "skipped", "checked", "standby", "active", "leaving", "drainsBare", "draining", "diedEarly", "exited"}
	markNames  = [markCount]string{"spawned", "wasAsked", "declined", "answers", "showsUp", "goesBare", "cameThrough", "isSpare", "fits", "takesOver", "beginsAnew", "mustDrain", "hasExited"}
)

// phaseTable is every phase after every mark, in their order; a dot is the phase itself.
const phaseTable = `
absent:     fresh . . . . . . . . . . . .
fresh:      . asked . greeted proven skipped active checked . . . leaving diedEarly
asked:      . . fresh greeted proven . active checked . . fresh leaving diedEarly
greeted:    . . . . . . active checked . . fresh leaving diedEarly
proven:     . . . . . . active . . . fresh leaving diedEarly
skipped:    . asked . . . . active . . . fresh drainsBare diedEarly
checked:    . . . . . . . . standby active fresh draining exited
standby:    . . . . . . . . . active fresh draining exited
active:     . . . . . . . . . . fresh draining exited
leaving:    . . . . . . draining . . . . . diedEarly
drainsBare: . . . . . . draining . . . . . diedEarly
draining:   . . . . . . . . . . . . exited
diedEarly:  . . . . . . . . . . . . .
exited:     . . . . . . . . . . . . .
`

// phasesThat is for each predicate the phases it holds in, of a process whose stdin is open and that has no streams.
const phasesThat = `
up:        fresh asked greeted proven skipped checked standby active leaving drainsBare draining
gone:      diedEarly exited
stays:     fresh asked greeted proven skipped checked standby active
drains:    leaving drainsBare draining
greets:    asked leaving
through:   checked standby active draining exited
answered:  checked standby active draining
familiar:  greeted checked standby
accepting: skipped active drainsBare draining
serves:    skipped active
`

func TestPhases(t *testing.T) {
	var b strings.Builder
	b.WriteByte('\n')
	for from := range phaseCount {
		fmt.Fprintf(&b, "%-11s", phaseNames[from]+":")
		for m := range markCount {
			p := process{phase: from}
			if p.mark(m); p.phase == from {
				b.WriteString(" .")
			} else {
				b.WriteString(" " + phaseNames[p.phase])
			}
		}
		b.WriteByte('\n')
	}
	if diff := cmp.Diff(phaseTable, b.String()); diff != "" {
		t.Errorf("after %s (-want +got):\n%s", strings.Join(markNames[:], ", "), diff)
	}
}

func TestPhasePredicates(t *testing.T) {
	var b strings.Builder
	b.WriteByte('\n')
	for _, one := range []struct {
		name string
		is   func(*process) bool
	}{
		{"up", (*process).up}, {"gone", (*process).gone}, {"stays", (*process).stays}, {"drains", (*process).drains},
		{"greets", (*process).greets}, {"through", (*process).through}, {"answered", (*process).answered},
		{"familiar", (*process).familiar}, {"accepting", (*process).accepting}, {"serves", (*process).serves},
	} {
		fmt.Fprintf(&b, "%-10s", one.name+":")
		for h := range phaseCount {
			if one.is(&process{phase: h}) {
				b.WriteString(" " + phaseNames[h])
			}
		}
		b.WriteByte('\n')
	}
	if diff := cmp.Diff(phasesThat, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package monitor

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// ordinaryDays is how many days TestOrdinaryWork goes through, and ordinarySeed the first's seed.
var (
	ordinaryDays = flag.Int("ordinary.days", dayCount, "days of ordinary work")
	ordinarySeed = flag.Uint64("ordinary.seed", 1, "the first day's seed")
)

// calm are the diagnoses of agents that nobody has to help.
var calm = []diagnose.Class{
	diagnose.Healthy, diagnose.AtWork, diagnose.Idle, diagnose.Done, diagnose.Starting, diagnose.Grace, diagnose.NotWatched, diagnose.APIBackoff, diagnose.Unobserved,
	diagnose.WaitingPermission, diagnose.WaitingQuestion, // the message is checked
}

// eight are the agents of an ordinary day.
func (d *workday) eight() {
	kinds := []struct {
		name, kind string
		script     func(*worker)
	}{
		{"anna", "claude", claudeAtTerminal(true, false)}, {"berta", "claude", claudeAtTerminal(false, true)}, {"clara", "claude", claudeAtTerminal(false, false)},
		{"printer", "claude", claudePrint}, {"dora", "codex", codexAtTerminal}, {"executor", "codex", codexExec},
		{"heart", "command\nexpect: {beat: 1m}", beater}, {"noise", "command", writer},
	}
	var declared []string
	for _, k := range kinds {
		declared = append(declared, d.agent(k.name, "kind: "+k.kind+"\n"+strings.TrimSuffix(starts, "}\n")+", nudge: [sh, -c, \"echo {text} >> nudged\"]}\n"))
		d.employs(k.name, k.script)
	}
	d.declare("", declared...)
}

// diagnoses are the classes that were concluded of each agent, in their order.
func (d *workday) diagnoses() map[string][]diagnose.Line {
	d.t.Helper()
	text, err := os.ReadFile(d.opts.Record)
	if err != nil {
		d.t.Fatal(err)
	}
	all := map[string][]diagnose.Line{}
	for lines := json.NewDecoder(bytes.NewReader(text)); lines.More(); {
		var l diagnose.Line
		if err := lines.Decode(&l); err != nil {
			d.t.Fatal(err)
		}
		all[l.Agent] = append(all[l.Agent], l)
	}
	return all
}

// In four hours in which eight agents do ordinary work, think long, build for long, ask and are answered, rest, end and begin again,
// over a sleep of the machine and a restart of the monitor, nothing is done to any of them, and no person hears of more than questions.
func TestOrdinaryWork(t *testing.T) {
	t.Parallel()
	for n := range *ordinaryDays {
		seed := *ordinarySeed + uint64(n)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			d := newWorkday(newWorld(t), seed)
			d.eight()
			d.lives(dayLength, lookEvery)
			for _, fall := range d.falls {
				t.Error(fall)
			}
			all := d.diagnoses()
			for _, a := range d.workers {
				for _, missed := range a.missed {
					t.Errorf("nobody was told: %s", missed)
				}
				worked := false
				for _, l := range all[a.name] {
					worked = worked || l.Diagnosis.Class == diagnose.AtWork || l.Diagnosis.Class == diagnose.Healthy
					if !slices.Contains(calm, l.Diagnosis.Class) {
						t.Errorf("%s %s is called %s: %s", l.At.Format(time.TimeOnly), a.name, l.Diagnosis.Class, l.Diagnosis.Details)
					}
				}
				if !worked {
					t.Errorf("%s was never seen at work: %v", a.name, all[a.name])
				}
			}
			for l := range strings.Lines(d.read("improvement-log.md")) {
				if told := []string{"- **Action:** ask a human\n", "- **Action:** escalate\n"}; strings.HasPrefix(l, "- **Action:**") && !slices.Contains(told, l) {
					t.Errorf("in the record: %s", l)
				}
			}
		})
	}
}

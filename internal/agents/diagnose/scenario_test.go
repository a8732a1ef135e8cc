package diagnose_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/testing/agenttest"
)

func scenarios(t testing.TB) map[string]agenttest.Scenario {
	t.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d scenarios (%v), wanted at least 40", len(files), err)
	}
	all := map[string]agenttest.Scenario{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n, err := agenttest.ReadScenario(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".txtar")] = n
	}
	return all
}

// This checks what a diagnosis allows; what is then done, and how often, is decided in other packages.
func TestScenarios(t *testing.T) {
	for name, n := range scenarios(t) {
		t.Run(name, func(t *testing.T) {
			var diagnoses []diagnose.Diagnosis
			for _, l := range n.Looks {
				v := diagnose.Classify(l.Evidence, n.Policy)
				diagnoses = append(diagnoses, v)
				if v.Class != l.Want {
					t.Errorf("%s %s: want %s, got %s of rule %s: %s", l.At, l.Agent, l.Want, v.Class, v.Rule, v.Details)
				}
			}
			for _, d := range n.Demands {
				if why := violates(n, d, diagnoses); why != "" {
					t.Errorf("%s %s: %s", d.Kind, d.Agent, why)
				}
			}
		})
	}
}

func violates(n agenttest.Scenario, d agenttest.Demand, diagnoses []diagnose.Diagnosis) string {
	met, seen := false, false
	for i, l := range n.Looks {
		if l.Agent != d.Agent {
			continue
		}
		seen = true
		v := diagnoses[i]
		switch {
		case d.Kind == agenttest.NeverKill && v.MayKill(), d.Kind == agenttest.NeverTell && v.Stall != diagnose.NoStall:
			return fmt.Sprintf("at %s it is %s (%s)", l.At, v.Class, v.Details)
		case l.At > d.By:
		case d.Kind == agenttest.MustTell && v.Stall != diagnose.NoStall, d.Kind == agenttest.MustWait && v.Hold > 0, d.Kind == agenttest.MustRestart && v.MayKill():
			met = true
		}
	}
	if !seen {
		return "nobody looks at it"
	}
	if !met && d.Kind != agenttest.NeverKill && d.Kind != agenttest.NeverTell {
		return fmt.Sprintf("nothing by %s", d.By)
	}
	return ""
}

// A scenario goes through a log, comes back as it was, and is judged as before.
func TestScenariosInALog(t *testing.T) {
	for name, n := range scenarios(t) {
		var log bytes.Buffer
		var wrote []diagnose.Line
		for _, l := range n.Looks {
			line := diagnose.Line{
				At: time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC).Add(time.Duration(l.At)), Agent: l.Agent,
				Evidence: l.Evidence, Diagnosis: diagnose.Classify(l.Evidence, n.Policy),
			}
			if err := diagnose.WriteLine(&log, line); err != nil {
				t.Fatal(err)
			}
			wrote = append(wrote, line)
		}
		var read []diagnose.Line
		for lines := json.NewDecoder(&log); lines.More(); {
			var l diagnose.Line
			if err := lines.Decode(&l); err != nil {
				t.Fatal(err)
			}
			read = append(read, l)
		}
		if len(read) != len(wrote) {
			t.Fatalf("%s: %d lines written, %d read", name, len(wrote), len(read))
		}
		for i := range read {
			// A slice that was emptied comes back as none, which is the same to every rule.
			if diff := cmp.Diff(diagnose.Encode(t, wrote[i]), diagnose.Encode(t, read[i])); diff != "" {
				t.Errorf("%s, line %d: %s", name, i+1, diff)
			}
			if v := diagnose.Classify(read[i].Evidence, n.Policy); v != wrote[i].Diagnosis {
				t.Errorf("%s, line %d: judged as %+v, before as %+v", name, i+1, v, wrote[i].Diagnosis)
			}
		}
	}
}

// Every line of the table decides something: a scenario, an example, or a case of the PIV registry's.
func TestEveryRuleDecides(t *testing.T) {
	decided := map[int]bool{}
	note := func(e diagnose.Evidence, p diagnose.Policy) {
		i := slices.IndexFunc(diagnose.Explain(e, p).Steps, func(s diagnose.Step) bool { return s.Decided })
		decided[i] = true
	}
	for _, n := range scenarios(t) {
		for _, l := range n.Looks {
			note(l.Evidence, n.Policy)
		}
	}
	for _, x := range diagnose.RuleCases() {
		note(x.Evidence, x.Policy)
	}
	for i, rule := range diagnose.Explain(diagnose.Evidence{}, diagnose.Policy{}).Steps {
		if !decided[i] {
			t.Errorf("line %d (%s %s) decides nothing", i, rule.Rule, rule.Class)
		}
	}
}

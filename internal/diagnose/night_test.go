package diagnose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func nights(t testing.TB) map[string]Night {
	t.Helper()
	files, err := filepath.Glob("testdata/nights/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d nights (%v), wanted at least 40", len(files), err)
	}
	all := map[string]Night{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n, err := ReadNight(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".txtar")] = n
	}
	return all
}

// What a verdict allows is judged here; what is then done, and how often, is the business of the rooms above.
func TestNights(t *testing.T) {
	for name, n := range nights(t) {
		t.Run(name, func(t *testing.T) {
			var verdicts []Verdict
			for _, l := range n.Looks {
				v := Classify(l.Evidence, n.Policy)
				verdicts = append(verdicts, v)
				if v.Class != l.Want {
					t.Errorf("%s %s: want %s, got %s: %s", l.At, l.Agent, l.Want, v.brief(), v.Details)
				}
			}
			for _, d := range n.Demands {
				if why := n.violates(d, verdicts); why != "" {
					t.Errorf("%s %s: %s", d.Kind, d.Agent, why)
				}
			}
		})
	}
}

func (n Night) violates(d Demand, verdicts []Verdict) string {
	met, seen := false, false
	for i, l := range n.Looks {
		if l.Agent != d.Agent {
			continue
		}
		seen = true
		v := verdicts[i]
		switch {
		case d.Kind == NeverKill && v.MayKill(), d.Kind == NeverTell && v.Stall != NoStall:
			return fmt.Sprintf("at %s it is %s (%s)", l.At, v.Class, v.Details)
		case l.At > d.By:
		case d.Kind == MustTell && v.Stall != NoStall, d.Kind == MustWait && v.Hold > 0, d.Kind == MustRestart && v.MayKill():
			met = true
		}
	}
	if !seen {
		return "nobody looks at it"
	}
	if !met && d.Kind != NeverKill && d.Kind != NeverTell {
		return fmt.Sprintf("nothing by %s", d.By)
	}
	return ""
}

// A night goes through a log and comes back as it was.
func TestNightsReplayed(t *testing.T) {
	for name, n := range nights(t) {
		var log bytes.Buffer
		var wrote []Line
		for _, l := range n.Looks {
			line := Line{
				At: time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC).Add(time.Duration(l.At)), Agent: l.Agent,
				Evidence: l.Evidence, Verdict: Classify(l.Evidence, n.Policy), Action: json.RawMessage(`{"rung":"observe"}`),
			}
			if err := WriteLine(&log, line); err != nil {
				t.Fatal(err)
			}
			wrote = append(wrote, line)
		}
		text := log.String()
		var read []Line
		for l, err := range ReadLog(strings.NewReader(text)) {
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, l.Line)
		}
		if len(read) != len(wrote) {
			t.Fatalf("%s: %d lines written, %d read", name, len(wrote), len(read))
		}
		for i := range read {
			// A slice that was emptied comes back as none, which is the same to every rule.
			if diff := cmp.Diff(encode(t, wrote[i]), encode(t, read[i])); diff != "" {
				t.Errorf("%s, line %d: %s", name, i+1, diff)
			}
		}
		got, err := Replay(strings.NewReader(text), n.Policy)
		if err != nil || got.Changed != 0 || got.Unusable != 0 || got.Judged != len(wrote) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReadNightRefuses(t *testing.T) {
	const good = "A story.\n-- looks --\n{\"at\":\"1m\",\"agent\":\"shop\",\"evidence\":{\"watched\":true},\"want\":\"no_evidence\"}\n-- demands --\nnever-kill shop\n"
	if _, err := ReadNight([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, old, new, want string }{
		{"an unknown section", `"watched"`, `"wached"`, "wached"},
		{"an unknown demand", "never-kill shop", "never-bore shop", "no demand"},
		{"a must without its time", "never-kill shop", "must-tell shop", "no demand"},
		{"an unknown part", "-- demands --", "-- wishes --", "no such part"},
		{"a part without a name", "-- demands --", "-- --", "has a name"},
		{"no want", `,"want":"no_evidence"`, ``, "want"},
		{"no story", "A story.\n", "", "story"},
		{"an endless repetition", `"at":"1m"`, `"at":"1m","until":"9000h","every":"1s"`, "makes no sense"},
		{"time that runs back", "\n-- demands", "\n{\"at\":\"1s\",\"agent\":\"shop\",\"want\":\"x\"}\n-- demands", "not before"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ReadNight([]byte(strings.Replace(good, tc.old, tc.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want something of %q", err, tc.want)
			}
		})
	}
}

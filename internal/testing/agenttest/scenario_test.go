package agenttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadScenarioRefuses(t *testing.T) {
	const good = "A story.\n-- looks --\n{\"at\":\"1m\",\"agent\":\"shop\",\"evidence\":{\"watched\":true},\"want\":\"no_evidence\"}\n-- demands --\nnever-kill shop\n"
	if _, err := ReadScenario([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, old, new, want string }{
		{"an unknown section", `"watched"`, `"wached"`, "wached"},
		{"an unknown demand", "never-kill shop", "never-bore shop", "not a demand"},
		{"a must without its time", "never-kill shop", "must-tell shop", "not a demand"},
		{"an unknown part", "-- demands --", "-- wishes --", "no such part"},
		{"a part without a name", "-- demands --", "-- --", "has a name"},
		{"no want", `,"want":"no_evidence"`, ``, "want"},
		{"no story", "A story.\n", "", "story"},
		{"an endless repetition", `"at":"1m"`, `"at":"1m","until":"9000h","every":"1s"`, "makes no sense"},
		{"time that runs back", "\n-- demands", "\n{\"at\":\"1s\",\"agent\":\"shop\",\"want\":\"x\"}\n-- demands", "not before"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ReadScenario([]byte(strings.Replace(good, tc.old, tc.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want something of %q", err, tc.want)
			}
		})
	}
}

// FuzzReadScenario reads scripts.
func FuzzReadScenario(f *testing.F) {
	files, err := filepath.Glob("../../agents/diagnose/testdata/scenarios/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files[:min(len(files), 8)] {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := ReadScenario(text)
		if err != nil {
			return
		}
		for i, l := range n.Looks {
			if i > 0 && l.At < n.Looks[i-1].At || l.Agent == "" || l.Want == "" {
				t.Fatalf("look %d: %+v", i, l)
			}
		}
	})
}

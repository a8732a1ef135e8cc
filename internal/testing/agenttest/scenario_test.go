package agenttest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// Between two looks of a script everything grows older, and what is to come comes nearer.
func TestLater(t *testing.T) {
	const hour = diagnose.Span(time.Hour)
	was := diagnose.Evidence{
		Sessions: []diagnose.Session{{Error: diagnose.SessionError{Kind: agentcli.APIFailure, RetryKnown: true, RetryIn: hour}}},
		Servers:  []diagnose.ServerCall{{Age: hour, Still: hour, WorkKnown: true, Idle: hour}},
		Beat:     diagnose.Beat{Has: true, Age: diagnose.Never},
	}
	is := Later(was, 2*hour)
	if s := is.Sessions[0]; s.LastAge != 2*hour || s.Error.RetryIn != -hour {
		t.Errorf("the session: %+v", s)
	}
	if c := is.Servers[0]; c.Age != 3*hour || c.Still != 3*hour || c.Idle != 3*hour {
		t.Errorf("the call: %+v", c)
	}
	if is.Beat.Age != diagnose.Never || was.Servers[0].Age != hour {
		t.Errorf("the beat is %s old, and the evidence before has a call of %s", is.Beat.Age, was.Servers[0].Age)
	}
}

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

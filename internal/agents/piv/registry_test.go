package piv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheOriginalsRegistryIsRead(t *testing.T) {
	r, err := ParseRegistry(fixture(t, "registry.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Project{
		{Key: "shop", Name: "shop", Path: "/srv/agents/shop", Status: Running, Heartbeat: "2026-03-02T01:58:00.000Z", PID: 4711, Phase: 3, LastCompleted: 2},
		{Key: "blog", Name: "blog", Path: "/srv/agents/blog", Status: Complete, Heartbeat: "2026-03-01T23:10:00.000Z", Phase: NoPhase, LastCompleted: 5},
		{Key: "api", Name: "api", Path: "/srv/agents/api", Status: Idle, Phase: NoPhase, LastCompleted: NoPhase},
	}
	if d := cmp.Diff(want, r.Projects); d != "" {
		t.Error(d)
	}
	for i, want := range []int{3, 6, NoPhase} {
		if got := r.Projects[i].ResumePhase(); got != want {
			t.Errorf("%s goes on at phase %d, want %d", r.Projects[i].Key, got, want)
		}
	}
}

// A change touches what it is about: unknown keys, comments, quotes, blank lines and the order of everything else stay.
func TestAChangeKeepsEverythingElse(t *testing.T) {
	text := "# by hand\nversion:   7 # unknown\n\n\nprojects:\n  # the shop\n  shop:\n\n    path: /p\n    status: running    # now\n    orchestratorPid: null\n" +
		"    heartbeat: '2026-03-02T01:58:00.000Z'\n    extra: {a: [1, 2], b: \"0x1F\"}\n  other:\n    path: /q\n    status: idle\nlastUpdated: '2026-03-02T01:58:00.000Z'\n"
	r, err := ParseRegistry([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	status, pid := Stalled, 99
	got, err := r.With([]Change{{Key: "shop", Status: status, PID: pid}, {Key: "gone", Status: status}}, time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("running    # now", "stalled    # now", "orchestratorPid: null", "orchestratorPid: 99",
		"lastUpdated: '2026-03-02T01:58:00.000Z'", "lastUpdated: '2026-03-02T03:00:00.000Z'").Replace(text)
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
}

func TestWhatIsNoRegistry(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML": "projects: [", "a list": "- a\n", "projects is a list": "projects: [a]\n", "no projects": "agents: {}\n",
		"a key twice": "projects:\n  a: {path: /a}\n  a: {path: /b}\n", "binary": "\x00\x01", "too long": strings.Repeat("#", SizeLimit+1),
		"two documents": "projects: {}\n---\nprojects: {}\n",
	} {
		if _, err := ParseRegistry([]byte(text)); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: error %v, want ErrBroken", name, err)
		}
	}
	for name, text := range map[string]string{"nothing": "", "a comment": "# soon\n", "null": "null\n", "no entries": "projects: {}\n", "projects is null": "projects:\n"} {
		if r, err := ParseRegistry([]byte(text)); err != nil || len(r.Projects) > 0 {
			t.Errorf("%s: error %v, want a registry without projects", name, err)
		}
	}
}

func TestAnEntryThatMakesNoSenseIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"{status: running}":                     "path is missing",
		"text":                                  "the entry must be a mapping",
		"{path: /p, orchestratorPid: many}":     "orchestratorPid must be a process number",
		"{path: /p, orchestratorPid: -1}":       "orchestratorPid must be a process number",
		"{path: /p, currentPhase: third}":       "currentPhase or lastCompletedPhase must be a number",
		"{path: /p, currentPhase: 2, later: x}": "",
	} {
		r, err := ParseRegistry([]byte("projects:\n  a: " + text + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Projects[0].Fault; got != want {
			t.Errorf("%s: fault %q, want %q", text, got, want)
		}
	}
}

// The original writes in place, so every beginning of the file can be met. Without its last line none calls itself
// complete, and what it says of projects that are there is said by the whole, too, but for the last one.
func TestHalfARegistryIsNeverTakenForTheWhole(t *testing.T) {
	text := fixture(t, "registry.yaml")
	whole, err := ParseRegistry(text)
	if err != nil || !whole.Complete {
		t.Fatal(err)
	}
	read := 0
	for n := range bytes.Index(text, []byte("lastUpdated")) {
		r, err := ParseRegistry(text[:n])
		if err != nil {
			continue
		}
		read++
		if r.Complete {
			t.Errorf("the first %d bytes call themselves complete", n)
		}
		if got := len(r.Projects); got > 1 && !cmp.Equal(r.Projects[:got-1], whole.Projects[:got-1]) {
			t.Errorf("the first %d bytes say something else", n)
		}
	}
	if read < 20 {
		t.Errorf("only %d beginnings could be read: this test looks at nothing", read)
	}
}

func TestTimes(t *testing.T) {
	at := time.Date(2026, 3, 2, 1, 58, 0, 0, time.UTC)
	for text, ok := range map[string]bool{
		"2026-03-02T01:58:00.000Z": true, "2026-03-02T01:58:00Z": true, "2026-03-02T03:58:00+02:00": true, " 2026-03-02T01:58:00.000000Z ": true,
		"2026-03-02T01:58Z": true, "2026-03-02 01:58:00Z": true, "yesterday": false, "": false, "1772416680000": false, "2026-13-02T01:58:00Z": false,
	} {
		got, err := ParseTime(text)
		if (err == nil) != ok || ok && !got.Equal(at) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got := FormatTime(at.Add(7 * time.Millisecond)); got != "2026-03-02T01:58:00.007Z" {
		t.Error(got)
	}
}

func FuzzParseRegistry(f *testing.F) {
	f.Add(fixture(f, "registry.yaml"))
	for _, s := range []string{"", "projects: {a: &x {path: *x}}", "projects: &p {a: *p}", "projects:\n  a:\n    path: /p\n    status: [1]\n", "{projects: {a: {path: /p}}}", "? [a]\n: b\nprojects: {1: {path: /p}}\n",
		"projects:\n  ? {a: b}\n  : {path: /p}\n", "projects:\n  \"\": {path: \"\\u2028\"}\n", "%YAML 1.2\n---\nprojects: {}\n", "projects:\n  a: &b {path: /p, status: running}\n  c: *b\n"} {
		f.Add([]byte(s))
	}
	status, pid := Stalled, 7
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseRegistry(text)
		if err != nil {
			if !errors.Is(err, ErrBroken) {
				t.Fatal(err)
			}
			return
		}
		if len(r.Projects) == 0 {
			return
		}
		changed, err := r.With([]Change{{Key: r.Projects[0].Key, Status: status, PID: pid}}, time.Unix(0, 0))
		if err != nil {
			if !errors.Is(err, ErrBroken) {
				t.Fatal(err)
			}
			return // refused rather than written
		}
		again, err := ParseRegistry(changed)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, changed)
		}
		if len(again.Projects) != len(r.Projects) {
			t.Fatalf("%d projects became %d", len(r.Projects), len(again.Projects))
		}
		for i, p := range r.Projects {
			if i > 0 && fmt.Sprint(again.Projects[i].Path) != fmt.Sprint(p.Path) {
				t.Fatalf("project %q changed, although another one was to: %+v", p.Key, again.Projects[i])
			}
		}
	})
}

package monitor

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// herdrOf is a program that shows a recorded snapshot, in which the agent is in a directory, and keeps what it is given to say.
func herdrOf(t *testing.T, dir string, change ...string) (program, said string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	text, err := os.ReadFile(filepath.Join("testdata", "herdr-snapshot.json"))
	if err != nil {
		t.Fatal(err)
	}
	snapshot := strings.NewReplacer(append([]string{"/srv/shop", dir}, change...)...).Replace(string(text))
	place := t.TempDir()
	program, said = filepath.Join(place, "herdr"), filepath.Join(place, "said")
	script := "#!/bin/sh\nif [ \"$1 $2\" = 'api snapshot' ]; then cat <<'END'\n" + snapshot + "\nEND\nelse printf '%s|' \"$@\" >> '" + said + "'; fi\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, said
}

// An agent that runs in a pane of herdr's is shown with it, unless the pane is not known to be the agent's.
func TestShowsHerdrsPane(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change []string
		want   string
	}{
		"its own":            {nil, "herdr's pane w1:p1 in its workspace shop"},
		"without a name":     {[]string{`"label": "shop"`, `"label": ""`}, "herdr's pane w1:p1"},
		"of another CLI":     {[]string{`"agent": "claude"`, `"agent": "codex"`}, ""},
		"no snapshot at all": {[]string{`"agents"`, `"others"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"), w.agent("blog", "kind: claude\n"))
			w.opts.Herdr, _ = herdrOf(t, w.dir("shop"), test.change...)
			w.opts.Environ = os.Environ()
			w.claude("shop", 1001)
			w.claude("blog", 1002)
			view, err := Inspect(t.Context(), w.opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range view.Findings {
				got := ""
				if f.Pane != nil {
					got = f.Pane.String()
				}
				if want := map[string]string{"shop": test.want}[f.Key]; got != want {
					t.Errorf("%s: %q, want %q", f.Key, got, want)
				}
			}
		})
	}
}

// An agent that runs in a pane of herdr's is nudged there, unless the pane shows a dialog or is not known to be the agent's.
func TestNudgesByHerdr(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change []string
		want   string // of what is said
	}{
		"at its prompt":      {nil, "agent|prompt|w1:p1|This session seems to be stuck: the background task that it waits for is dead"},
		"before a dialog":    {[]string{`"agent_status": "idle"`, `"agent_status": "blocked"`}, ""},
		"who knows":          {[]string{`"agent_status": "idle"`, `"agent_status": "unknown"`}, ""},
		"of another CLI":     {[]string{`"agent": "claude"`, `"agent": "codex"`}, ""},
		"no snapshot at all": {[]string{`"agents"`, `"others"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"))
			var said string
			w.opts.Herdr, said = herdrOf(t, w.dir("shop"), test.change...)
			w.opts.Environ = os.Environ()
			c := w.claude("shop", 1001)
			w.cycle()
			w.pass(time.Minute)
			c.leaves("npm test")
			w.spends(time.Minute, 30*time.Second)
			delete(w.living, shellID)
			w.spends(8*time.Minute, 30*time.Second)
			got, _ := os.ReadFile(said) // none: nothing was said
			if test.want == "" && len(got) > 0 || !strings.HasPrefix(string(got), test.want) {
				t.Errorf("said %q, want %q", got, test.want)
			}
		})
	}
}

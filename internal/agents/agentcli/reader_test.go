package agentcli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// world is a home directory with agents in it.
type world struct {
	t       testing.TB
	home    string
	options Options
	open    map[int][]string // the files that processes have open
	asked   int              // number of calls
}

func newWorld(t testing.TB) *world {
	home := t.TempDir()
	w := &world{t: t, home: home, open: map[int][]string{}}
	w.options.Places = DefaultPlaces(home, func(string) string { return "" })
	w.options.OpenFiles = func(pid int) []string { w.asked++; return w.open[pid] }
	return w
}

func (w *world) dir(name string) string { return filepath.Join(w.home, name) }

// claude is a transcript of Claude Code that waits for the model.
func (w *world) claude(dir, id string) string {
	path := filepath.Join(w.options.Places[Claude], "projects", claudeFolder(dir), id+".jsonl")
	writeFile(w.t, path, fmt.Sprintf(`{"type":"user","sessionId":%q,"cwd":%q,"timestamp":%q,"message":{"content":"go"}}`+"\n", id, dir, now()))
	return path
}

// claudeState is the state file of a session.
func (w *world) claudeState(pid int, dir, id, more string) string {
	path := filepath.Join(w.options.Places[Claude], "sessions", fmt.Sprint(pid)+".json")
	writeFile(w.t, path, fmt.Sprintf(`{"pid":%d,"sessionId":%q,"cwd":%q,"procStart":"%d0",%s}`, pid, id, dir, pid, more))
	return path
}

// codex is a rollout of Codex that waits for the model.
func (w *world) codex(day, dir, id string) string {
	path := filepath.Join(w.options.Places[Codex], "sessions", filepath.FromSlash(day), "rollout-2026-11-21T13-00-00-"+id+".jsonl")
	writeFile(w.t, path, fmt.Sprintf(`{"type":"session_meta","payload":{"id":%q,"cwd":%q}}`+"\n"+`{"type":"event_msg","timestamp":%q,"payload":{"type":"task_started"}}`+"\n", id, dir, now()))
	return path
}

func (w *world) gemini(folder, id string) string {
	path := filepath.Join(w.options.Places[Gemini], "tmp", folder, "chats", "session-"+id+".jsonl")
	writeFile(w.t, path, fmt.Sprintf(`{"sessionId":%q,"projectHash":"x","kind":"main"}`+"\n"+`{"id":"1","type":"user","timestamp":%q,"content":[{"text":"go"}]}`+"\n", id, now()))
	return path
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// found formats the sessions: the CLI, the id, the process and what is open.
func (w *world) found(r *Reader, q Query) []string {
	w.t.Helper()
	sessions, err := r.Sessions(q)
	if err != nil {
		w.t.Fatal(err)
	}
	all := []string{}
	for _, s := range sessions {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", s.Kind, s.ID, s.PID, s.Turn.Open)))
	}
	slices.Sort(all)
	return all
}

func same(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if diff := gocmp.Diff(slices.Clone(append([]string{}, want...)), got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func TestNothingIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	same(t, "an empty home", w.found(NewReader(w.options), Query{Dirs: []string{w.dir("shop")}}))
	same(t, "no places", w.found(NewReader(Options{}), Query{Dirs: []string{w.dir("shop")}}))
}

func TestSessionsOfADirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop, below, other := w.dir("shop"), w.dir("shop/api"), w.dir("shop-old")
	for i, dir := range []string{shop, below, other} {
		id := fmt.Sprint("s", i)
		w.claude(dir, id)
		w.codex(daysAgo(0), dir, id)
		w.gemini(fmt.Sprintf("slug%d", i), id)
	}
	writeFile(t, filepath.Join(w.options.Places[Gemini], "projects.json"), fmt.Sprintf(`{"projects":{%q:"slug0",%q:"slug1",%q:"slug2",%q:"../../x"}}`, shop, below, other, shop+"/y"))
	w.claudeState(70, shop, "s0", `"status":"busy"`)
	w.claudeState(71, other, "s2", `"status":"busy"`)
	w.claudeState(72, shop, "none", `"status":"idle"`) // no prompt yet, so no transcript
	r := NewReader(w.options)
	for range 3 {
		same(t, "shop", w.found(r, Query{Dirs: []string{shop}}),
			"claude none 72", "claude s0 70 model", "claude s1 0 model", "codex s0 0 model", "codex s1 0 model", "gemini s0 0 model", "gemini s1 0 model")
	}
	same(t, "below", w.found(r, Query{Dirs: []string{below}}), "claude s1 0 model", "codex s1 0 model", "gemini s1 0 model")
	same(t, "whoever runs", w.found(r, Query{}), "claude none 72", "claude s0 70 model", "claude s2 71 model")
	link := w.dir("link")
	if err := os.Symlink(shop, link); err == nil {
		same(t, "a link, to nowhere yet", w.found(r, Query{Dirs: []string{link}}))
		if err := os.MkdirAll(shop, 0o700); err != nil {
			t.Fatal(err)
		}
		if got := w.found(NewReader(w.options), Query{Dirs: []string{link}}); len(got) != 7 {
			t.Errorf("through a link: %q", got)
		}
	}
}

func TestNewFilesAreSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	r := NewReader(w.options)
	q := Query{Dirs: []string{shop}}
	same(t, "before", w.found(r, q))
	w.claude(shop, "a")
	same(t, "the first", w.found(r, q), "claude a 0 model")
	w.claude(shop, "b")
	w.claudeState(70, shop, "b", `"status":"idle"`)
	same(t, "the second", w.found(r, q), "claude a 0 model", "claude b 70 model")
	if err := os.Remove(filepath.Join(w.options.Places[Claude], "sessions", "70.json")); err != nil {
		t.Fatal(err)
	}
	same(t, "its process has ended", w.found(r, q), "claude a 0 model", "claude b 0 model")
	same(t, "only recent ones", w.found(NewReader(w.options), Query{Dirs: []string{shop}, Since: time.Now().Add(time.Hour)}))
}

// The state files of killed processes are never removed: their old transcripts are not read.
func TestStateFilesOfTheDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	aged := time.Now().Add(-48 * time.Hour)
	for pid, id := range map[int]string{70: "a", 71: "b"} {
		path := w.claude(shop, id)
		if err := os.Chtimes(path, aged, aged); err != nil {
			t.Fatal(err)
		}
		w.claudeState(pid, shop, id, `"status":"idle"`)
	}
	q := Query{Dirs: []string{shop}, Since: time.Now().Add(-time.Hour)}
	same(t, "nobody says who lives", w.found(NewReader(w.options), q), "claude a 70 model", "claude b 71 model")
	q.Processes = []Process{{Kind: Claude, PID: 71}}
	same(t, "one lives", w.found(NewReader(w.options), q), "claude a 70", "claude b 71 model")
}

func TestStateFileThatIsJustBeingWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	r := NewReader(w.options)
	path := w.claudeState(70, shop, "a", `"status":"waiting","waitingFor":"permission prompt"`)
	q := Query{Dirs: []string{shop}}
	status := func() string {
		sessions, err := r.Sessions(q)
		if err != nil || len(sessions) != 1 {
			t.Fatalf("%d sessions (%v)", len(sessions), err)
		}
		return string(sessions[0].Status + "/" + Status(sessions[0].WaitingFor))
	}
	if got := status(); got != "waiting/permission" {
		t.Error(got)
	}
	writeFile(t, path, `{"pid":70,"sess`)
	if got := status(); got != "waiting/permission" {
		t.Errorf("half written: %s", got)
	}
	w.claudeState(70, shop, "a", `"status":"busy"`)
	if got := status(); got != "busy/" {
		t.Error(got)
	}
}

// daysAgo is the folder of a day, as Codex names it. Folders that are too old are not looked into, so no fixed day
// will do.
func daysAgo(n int) string { return time.Now().AddDate(0, 0, -n).Format("2006/01/02") }

func TestCodexProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	a := w.codex(daysAgo(1), shop, "a")
	w.codex(daysAgo(1), shop, "b")
	old := w.codex("2026/01/01", shop, "c")
	aged := time.Now().Add(-300 * 24 * time.Hour)
	if err := os.Chtimes(old, aged, aged); err != nil {
		t.Fatal(err)
	}
	w.open[8] = []string{"/dev/null", a, filepath.Join(w.home, "rollout-x.jsonl")}
	w.open[9] = []string{a} // the wrapper's child
	w.open[10] = []string{old}
	r := NewReader(w.options)
	q := Query{Dirs: []string{shop}, Since: time.Now().Add(-time.Hour), Processes: []Process{
		{Kind: Codex, PID: 8, Start: 80}, {Kind: Codex, PID: 9, Start: 90}, {Kind: Codex, PID: 10, Start: 100}, {Kind: Claude, PID: 11},
	}}
	want := []string{"codex a 8 model", "codex b 0 model", "codex c 10 model"}
	same(t, "open files tell", w.found(r, q), want...)
	asked := w.asked
	same(t, "again", w.found(r, q), want...)
	if w.asked != asked {
		t.Errorf("asked %d times again although nothing is new", w.asked-asked)
	}
	w.open[9] = []string{w.codex(daysAgo(0), shop, "d")} // another day, another session
	same(t, "a new session", w.found(r, q), append(want, "codex d 9 model")...)
}

func TestSessionsAreAssigned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	w.gemini("slug", "g")
	writeFile(t, filepath.Join(w.options.Places[Gemini], "projects.json"), fmt.Sprintf(`{"projects":{%q:"slug"}}`, shop))
	early, late := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	tests := map[string]struct {
		processes []Process
		want      string
	}{
		"the only one":              {[]Process{{Kind: Gemini, PID: 5, Start: 50, Dir: shop, Began: early}}, "gemini g 5 model"},
		"began after it":            {[]Process{{Kind: Gemini, PID: 5, Start: 50, Dir: shop, Began: late}}, "gemini g 0 model"},
		"began who knows when":      {[]Process{{Kind: Gemini, PID: 5, Start: 50, Dir: shop}}, "gemini g 0 model"},
		"of another directory":      {[]Process{{Kind: Gemini, PID: 5, Start: 50, Dir: w.home, Began: early}}, "gemini g 0 model"},
		"of another kind":           {[]Process{{Kind: OpenCode, PID: 5, Start: 50, Dir: shop, Began: early}}, "gemini g 0 model"},
		"two in the same directory": {[]Process{{Kind: Gemini, PID: 5, Start: 50, Dir: shop, Began: early}, {Kind: Gemini, PID: 6, Start: 60, Dir: shop, Began: early}}, "gemini g 0 model"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			same(t, name, w.found(NewReader(w.options), Query{Dirs: []string{shop}, Processes: test.processes}), test.want)
		})
	}
}

// That a process is the only one in a directory is a guess; a CLI that names it is certain.
func TestAnAssignedProcessIsAGuess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	w.gemini("slug", "g")
	writeFile(t, filepath.Join(w.options.Places[Gemini], "projects.json"), fmt.Sprintf(`{"projects":{%q:"slug"}}`, shop))
	w.open[9] = []string{w.codex(daysAgo(0), shop, "c")}
	sessions, err := NewReader(w.options).Sessions(Query{Dirs: []string{shop}, Processes: []Process{
		{Kind: Gemini, PID: 5, Start: 50, Dir: shop, Began: time.Now().Add(-time.Hour)}, {Kind: Codex, PID: 9, Start: 90, Dir: shop, Began: time.Now().Add(-time.Hour)},
	}})
	if err != nil || len(sessions) != 2 {
		t.Fatal(sessions, err)
	}
	for _, s := range sessions {
		if s.PID == 0 || s.Assigned != (s.Kind == Gemini) {
			t.Errorf("%s: process %d, assigned %v", s.Kind, s.PID, s.Assigned)
		}
	}
}

func TestSubagentsThatWork(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"Task", "Agent", "Workflow", "Skill", "TaskOutput"} {
		t.Run(tool, func(t *testing.T) { subagentOf(t, tool) })
	}
}

func subagentOf(t *testing.T, tool string) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	path := w.claude(shop, "a")
	appendFile(t, path, strings.Replace(claudeBash, "Bash", tool, 1)+"\n")
	writeFile(t, filepath.Join(strings.TrimSuffix(path, ".jsonl"), "subagents", "agent-1.jsonl"), "{}\n")
	sessions, err := NewReader(w.options).Sessions(Query{Dirs: []string{shop}})
	if err != nil || len(sessions) != 1 || time.Since(sessions[0].SubagentAt) > time.Minute {
		t.Errorf("%+v %v", sessions, err)
	}
}

// What cannot be read is reported, and everything else is returned.
func TestWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	w.codex(daysAgo(0), shop, "b")
	w.claudeState(70, shop, "a", `"status":"busy"`)
	projects := filepath.Join(w.options.Places[Claude], "projects")
	if err := os.Symlink(projects, projects); err != nil {
		t.Skipf("a folder that cannot be read is made by a link that leads to itself: %v", err)
	}
	sessions, err := NewReader(w.options).Sessions(Query{Dirs: []string{shop}})
	if err == nil || len(sessions) != 2 {
		t.Errorf("%v %+v", err, sessions)
	}
}

func TestLongDirectories(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.dir(strings.Repeat("very/long/", 25) + "shop")
	path := filepath.Join(w.options.Places[Claude], "projects", claudeFolder(dir)[:folderName]+"-1abc", "a.jsonl")
	writeFile(t, path, string(mustRead(t, w.claude(w.dir("x"), "a"))))
	w.claudeState(70, dir, "a", `"status":"busy"`)
	same(t, "a cut name", w.found(NewReader(w.options), Query{Dirs: []string{dir}}), "claude a 70 model")
}

// Sessions of Qwen Code are found by their directory, though the names of folders are not one to one, and without one
// by its processes.
func TestQwenSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	for id, dir := range map[string]string{"a": shop, "b": w.dir("shop-b"), "c": filepath.Join(shop, "b"), "d": w.dir("other")} {
		path := filepath.Join(w.options.Places[Qwen], "projects", claudeFolder(dir), "chats", id+".jsonl")
		writeFile(t, path, fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"timestamp":%q,"type":"user","message":{"parts":[{"text":"go"}]}}`+"\n", id, dir, now()))
	}
	same(t, "by directory", w.found(NewReader(w.options), Query{Dirs: []string{shop}}), "qwen a 0 model", "qwen c 0 model")
	process := Process{Kind: Qwen, PID: 5, Start: 50, Dir: shop, Began: time.Now().Add(-time.Hour)}
	same(t, "by process", w.found(NewReader(w.options), Query{Processes: []Process{process}}), "qwen a 5 model")
}

func TestDefaultPlaces(t *testing.T) {
	t.Parallel()
	got := DefaultPlaces(filepath.FromSlash("/home/u"), func(name string) string {
		return map[string]string{"CODEX_HOME": "/codex", "XDG_DATA_HOME": "/data", "QWEN_HOME": "/qwen", "QWEN_RUNTIME_DIR": "/run/qwen"}[name]
	})
	want := Places{
		Claude: filepath.FromSlash("/home/u/.claude"), Codex: "/codex", Gemini: filepath.FromSlash("/home/u/.gemini"),
		OpenCode: filepath.Join("/data", "opencode"), Qwen: "/run/qwen",
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	moved := DefaultPlaces("/home/u", func(name string) string {
		return map[string]string{"GEMINI_CLI_HOME": "/g", "QWEN_HOME": "/qwen", "OPENCODE_DB": "x.db"}[name]
	})
	if moved[Gemini] != filepath.Join("/g", ".gemini") || moved[Qwen] != "/qwen" || moved[OpenCode] != filepath.FromSlash("/home/u/.local/share/opencode/x.db") {
		t.Error(moved)
	}
}

// A poll of 200 idle agents, each with a state file, a transcript and 50 old ones. At a poll every 5 s, 1 % of a core
// is 50 ms.
func BenchmarkIdleAgents(b *testing.B) {
	w := newWorld(b)
	var dirs []string
	var processes []Process
	past := time.Now().Add(-time.Hour)
	for i := range 200 {
		dir := w.dir(fmt.Sprint("project", i))
		dirs = append(dirs, dir)
		if i%2 == 0 {
			path := w.claude(dir, fmt.Sprint("s", i))
			for old := range 50 {
				writeFile(b, filepath.Join(filepath.Dir(path), fmt.Sprint("old", old, ".jsonl")), "{}\n")
			}
			state := w.claudeState(1000+i, dir, fmt.Sprint("s", i), `"status":"idle"`)
			if err := cmp.Or(os.Chtimes(state, past, past), os.Chtimes(path, past, past), os.Chtimes(filepath.Dir(path), past, past)); err != nil {
				b.Fatal(err)
			}
			continue
		}
		w.open[1000+i] = []string{w.codex(daysAgo(0), dir, fmt.Sprint("s", i))}
		processes = append(processes, Process{Kind: Codex, PID: 1000 + i, Start: 1})
	}
	for _, dir := range []string{w.options.Places[Claude] + "/sessions", w.options.Places[Claude] + "/projects", w.options.Places[Codex] + "/sessions/2026/11/21"} {
		if err := os.Chtimes(dir, past, past); err != nil {
			b.Fatal(err)
		}
	}
	r := NewReader(w.options)
	q := Query{Dirs: dirs, Processes: processes, Since: time.Now().Add(-24 * time.Hour)}
	if sessions, err := r.Sessions(q); err != nil || len(sessions) < 200 {
		b.Fatal(len(sessions), err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Sessions(q); err != nil {
			b.Fatal(err)
		}
	}
}

package agentcli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// aged sets when a file was last written.
func aged(t testing.TB, path string, ago time.Duration) {
	t.Helper()
	at := time.Now().Add(-ago)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// chats are transcripts of Qwen Code, the first being the oldest.
func (w *world) chats(dir string, ids ...string) {
	for n, id := range ids {
		path := filepath.Join(w.options.Places[Qwen], "projects", claudeFolder(dir), "chats", id+".jsonl")
		writeFile(w.t, path, fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"timestamp":%q,"type":"user","message":{"parts":[{"text":"go"}]}}`+"\n", id, dir, now()))
		aged(w.t, path, time.Duration(len(ids)-n)*time.Minute)
	}
}

// An agent in whose directory it has had others work is not hidden by their transcripts, while its process lives.
func TestManyTranscriptsInADirectory(t *testing.T) {
	t.Parallel()
	ids := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("s%02d", i))
		}
		return all
	}
	for name, test := range map[string]struct {
		there int
		lives bool
		want  int
		fault bool
	}{
		"a few":                {3, true, 3, false},
		"none lives":           {20, false, transcriptsKept, false},
		"one lives":            {20, true, 20, false},
		"very many":            {transcriptsMost, true, transcriptsMost, false},
		"more than are read":   {transcriptsMost + 1, true, transcriptsMost, true},
		"many of former times": {transcriptsMost + 1, false, transcriptsKept, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			shop := w.dir("shop")
			w.chats(shop, ids(test.there)...)
			q := Query{Dirs: []string{shop}, Since: time.Now().Add(-48 * time.Hour)}
			if test.lives {
				q.Processes = []Process{{Kind: Qwen, PID: 5, Start: 50, Dir: shop, Began: time.Now().Add(-24 * time.Hour)}}
			}
			sessions, err := NewReader(w.options).Sessions(q)
			if len(sessions) != test.want || errors.Is(err, errUnread) != test.fault {
				t.Errorf("%d sessions, %v", len(sessions), err)
			}
		})
	}
}

// A process that rests for longer than transcripts are looked back for has a session all the same.
func TestPresentSessionIsReadHoweverOld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	w.chats(shop, "before", "present")
	gemini := w.gemini("slug", "g")
	writeFile(t, filepath.Join(w.options.Places[Gemini], "projects.json"), fmt.Sprintf(`{"projects":{%q:"slug"}}`, shop))
	o := newOpenCode(t, filepath.Join(w.options.Places[OpenCode], openCodeDatabase))
	for _, id := range []string{"o1", "o2"} {
		o.at = time.Now().Add(-72 * time.Hour).UnixMilli()
		o.session(id, shop)
	}
	chats := filepath.Join(w.options.Places[Qwen], "projects", claudeFolder(shop), "chats")
	aged(t, filepath.Join(chats, "before.jsonl"), 73*time.Hour)
	aged(t, filepath.Join(chats, "present.jsonl"), 72*time.Hour)
	aged(t, gemini, 72*time.Hour)
	q := Query{Dirs: []string{shop}, Since: time.Now().Add(-48 * time.Hour)}
	same(t, "nobody lives", w.found(NewReader(w.options), q))
	began := time.Now().Add(-100 * time.Hour)
	for _, dir := range []string{shop, ""} { // not every system tells it
		q.Processes = []Process{{Kind: Qwen, PID: 5, Start: 50, Dir: dir, Began: began}, {Kind: Gemini, PID: 6, Start: 60, Dir: dir, Began: began}, {Kind: OpenCode, PID: 7, Start: 70, Dir: dir, Began: began}}
		sessions, err := NewReader(w.options).Sessions(q)
		kinds := map[Kind]int{}
		for _, s := range sessions {
			kinds[s.Kind]++
		}
		if err != nil || kinds[Qwen] != 1 || kinds[Gemini] != 1 || kinds[OpenCode] != 1 {
			t.Errorf("directory %q: %v %v", dir, kinds, err)
		}
	}
	for i := range q.Processes {
		q.Processes[i].Began = time.Now().Add(-time.Hour)
	}
	same(t, "processes that are younger", w.found(NewReader(w.options), q))
}

// One call of OpenCode that takes days writes nothing, and its session's time is that of the answer before. Subagents that
// have worked since do not hide it.
func TestCallOfOpenCodeThatTakesDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	o := newOpenCode(t, filepath.Join(w.options.Places[OpenCode], openCodeDatabase))
	o.at = time.Now().Add(-72 * time.Hour).UnixMilli()
	o.session("s", shop)
	o.message("s", "m1", openCodeUser, `{"type":"text","text":"go"}`)
	o.message("s", "m2", `{"role":"assistant","time":{"created":1}}`, openCodeStep,
		fmt.Sprintf(`{"type":"tool","callID":"c1","tool":"bash","state":{"status":"running","input":{"command":"make"},"time":{"start":%d}}}`, o.at))
	o.at = time.Now().UnixMilli()
	o.sessionIn("session", "sub", "s", shop)
	q := Query{Dirs: []string{shop}, Since: time.Now().Add(-48 * time.Hour)}
	same(t, "its process is gone", w.found(NewReader(w.options), q), "opencode sub 0")
	q.Processes = []Process{{Kind: OpenCode, PID: 7, Start: 70, Dir: shop, Began: time.Now().Add(-100 * time.Hour)}}
	same(t, "its process lives", w.found(NewReader(w.options), q), "opencode s 7 tool", "opencode sub 0")
}

// A session that is written on after a long rest is among the latest again.
func TestOrderOfTranscriptsIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	w.chats(shop, "a", "b", "c", "d", "e")
	chats := filepath.Join(w.options.Places[Qwen], "projects", claudeFolder(shop), "chats")
	aged(t, chats, time.Hour) // it will not be listed again
	r := NewReader(w.options)
	q := Query{Dirs: []string{shop}}
	same(t, "the latest", w.found(r, q), "qwen b 0 model", "qwen c 0 model", "qwen d 0 model", "qwen e 0 model")
	appendFile(t, filepath.Join(chats, "a.jsonl"), "\n")
	same(t, "at once", w.found(r, q), "qwen b 0 model", "qwen c 0 model", "qwen d 0 model", "qwen e 0 model")
	r.folders[chats].sorted = time.Now().Add(-2 * newestFor)
	same(t, "written on", w.found(r, q), "qwen a 0 model", "qwen c 0 model", "qwen d 0 model", "qwen e 0 model")
}

// A subagent that works is seen behind any number of others that have ended.
func TestSubagentAmongMany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	path := w.claude(shop, "a")
	appendFile(t, path, strings.Replace(claudeBash, "Bash", "Task", 1)+"\n")
	folder := filepath.Join(strings.TrimSuffix(path, ".jsonl"), "subagents")
	for n := range 1100 {
		for _, name := range []string{fmt.Sprintf("agent-%04d.jsonl", n), fmt.Sprintf("agent-%04d.meta.json", n)} {
			writeFile(t, filepath.Join(folder, name), "{}\n")
			aged(t, filepath.Join(folder, name), time.Hour)
		}
	}
	writeFile(t, filepath.Join(folder, "agent-9999.jsonl"), "{}\n")
	sessions, err := NewReader(w.options).Sessions(Query{Dirs: []string{shop}})
	if err != nil || len(sessions) != 1 || time.Since(sessions[0].SubagentAt) > 10*time.Minute {
		t.Errorf("%+v %v", sessions, err)
	}
}

// More sessions of OpenCode than are read are missing; more subagents are not, since theirs are read.
func TestManySessionsOfOpenCode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sessions, subagents int
		fault               bool
	}{
		"as many as are read": {openCodeSessionsMost, 0, false},
		"one more":            {openCodeSessionsMost + 1, 0, true},
		"many subagents":      {1, openCodeSessionsMost + 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			shop := w.dir("shop")
			o := newOpenCode(t, filepath.Join(w.options.Places[OpenCode], openCodeDatabase))
			for n := range test.sessions {
				o.at += 1000
				o.session(fmt.Sprint("main", n), shop)
			}
			for n := range test.subagents {
				o.at += 1000
				o.sessionIn("session", fmt.Sprint("sub", n), "main0", shop)
			}
			r := NewReader(w.options)
			for range 2 { // the second look is answered from memory
				sessions, err := r.Sessions(Query{Dirs: []string{shop}})
				main := slices.ContainsFunc(sessions, func(s Session) bool { return s.ID == "main0" })
				if len(sessions) != min(test.sessions+test.subagents, openCodeSessionsMost) || errors.Is(err, errUnread) != test.fault || main == test.fault {
					t.Errorf("%d sessions, the first one: %v, %v", len(sessions), main, err)
				}
			}
		})
	}
}

// Calls that are too many to be kept are missing until the model goes on.
func TestTooManyOpenCalls(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	writeFile(t, path, claudePrompt+"\n")
	unread := func() string {
		tr := newTranscript(path, newClaude)
		if err := tr.look(time.Time{}); err != nil {
			t.Fatal(err)
		}
		return tr.session(Claude).Unread
	}
	var calls strings.Builder
	for n := range openCalls {
		calls.WriteString(strings.ReplaceAll(claudeBash, "t1", fmt.Sprint("t", n)) + "\n")
	}
	appendFile(t, path, calls.String())
	if got := unread(); got != "" {
		t.Errorf("as many as are kept: %s", got)
	}
	appendFile(t, path, strings.ReplaceAll(claudeBash, "t1", "more")+"\n")
	if got := unread(); got == "" {
		t.Error("one of them is lost, and nothing is missing")
	}
	appendFile(t, path, strings.ReplaceAll(claudeEnd, `"stop_reason"`, `"id":"m2","stop_reason"`)+"\n")
	if got := unread(); got != "" {
		t.Errorf("the model goes on: %s", got)
	}
}

// A session of Codex stays in the folder of the day on which it began. Where the system does not tell the open files of a
// process, one of any day may be its present one.
func TestSessionOfCodexThatBeganLongAgo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.OpenFiles = nil
	shop := w.dir("shop")
	for day := range 12 {
		w.codex(daysAgo(day), w.dir("other"), fmt.Sprint("other", day))
	}
	works, rests := w.codex(daysAgo(5), shop, "works"), w.codex(daysAgo(30), shop, "rests")
	aged(t, w.codex(daysAgo(31), shop, "over"), 31*24*time.Hour)
	aged(t, rests, 72*time.Hour)
	q := Query{Dirs: []string{shop}, Since: time.Now().Add(-48 * time.Hour)}
	same(t, "nobody lives", w.found(NewReader(w.options), q))
	for _, dir := range []string{shop, ""} { // not every system tells it
		q.Processes = []Process{{Kind: Codex, PID: 5, Start: 50, Dir: dir, Began: time.Now().Add(-40 * 24 * time.Hour)}}
		pid := map[string]string{shop: "5", "": "0"}[dir]
		same(t, "it works", w.found(NewReader(w.options), q), "codex works "+pid+" model")
	}
	if err := os.Remove(works); err != nil {
		t.Fatal(err)
	}
	same(t, "it rests", w.found(NewReader(w.options), q), "codex rests 0 model")
	q.Processes[0].Began = time.Now().Add(-time.Hour)
	same(t, "a process that is younger", w.found(NewReader(w.options), q))
}

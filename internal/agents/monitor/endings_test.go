package monitor

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
)

var update = flag.Bool("update", false, "write docs/AGENT-ENDINGS.md anew")

// ending is how a session of an agent CLI has come to where it is, and what must be said and may be done of it.
type ending struct {
	name, story string
	text        map[string][]byte // its parts "transcript" and "session"

	Group  string `json:"group"`  // under which heading of the document it stands
	CLI    string `json:"cli"`    // claude or codex
	Source string `json:"source"` // where it comes from, for people
	// Recording is a folder of internal/agents/agentcli/testdata: its transcript and state file are taken where there is no part of that
	// name, up to UntilMS since the start. 0: all of it.
	Recording string `json:"recording"`
	UntilMS   int64  `json:"until_ms"`
	// Subagent is when a subagent of the session last wrote, before the look.
	Subagent *diagnose.Span `json:"subagent"`

	Headless bool          `json:"headless"` // claude -p, codex exec
	Exit     *int          `json:"exit"`     // its process has ended with this status, and a wrapper has seen it
	Signal   string        `json:"signal"`   // its process was ended by a signal, and a wrapper has seen it
	Gone     bool          `json:"gone"`     // its process has ended, and nobody knows how
	Rests    bool          `json:"rests"`    // it was seen at its prompt before it ended
	Stopped  bool          `json:"stopped"`  // by job control
	Alone    bool          `json:"alone"`    // its wrapper was killed, and it lives on
	Half     bool          `json:"half"`     // the last record of its transcript is not complete
	Slept    diagnose.Span `json:"slept"`    // how long the machine slept after the last record
	Person   bool          `json:"person"`   // whoever has typed the last prompt is taken to be there, as usual
	Child    string        `json:"child"`    // what a process that it has started does: busy or idle. "": there is none
	Hook     string        `json:"hook"`     // the event of its last hook: PermissionRequest
	After    diagnose.Span `json:"after"`    // between the last record and the look

	Want  diagnose.Class `json:"want"`
	Reset string         `json:"reset"` // until when it must be waited; "": that must not be known
	// May are the steps that may be taken in the hours after that: told, resume, restart, fresh. All others must not.
	May []string `json:"may"`
	// Must are those of them that must be taken.
	Must []string `json:"must"`
}

// endings are all cases of testdata/endings, by name.
func endings(t *testing.T) []ending {
	t.Helper()
	files, err := filepath.Glob("testdata/endings/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all []ending
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		e := ending{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), text: map[string][]byte{}}
		archive := txtar.Parse(text)
		e.story = strings.Join(strings.Fields(string(archive.Comment)), " ")
		for _, part := range archive.Files {
			e.text[part.Name] = part.Data
		}
		d := json.NewDecoder(bytes.NewReader(e.text["case"]))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		delete(e.text, "case")
		if e.Recording != "" {
			if err := e.read(filepath.Join("..", "agentcli", "testdata", filepath.FromSlash(e.Recording))); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		if e.story == "" || e.Source == "" || !slices.Contains(endingGroups, e.Group) || e.CLI != "claude" && e.CLI != "codex" {
			t.Fatalf("%s: no story, no source, or no such group or CLI", file)
		}
		for part := range e.text {
			if part != "transcript" && part != "session" {
				t.Fatalf("%s: no part %q is known", file, part)
			}
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b ending) int { return strings.Compare(a.name, b.name) })
	return all
}

// read takes what a recording shows up to a moment.
func (e *ending) read(dir string) error {
	timeline, err := os.ReadFile(filepath.Join(dir, "timeline.jsonl"))
	if err != nil {
		return err
	}
	transcript, err := os.ReadFile(filepath.Join(dir, "transcript.jsonl"))
	if err != nil {
		return err
	}
	records := bytes.SplitAfter(transcript, []byte("\n"))
	n := 0
	var session json.RawMessage
	for line := range bytes.Lines(timeline) {
		var event struct {
			MS   int64           `json:"ms"`
			What string          `json:"what"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}
		if e.UntilMS > 0 && event.MS > e.UntilMS {
			break
		}
		switch event.What {
		case "session":
			session = event.Data
		case "transcript":
			n++
		}
	}
	if _, own := e.text["transcript"]; !own {
		if e.UntilMS == 0 {
			n = len(records)
		}
		e.text["transcript"] = bytes.Join(records[:min(n, len(records))], nil)
	}
	if _, own := e.text["session"]; !own && session != nil {
		e.text["session"] = session
	}
	return nil
}

// times are those of the first and the last record, or of the last change of the state file.
func (e *ending) times(t *testing.T) (first, last time.Time) {
	t.Helper()
	note := func(at time.Time) {
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	for line := range bytes.Lines(e.text["transcript"]) {
		var record struct {
			Timestamp time.Time `json:"timestamp"`
		}
		if json.Unmarshal(line, &record) == nil && !record.Timestamp.IsZero() {
			note(record.Timestamp)
		}
	}
	var state struct {
		At int64 `json:"statusUpdatedAt"`
	}
	if json.Unmarshal(e.text["session"], &state) == nil && state.At > 0 {
		note(time.UnixMilli(state.At))
	}
	if last.IsZero() {
		t.Fatal("no record has a time")
	}
	return first.UTC(), last.UTC()
}

// endingSeen is what came of one.
type endingSeen struct {
	diagnosis diagnose.Diagnosis
	steps     []string // told, resume, restart, fresh, kill, each with when it was taken
	took      map[string]bool
	last      time.Time // of its records
	until     time.Time // is waited
}

const endingPID = 1001

// live lets an ending happen in a world, and looks at what outlive makes of it for hours, or until it starts anything.
func (e *ending) live(t *testing.T) endingSeen {
	w := newWorld(t)
	w.opts.Places = agentcli.Places{agentcli.Claude: filepath.Join(w.home, "claude"), agentcli.Codex: filepath.Join(w.home, "codex")}
	first, last := e.times(t)
	w.wall = first
	lines := "kind: " + e.CLI + "\n" + starts
	if !e.Person {
		lines += "expect: {attended: 1s}\n"
	}
	w.declare("", w.agent("shop", lines))
	w.args[endingPID] = []string{e.CLI}
	if e.Headless {
		w.args[endingPID] = map[string][]string{"claude": {"claude", "-p", "go on"}, "codex": {"codex", "exec", "go on"}}[e.CLI]
	}
	w.process(endingPID-1, w.dir("shop"), 10*time.Second)
	w.process(endingPID, w.dir("shop"), 10*time.Second)
	w.parents[endingPID] = endingPID - 1
	wrapped := e.Headless || e.Exit != nil || e.Signal != "" || e.Alone
	if wrapped {
		w.reportsOf("shop", endingPID, e.Headless, nil)
	}
	w.cycle() // it has only just begun
	if e.Alone {
		delete(w.living, endingPID-1)
	}
	w.pass(last.Add(time.Second).Sub(first))
	w.halted[endingPID] = e.Stopped
	if e.Child != "" {
		w.process(endingPID+1, w.dir("shop"), w.wall.Sub(first))
		w.parents[endingPID+1], w.args[endingPID+1] = endingPID, []string{"sh", "check.sh"}
	}
	e.lay(t, w, first, last)
	if e.Slept > 0 {
		w.look()
		w.sleep(time.Duration(e.Slept))
	}
	return e.watch(t, w, last)
}

// happens lets happen what the files do not show: a hook, which needs a look before, and the end of the process.
func (e *ending) happens(t *testing.T, w *world, look func()) {
	t.Helper()
	died := e.Gone || e.Exit != nil || e.Signal != ""
	if !died && e.Hook == "" && e.Child == "" {
		return
	}
	if !died || e.Rests {
		look()
	}
	if e.Hook != "" {
		err := hooks.Drop(hooks.Dir(w.home), hooks.Event{
			Time: w.wall, Vendor: e.CLI, Name: e.Hook, Session: e.session(), Dir: w.dir("shop"), PID: endingPID, Tool: "exec_command", Input: `{"command":"touch approved.txt"}`,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !died || e.Rests {
		w.passBusy(5*time.Second, e.Child == "busy")
	}
	if !died {
		return
	}
	if e.Exit != nil || e.Signal != "" {
		exit := agentrun.Exit{Signal: e.Signal, At: w.wall}
		if e.Exit != nil {
			exit.Code = *e.Exit
		}
		w.reportsOf("shop", endingPID, e.Headless, &exit)
	}
	for pid := range w.living {
		delete(w.living, pid)
	}
}

// passBusy lets time pass; what the agent has started works meanwhile, or does nothing.
func (w *world) passBusy(d time.Duration, busy bool) {
	w.pass(d)
	if busy {
		w.used[endingPID+1] += d / 10
	}
}

// session is the id of the session.
func (e *ending) session() string {
	for line := range bytes.Lines(e.text["transcript"]) {
		var record struct {
			Session string `json:"sessionId"`
			Payload struct {
				ID string `json:"id"`
			} `json:"payload"`
		}
		if json.Unmarshal(line, &record) == nil && record.Session+record.Payload.ID != "" {
			return record.Session + record.Payload.ID
		}
	}
	return "s"
}

// lay writes the CLI's own files.
func (e *ending) lay(t *testing.T, w *world, first, last time.Time) {
	t.Helper()
	transcript := strings.ReplaceAll(string(e.text["transcript"]), "/home/u/shop", inJSON(w.dir("shop")))
	if e.Half {
		transcript = strings.TrimSuffix(transcript, "\n") // the archive ends each part with one
	}
	id := e.session()
	if e.CLI == "codex" {
		name := filepath.Join("codex", "sessions", first.Format("2006/01/02"), "rollout-"+first.Format("2006-01-02T15-04-05")+"-"+id+".jsonl")
		w.file(name, transcript, last)
		w.files[endingPID] = []string{filepath.Join(w.home, name)}
		return
	}
	folder := filepath.Join("claude", "projects", noWord.ReplaceAllString(w.dir("shop"), "-"))
	w.file(filepath.Join(folder, id+".jsonl"), transcript, last)
	if e.Subagent != nil {
		w.file(filepath.Join(folder, id, "subagents", "agent-1.jsonl"), "{}\n", last.Add(time.Duration(e.After-*e.Subagent)))
	}
	state := map[string]any{}
	if text := e.text["session"]; text != nil {
		if err := json.Unmarshal(text, &state); err != nil {
			t.Fatal(err)
		}
		state["pid"], state["procStart"], state["cwd"], state["sessionId"] = endingPID, strconv.Itoa(endingPID*1000+1), w.dir("shop"), id
		if state["statusUpdatedAt"] == nil && state["status"] != nil {
			state["statusUpdatedAt"] = last.UnixMilli()
		}
		text, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		w.file(filepath.Join("claude", "sessions", strconv.Itoa(endingPID)+".json"), string(text), last)
	}
}

func (w *world) file(name, text string, at time.Time) {
	w.t.Helper()
	path := filepath.Join(w.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
		w.t.Fatal(err)
	}
}

// watch looks for hours, more and more seldom, until something was started. What is done is what a person would have seen.
func (e *ending) watch(t *testing.T, w *world, last time.Time) (seen endingSeen) {
	t.Helper()
	seen.took, seen.last = map[string]bool{}, last
	told := 0
	note := func(step string) {
		if !seen.took[step] {
			seen.steps = append(seen.steps, step+" "+diagnose.Span(w.wall.Sub(last).Round(time.Minute)).String())
		}
		seen.took[step] = true
	}
	reset := time.Time{}
	if e.Reset != "" {
		var err error
		if reset, err = time.Parse(time.RFC3339, e.Reset); err != nil {
			t.Fatal(err)
		}
	}
	most := max(4*time.Hour, reset.Sub(last)+time.Hour)
	look := func() {
		w.look()
		if len(w.said) > told {
			note("told")
		}
		told = len(w.said)
		if len(w.stopped) > 0 || len(w.interrupted) > 0 {
			note("end")
		}
		for _, rung := range w.rungs() {
			note(map[string]string{"resume": "resume", "new": "restart"}[rung])
		}
	}
	judge := func() {
		view, err := Inspect(t.Context(), w.opts)
		if err != nil || len(view.Findings) != 1 {
			t.Fatal(view, err)
		}
		seen.diagnosis = view.Findings[0].Diagnosis
		if seen.diagnosis.Hold > 0 {
			seen.until = w.wall.Add(time.Duration(seen.diagnosis.Hold)).UTC()
		}
	}
	e.happens(t, w, look)
	judged := false
	for step := 30 * time.Second; w.wall.Sub(last) < most && len(w.started) == 0; {
		left := last.Add(time.Duration(e.After)).Sub(w.wall)
		if !judged && left <= 0 {
			judge()
			judged = true
		}
		look()
		switch passed := w.wall.Sub(last); {
		case passed >= 40*time.Minute:
			step = 10 * time.Minute
		case passed >= 5*time.Minute:
			step = time.Minute
		}
		if !judged {
			w.passBusy(min(left, step), e.Child == "busy")
		} else {
			w.passBusy(step, e.Child == "busy")
		}
	}
	if !judged {
		t.Errorf("something was started before %s had passed: %v", e.After, seen.steps)
		judge()
	}
	return seen
}

// What real CLIs show at their end, in a question, a dialog, an error or at work, is judged right, and nothing is done that is not
// allowed then. The document that says so is made here.
func TestEndings(t *testing.T) {
	zone := time.Local
	time.Local = time.UTC // Codex tells its clock without a zone
	t.Cleanup(func() { time.Local = zone })
	all := endings(t)
	if len(all) < 200 {
		t.Errorf("%d endings, wanted at least 200", len(all))
	}
	var mu sync.Mutex
	seen := map[string]endingSeen{}
	t.Cleanup(func() { endingsAreDocumented(t, all, seen) })
	for i, e := range all {
		if i%scenarioStride != 0 {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			got := e.live(t)
			mu.Lock()
			seen[e.name] = got
			mu.Unlock()
			v := got.diagnosis
			if v.Class != e.Want {
				t.Errorf("want %s, got %s: %s", e.Want, v.Class, v.Details)
			}
			until := ""
			if !got.until.IsZero() {
				until = got.until.Round(time.Minute).Format(time.RFC3339)
			}
			if until != e.Reset {
				t.Errorf("waited for until %q, want %q: %s", until, e.Reset, v.Details)
			}
			for step := range got.took {
				if !slices.Contains(e.May, step) && !slices.Contains(e.Must, step) {
					t.Errorf("%s is not allowed: %v", step, got.steps)
				}
			}
			for _, step := range e.Must {
				if !got.took[step] {
					t.Errorf("%s was not done: %v", step, got.steps)
				}
			}
		})
	}
}

// endingsAreDocumented holds the document against what all endings have come to.
func endingsAreDocumented(t *testing.T, all []ending, seen map[string]endingSeen) {
	t.Helper()
	if t.Failed() || len(seen) < len(all) {
		return // a part of them was asked for
	}
	path := filepath.Join("..", "..", "..", "docs", "AGENT-ENDINGS.md")
	text := endingsDocument(all, seen)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(was), "\r\n", "\n"), text); diff != "" {
		t.Errorf("go test ./internal/agents/monitor -run TestEndings -update writes %s anew: %s", path, diff)
	}
}

package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// recorder writes down what an agent shows while it runs: its title, its own state file, the growth of its
// transcript, its hooks, in the order and at the time in which they were seen.
type recorder struct {
	a    *agent
	quit chan struct{}
	over chan struct{}

	mu    sync.Mutex
	lines []recorded
	last  map[string]string // what was written down last, by file
}

// recorded is one line of a timeline.
type recorded struct {
	MS   int64  `json:"ms"`   // since the agent was started
	What string `json:"what"` // title, session, transcript, hook, signal, exit
	Data any    `json:"data"`
}

func newRecorder(a *agent) *recorder {
	return &recorder{a: a, quit: make(chan struct{}), over: make(chan struct{}), last: map[string]string{}}
}

func (r *recorder) add(what string, data any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, recorded{MS: time.Since(r.a.started).Milliseconds(), What: what, Data: data})
}

// run looks at the agent's files until stop. It polls: file events would leave out what is replaced in between, too,
// and the recording shows what a reader could have seen.
func (r *recorder) run() {
	defer close(r.over)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		r.look()
		select {
		case <-r.quit:
			r.look()
			return
		case <-tick.C:
		}
	}
}

func (r *recorder) look() {
	for _, name := range r.a.sessionFiles() {
		data, err := os.ReadFile(name)
		if err != nil || !json.Valid(data) || !r.changed(name, string(data)) {
			continue
		}
		r.add("session", json.RawMessage(bytes.Clone(data)))
	}
	for _, name := range r.a.transcripts() {
		if data, err := os.ReadFile(name); err == nil {
			r.grown("transcript", name, data)
		}
	}
	if data, err := os.ReadFile(r.a.w.path("hooks.jsonl")); err == nil {
		r.grown("hook", "hooks", data)
	}
}

func (r *recorder) changed(name, data string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last[name] == data {
		return false
	}
	r.last[name] = data
	return true
}

// grown writes down each new whole line of a file by its kind.
func (r *recorder) grown(what, name string, data []byte) {
	whole := string(data[:bytes.LastIndexByte(data, '\n')+1])
	r.mu.Lock()
	before := len(r.last[name])
	r.mu.Unlock()
	if !r.changed(name, whole) || before > len(whole) {
		return
	}
	for line := range strings.Lines(whole[before:]) {
		r.add(what, lineKind(line))
	}
}

// lineKind names a record of a transcript or a hook payload.
func lineKind(line string) string {
	var rec struct {
		Event   string `json:"hook_event_name"`
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
		Payload struct {
			Type string `json:"type"`
		} `json:"payload"`
	}
	if json.Unmarshal([]byte(line), &rec) != nil {
		return "not JSON"
	}
	kind := rec.Event + rec.Type
	for _, part := range []string{rec.Subtype, rec.Payload.Type} {
		if part != "" {
			kind += "/" + part
		}
	}
	return kind
}

func (r *recorder) stop() {
	select {
	case <-r.quit:
	default:
		close(r.quit)
	}
	<-r.over
}

// sessionFiles are Claude Code's state files, one per running process. Codex has none.
func (a *agent) sessionFiles() []string {
	names, _ := filepath.Glob(filepath.Join(a.config, "sessions", "*.json"))
	return names
}

// transcripts are the agent's transcripts: Claude's projects/<dir>/<session>.jsonl, Codex' rollouts, Gemini CLI's chats. OpenCode has a
// database instead.
func (a *agent) transcripts() []string {
	folder := map[string]string{"claude": "projects", "codex": "sessions", "gemini": "tmp"}[a.kind]
	if folder == "" {
		return nil
	}
	var names []string
	_ = filepath.WalkDir(filepath.Join(a.config, folder), func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".jsonl") {
			names = append(names, name)
		}
		return nil // what cannot be read is not there yet
	})
	return names
}

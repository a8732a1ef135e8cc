package agentcli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

const (
	sessionFileSize = 64 << 10 // maximum size of a session's file in bytes
	folderName      = 200      // characters of a project's folder name; longer ones are cut, and a digest is added
)

// claudeSession is the file sessions/<pid>.json of Claude Code (recorded: 2.1.330). It is written again when the
// status changes, remains when the process is killed, and is not a heartbeat.
type claudeSession struct {
	PID        int     `json:"pid"`
	ID         string  `json:"sessionId"`
	Dir        string  `json:"cwd"`
	ProcStart  string  `json:"procStart"` // on Linux as in /proc/PID/stat
	Status     string  `json:"status"`    // idle, busy, waiting, shell
	StatusAt   float64 `json:"statusUpdatedAt"`
	WaitingFor string  `json:"waitingFor"`
}

// parseClaudeSession parses a session's file; ok is false if it is not one.
func parseClaudeSession(text []byte) (s claudeSession, ok bool) {
	if !json.Valid(text) || !decode(text, &s) {
		return claudeSession{}, false
	}
	return s, s.PID > 0 && filepath.IsAbs(s.Dir)
}

// claudeWaits are the known words for what a session waits for; any other is a dialog.
var claudeWaits = map[string]Wait{
	"permission prompt": ForPermission,
	"sandbox request":   ForPermission,
	"worker request":    ForPermission,
	"input needed":      ForQuestion,
	"goal proposal":     ForQuestion,
	"dialog open":       ForDialog,
}

// show copies the file's content into s.
func (c *claudeSession) show(s *Session) {
	s.PID = c.PID
	s.Start, _ = strconv.ParseUint(c.ProcStart, 10, 64) // 0: another system's format
	if c.ID != "" {
		s.ID = c.ID
	}
	s.Dir = filepath.Clean(c.Dir)
	at := millis(c.StatusAt)
	switch c.Status {
	case "idle":
		s.Status, s.StatusAt = Idle, at
		s.Turn.gaveUpAt(at)
	case "busy":
		if s.Status != Retrying {
			s.Status, s.StatusAt = Busy, at
		}
		s.Turn.beganAt(at)
	case "shell": // at its prompt, and a shell runs in the background
		s.Status, s.StatusAt = Idle, at
	case "waiting":
		s.Status, s.StatusAt = Waiting, at
		s.WaitingFor = ForDialog
		if wait, known := claudeWaits[c.WaitingFor]; known {
			s.WaitingFor = wait
		}
	}
}

// claudeFile is a session's file as it was last read.
type claudeFile struct {
	info    fs.FileInfo
	session claudeSession
	ok      bool
}

// claudeFiles are Claude Code's files, and what is remembered of them.
type claudeFiles struct {
	source
	known map[string]*claudeFile
}

func newClaudeFiles(s source) files {
	return &claudeFiles{source: s, known: map[string]*claudeFile{}}
}

// sessions returns the sessions of Claude Code: first those with a file of their own, then those with only a
// transcript.
func (r *claudeFiles) sessions(w *wanted) ([]Session, error) {
	files, err := r.claudeOwnFiles()
	errs := []error{err}
	var all []Session
	named := map[string]bool{}
	for _, file := range files {
		w.named[Process{Kind: Claude, PID: file.PID}] = true
		if !w.has(filepath.Clean(file.Dir)) {
			continue
		}
		s, err := r.claudeNamed(file, w)
		errs = append(errs, err)
		named[s.File] = true
		all = append(all, s)
	}
	for _, dir := range w.roots {
		found, err := r.claudeTranscripts(dir, w, named)
		all = append(all, found...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// claudeOwnFiles returns the session files. For one that is being written, the previous content is used.
func (r *claudeFiles) claudeOwnFiles() ([]claudeSession, error) {
	dir := filepath.Join(r.place, "sessions")
	f, err := r.list(dir)
	var all []claudeSession
	errs := []error{err}
	now := map[string]*claudeFile{}
	for _, name := range f.names {
		if filepath.Ext(name) != ".json" {
			continue
		}
		file, err := readClaudeFile(filepath.Join(dir, name), r.known[name])
		if err != nil && !missing(err) {
			errs = append(errs, err)
		}
		if file != nil {
			now[name] = file
			if file.ok {
				all = append(all, file.session)
			}
		}
	}
	r.known = now
	return all, errors.Join(errs...)
}

// readClaudeFile reads a session's file if it has changed.
func readClaudeFile(path string, before *claudeFile) (*claudeFile, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	// Within a tick of the file system's clock the content can change without a new time, as from busy to waiting.
	if before != nil && sameFile(info, before.info) && time.Since(info.ModTime()) > settledAfter {
		return before, nil
	}
	text, err := atomicfile.ReadPlain(path, sessionFileSize)
	if err != nil {
		return before, err
	}
	session, ok := parseClaudeSession(text)
	if !ok && before != nil && !json.Valid(text) {
		return before, nil // partly written
	}
	return &claudeFile{info: info, session: session, ok: ok}, nil
}

// claudeNamed returns the session of a session's file. The files of killed processes remain: their old transcripts
// are not opened.
func (r *claudeFiles) claudeNamed(file claudeSession, w *wanted) (Session, error) {
	var since time.Time
	if !w.mayLive(Claude, file.PID) {
		since = w.Since
	}
	s := Session{Kind: Claude, ID: file.ID}
	var err error
	if file.ID != "" && file.ID == filepath.Base(file.ID) {
		var t *transcript
		path := r.claudePath(file)
		if t, err = r.transcript(path, since, newClaude); t != nil {
			_, _ = r.list(filepath.Dir(path)) // only to have the folder followed; the transcript has been read
			s = t.session(Claude)
			err = errors.Join(err, r.lookAtSubagents(&s))
			lookAtTasks(&s)
		}
	}
	file.show(&s)
	return s, err
}

// claudePath is the path of the transcript for a session's file.
func (r *claudeFiles) claudePath(file claudeSession) string {
	projects := filepath.Join(r.place, "projects")
	folder := claudeFolder(file.Dir)
	path := filepath.Join(projects, folder, file.ID+".jsonl")
	if len(folder) <= folderName {
		return path
	}
	f, _ := r.list(projects) // the look at the transcripts lists it, too, and has the error
	for _, name := range f.names {
		if strings.HasPrefix(name, folder[:folderName]) {
			other := filepath.Join(projects, name, file.ID+".jsonl")
			if _, err := os.Lstat(other); err == nil {
				return other
			}
		}
	}
	return path
}

func newClaude() parser { return &claudeTranscript{} }

// claudeFolder is the name of the folder with a directory's transcripts. Each UTF-16 unit but the letters and digits of
// ASCII is a hyphen, since the CLI is written in JavaScript: an emoji is two.
func claudeFolder(dir string) string {
	var name strings.Builder
	for _, c := range dir {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			name.WriteRune(c)
		} else {
			name.WriteString(strings.Repeat("-", utf16.RuneLen(c)))
		}
	}
	return name.String()
}

// claudeTranscripts returns the sessions in or below a directory that have only a transcript. "a-b" is the folder of a/b
// and of a-b: each transcript says which it is of.
func (r *claudeFiles) claudeTranscripts(root string, w *wanted, named map[string]bool) ([]Session, error) {
	projects := filepath.Join(r.place, "projects")
	f, err := r.list(projects)
	prefix := claudeFolder(root)
	prefix = prefix[:min(len(prefix), folderName)]
	var all []Session
	errs := []error{err}
	first, _ := slices.BinarySearch(f.names, prefix)
	for _, name := range f.names[first:] {
		if !strings.HasPrefix(name, prefix) {
			break
		}
		folder, err := r.listNewest(filepath.Join(projects, name), isTranscript)
		errs = append(errs, err)
		found, err := r.readNewest(w, Claude, folder, named, newClaude)
		errs = append(errs, err)
		for _, t := range found {
			if t.parser.what().id == "" {
				continue
			}
			named[t.tail.path] = true
			s := t.session(Claude)
			errs = append(errs, r.lookAtSubagents(&s))
			lookAtTasks(&s)
			all = append(all, s)
		}
	}
	return all, errors.Join(errs...)
}

// subagentTools are the tools that run subagents. All of those write below the session's own folder.
var subagentTools = []string{"Task", "Agent", "Workflow", "Skill", "TaskOutput", "AgentOutputTool"}

// lookAtSubagents finds out when a subagent last wrote, while the tool that runs it is open: the session itself is
// silent then. If they cannot be seen, that is no evidence of silence.
func (r *claudeFiles) lookAtSubagents(s *Session) error {
	if s.Turn.Open != Tool || !slices.Contains(subagentTools, s.Turn.Tool) {
		return nil
	}
	var err error
	s.SubagentAt, err = r.lastWritten(filepath.Join(strings.TrimSuffix(s.File, ".jsonl"), "subagents"))
	return err
}

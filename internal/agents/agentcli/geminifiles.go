package agentcli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

const geminiProjects = 1 << 20 // maximum size of the list of projects in bytes

// geminiFiles remembers Gemini CLI's list of projects, which says which folder belongs to which directory.
type geminiFiles struct {
	source
	info   fs.FileInfo
	folder map[string]string // by directory
}

func newGemini() parser { return &geminiTranscript{} }

func isChat(name string) bool { return strings.HasPrefix(name, "session-") && isTranscript(name) }

func newGeminiFiles(s source) files { return &geminiFiles{source: s} }

// sessions returns the sessions of Gemini CLI in the wanted directories.
func (r *geminiFiles) sessions(w *wanted) ([]Session, error) {
	var all []Session
	errs := []error{r.geminiList()}
	taken := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(r.folder)) {
		if !w.has(dir) {
			continue
		}
		chats, err := r.listNewest(filepath.Join(r.place, "tmp", r.folder[dir], "chats"), isChat)
		errs = append(errs, err, chats.leftSince(w.Since))
		for i, file := range chats.newest {
			if taken[file.path] {
				continue
			}
			taken[file.path] = true
			since := w.Since
			if i == 0 && w.mayBeOf(Gemini, dir, file.at) {
				since = time.Time{} // it may be the present one of a process, however old it is
			}
			t, err := r.transcript(file.path, since, newGemini)
			errs = append(errs, err)
			if t == nil || t.parser.what().id == "" {
				continue
			}
			s := t.session(Gemini)
			s.Dir = dir
			errs = append(errs, r.lookAtSubagents(&s))
			all = append(all, s)
		}
	}
	return all, errors.Join(errs...)
}

// lookAtSubagents finds out whether a subagent of a session has written since its last record. A call runs then, which
// the session's own file does not show before it has ended. It cannot be so when a person or an error has ended the turn.
func (r *geminiFiles) lookAtSubagents(s *Session) error {
	t := &s.Turn
	if !plainName(s.ID) || t.Interrupted || t.Error.Kind != NoFailure {
		return nil
	}
	at, err := r.lastWritten(filepath.Join(filepath.Dir(s.File), s.ID))
	if at.After(t.LastAt) {
		s.SubagentAt, s.Status, s.StatusAt = at, Busy, t.LastAt
		t.Open, t.OpenAt, t.Tool, t.ToolInput = Tool, t.LastAt, "a subagent", ""
		t.Ended, t.EndedAsking = false, false
	}
	return err
}

// plainName reports whether a name from a file leads nowhere else than to an entry of its folder.
func plainName(name string) bool {
	return filepath.IsLocal(name) && name == filepath.Base(name) && name != "."
}

// geminiList reads the list of projects if it has changed. If it cannot be parsed, the previous one is kept.
func (r *geminiFiles) geminiList() error {
	path := filepath.Join(r.place, "projects.json")
	info, err := os.Lstat(path)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if sameFile(info, r.info) {
		return nil
	}
	text, err := atomicfile.ReadPlain(path, geminiProjects)
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if folders, ok := parseGeminiProjects(text); ok {
		r.info, r.folder = info, folders
	}
	return nil
}

// parseGeminiProjects parses the list of projects: the folder of each directory.
func parseGeminiProjects(text []byte) (map[string]string, bool) {
	var list struct {
		Projects map[string]string `json:"projects"`
	}
	if !json.Valid(text) || !decode(text, &list) || list.Projects == nil {
		return nil, false
	}
	folders := map[string]string{}
	for dir, folder := range list.Projects {
		if filepath.IsAbs(dir) && plainName(folder) {
			folders[filepath.Clean(dir)] = folder
		}
	}
	return folders, true
}

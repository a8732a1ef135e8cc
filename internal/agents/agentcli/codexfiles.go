package agentcli

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	codexDays = 7           // latest folders of days that are read
	askAgain  = time.Minute // after this time a process's open files are listed again
	dayLength = 24 * time.Hour
)

// heldFiles are the rollouts that a process has open.
type heldFiles struct {
	paths  []string
	asked  time.Time
	newest string // the latest of all rollouts then: a process may have begun another one since
	looked uint64
}

// codexFiles are Codex' files, and what is remembered of them.
type codexFiles struct {
	source
	held map[Process]*heldFiles
}

func newCodex() parser { return &codexTranscript{} }

func isRollout(name string) bool {
	return strings.HasPrefix(name, "rollout-") && filepath.Ext(name) == ".jsonl"
}

func newCodexFiles(s source) files { return &codexFiles{source: s, held: map[Process]*heldFiles{}} }

// sessions returns the sessions of Codex: first those whose file a process has open, then the latest of the wanted
// directories.
func (r *codexFiles) sessions(w *wanted) ([]Session, error) {
	latest, err := r.codexLatest(w.Since)
	errs := []error{err}
	taken := map[string]bool{}
	all, err := r.codexOpen(w, latest, taken)
	errs = append(errs, err)
	for _, path := range latest {
		if taken[path] || !r.codexWanted(path, w) {
			continue
		}
		t, err := r.transcript(path, w.Since, newCodex)
		errs = append(errs, err)
		if t != nil && t.parser.what().id != "" {
			all = append(all, t.session(Codex))
		}
	}
	for p, held := range r.held {
		if held.looked != r.looks {
			delete(r.held, p)
		}
	}
	return all, errors.Join(errs...)
}

// codexOpen returns the sessions whose file a process has open, and adds the files to taken.
func (r *codexFiles) codexOpen(w *wanted, latest []string, taken map[string]bool) (all []Session, err error) {
	var errs []error
	for _, p := range w.Processes {
		if p.Kind != Codex {
			continue
		}
		for _, path := range r.codexHeld(p, latest) {
			if taken[path] {
				continue // the wrapper and the program both have it open
			}
			t, err := r.transcript(path, time.Time{}, newCodex)
			errs = append(errs, err)
			if t == nil {
				continue
			}
			s := t.session(Codex)
			if s.ID == "" || !w.has(s.Dir) {
				continue
			}
			taken[path] = true
			s.PID, s.Start = p.PID, p.Start
			all = append(all, s)
		}
	}
	return all, errors.Join(errs...)
}

// codexLatest returns the latest rollouts, the latest first.
func (r *codexFiles) codexLatest(since time.Time) ([]string, error) {
	days, err := r.codexFolders(filepath.Join(r.place, "sessions"), 3, codexDays, nil)
	var latest []string
	errs := []error{err}
	for _, day := range days {
		if before, err := time.Parse("2006/01/02", dayOf(day)); err != nil || before.Add(2*dayLength).Before(since) {
			continue // names are local dates: one more day is enough for every time zone
		}
		found, err := r.listNewest(day, isRollout)
		errs = append(errs, err, found.leftSince(since))
		for _, file := range found.newest {
			latest = append(latest, file.path)
		}
	}
	return latest, errors.Join(errs...)
}

// dayOf is the end of a path, "2026/11/21".
func dayOf(path string) string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	return strings.Join(parts[max(0, len(parts)-3):], "/")
}

// codexFolders returns the latest folders some levels down. Their names are numbers of the same length.
func (r *codexFiles) codexFolders(path string, levels, most int, into []string) ([]string, error) {
	if levels == 0 {
		return append(into, path), nil
	}
	f, err := r.list(path)
	errs := []error{err}
	for _, name := range slices.Backward(f.names) {
		if len(into) >= most {
			break
		}
		if strings.Trim(name, "0123456789") != "" {
			continue
		}
		into, err = r.codexFolders(filepath.Join(path, name), levels-1, most, into)
		errs = append(errs, err)
	}
	return into, errors.Join(errs...)
}

// codexHeld returns the rollouts that a process has open. They are listed again when there is a new rollout, and from
// time to time, because a session may continue an old one.
func (r *codexFiles) codexHeld(p Process, latest []string) []string {
	if r.options.OpenFiles == nil {
		return nil
	}
	newest := ""
	if len(latest) > 0 {
		newest = slices.Max(latest) // names begin with the time
	}
	key := Process{Kind: Codex, PID: p.PID, Start: p.Start}
	held := r.held[key]
	if held == nil || len(held.paths) == 0 || held.newest != newest || time.Since(held.asked) > askAgain {
		held = &heldFiles{asked: time.Now(), newest: newest}
		sessions := filepath.Join(r.place, "sessions")
		for _, path := range r.options.OpenFiles(p.PID) {
			if path = filepath.Clean(path); isRollout(filepath.Base(path)) && (within(path, sessions) || within(path, r.realPath(sessions))) {
				held.paths = append(held.paths, path)
			}
		}
		slices.Sort(held.paths)
		held.paths = slices.Compact(held.paths)
		r.held[key] = held
	}
	held.looked = r.looks
	return held.paths
}

// codexWanted reports whether a rollout belongs to a wanted directory, according to its first line.
func (r *codexFiles) codexWanted(path string, w *wanted) bool {
	if len(w.roots) == 0 && !slices.ContainsFunc(w.Processes, func(p Process) bool { return p.Kind == Codex }) {
		return false // it could not be assigned to a directory
	}
	head := r.head(path, newCodex)
	return head.dir != "" && w.has(head.dir)
}

package agentcli

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	codexDays    = 7           // latest folders of days that are read
	codexDaysAll = 400         // and of those with the session of a process that may have begun it long ago
	askAgain     = time.Minute // after this time a process's open files are listed again
	dayLength    = 24 * time.Hour
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
// directories. If no process is known to have one open, these may be of any day.
func (r *codexFiles) sessions(w *wanted) ([]Session, error) {
	latest, err := r.codexLatest(w.Since)
	errs := []error{err}
	taken := map[string]bool{}
	all, told, err := r.codexOpen(w, latest, taken)
	errs = append(errs, err)
	if !told {
		older, err := r.codexOlder(w)
		errs = append(errs, err)
		latest = append(latest, older...)
		slices.SortStableFunc(latest, func(a, b file) int { return b.at.Compare(a.at) })
	}
	present := map[string]bool{} // the directories whose latest session was met
	for _, file := range latest {
		if taken[file.path] {
			continue
		}
		head := r.codexHead(file.path, w)
		if head.dir == "" {
			continue
		}
		since := w.Since
		if !told && !present[head.dir] && !head.subagent && w.mayBeOf(Codex, head.dir, file.at) {
			since, present[head.dir] = time.Time{}, true // it may be the present one of a process, however old it is
		}
		t, err := r.transcript(file.path, since, newCodex)
		errs = append(errs, err)
		if t != nil && t.parser.what().id != "" {
			all = append(all, t.session(Codex))
		}
	}
	maps.DeleteFunc(r.held, func(_ Process, held *heldFiles) bool { return held.looked != r.looks })
	return all, errors.Join(errs...)
}

// codexOpen returns the sessions whose file a process has open, and adds the files to taken. told says that the system tells
// of such files.
func (r *codexFiles) codexOpen(w *wanted, latest []file, taken map[string]bool) (all []Session, told bool, err error) {
	var errs []error
	for _, p := range w.Processes {
		if p.Kind != Codex {
			continue
		}
		for _, path := range r.codexHeld(p, latest) {
			told = true
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
	return all, told, errors.Join(errs...)
}

// codexLatest returns the rollouts of the latest days, the latest day first.
func (r *codexFiles) codexLatest(since time.Time) ([]file, error) {
	days, err := r.codexFolders(r.list, filepath.Join(r.place, "sessions"), 3, codexDays, nil)
	var latest []file
	errs := []error{err}
	for _, day := range days {
		if isPast(day, since) {
			continue
		}
		found, err := r.listNewest(day, isRollout)
		errs = append(errs, err, found.leftSince(since))
		latest = append(latest, found.newest...)
	}
	return latest, errors.Join(errs...)
}

// codexOlder returns the rollouts of all other days that a living process may have written. A session's rollout stays in the
// folder of the day on which it began. These folders are many, and are not followed.
func (r *codexFiles) codexOlder(w *wanted) (older []file, err error) {
	if !w.mayBeOf(Codex, "", time.Now()) {
		return nil, nil
	}
	days, err := r.codexFolders(r.peek, filepath.Join(r.place, "sessions"), 3, codexDaysAll, nil)
	errs := []error{err}
	for i, day := range days {
		if i < codexDays && !isPast(day, w.Since) {
			continue // it is among the latest
		}
		found, err := r.peek(day)
		errs = append(errs, err)
		found.order(day, isRollout)
		for _, file := range found.newest {
			if !w.mayBeOf(Codex, "", file.at) {
				break // the others are older
			}
			older = append(older, file)
		}
	}
	return older, errors.Join(errs...)
}

// isPast reports whether the folder of a day is older than since, by its name. Names are local dates: one more day is enough
// for every time zone.
func isPast(day string, since time.Time) bool {
	at, err := time.Parse("2006/01/02", dayOf(day))
	return err != nil || at.Add(2*dayLength).Before(since)
}

// dayOf is the end of a path, "2026/11/21".
func dayOf(path string) string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	return strings.Join(parts[max(0, len(parts)-3):], "/")
}

// codexFolders returns the latest folders some levels down. Their names are numbers of the same length.
func (r *codexFiles) codexFolders(list func(string) (*folder, error), path string, levels, most int, into []string) ([]string, error) {
	if levels == 0 {
		return append(into, path), nil
	}
	f, err := list(path)
	errs := []error{err}
	for _, name := range slices.Backward(f.names) {
		if len(into) >= most {
			break
		}
		if strings.Trim(name, "0123456789") != "" {
			continue
		}
		into, err = r.codexFolders(list, filepath.Join(path, name), levels-1, most, into)
		errs = append(errs, err)
	}
	return into, errors.Join(errs...)
}

// codexHeld returns the rollouts that a process has open. They are listed again when there is a new rollout, and from
// time to time, because a session may continue an old one.
func (r *codexFiles) codexHeld(p Process, latest []file) []string {
	if r.options.OpenFiles == nil {
		return nil
	}
	newest := ""
	for _, file := range latest {
		newest = max(newest, file.path) // names begin with the time
	}
	key := Process{Kind: Codex, PID: p.PID, Start: p.Start}
	held := r.held[key]
	if held == nil || len(held.paths) == 0 || held.newest != newest || time.Since(held.asked) > askAgain {
		held = &heldFiles{asked: time.Now(), newest: newest}
		sessions := filepath.Join(r.place, "sessions")
		for _, path := range r.options.OpenFiles(p.PID) {
			if path = filepath.Clean(path); isRollout(filepath.Base(path)) && (Within(path, sessions) || Within(path, r.realPath(sessions))) {
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

// codexHead is what a rollout's first line says of its session; zero: it is of no wanted directory.
func (r *codexFiles) codexHead(path string, w *wanted) about {
	if len(w.roots) == 0 && !slices.ContainsFunc(w.Processes, func(p Process) bool { return p.Kind == Codex }) {
		return about{} // it could not be assigned to a directory
	}
	if head := r.head(path, newCodex); head.dir != "" && w.has(head.dir) {
		return head
	}
	return about{}
}

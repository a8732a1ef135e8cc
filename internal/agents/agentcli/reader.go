package agentcli

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options say where the CLIs keep their files.
type Options struct {
	// Places are their folders, or a file in place of one. A CLI without a place is not read.
	Places Places

	// OpenFiles returns the paths of the files that a process has open. nil, or no paths: the system does not say.
	// Codex keeps its rollout open, and none of its files says which process writes it.
	OpenFiles func(pid int) []string
}

// source is what every CLI's files need: the Reader, and the CLI's place.
type source struct {
	*Reader
	place string
}

// files are the files of one CLI.
type files interface {
	// sessions returns the sessions of the wanted directories.
	sessions(w *wanted) ([]Session, error)
}

// Query says which sessions are wanted.
type Query struct {
	// Dirs are the directories in or below which the sessions work. None: every session with a known process, in any
	// directory.
	Dirs []string
	// Since excludes transcripts last written before it, unless they have a known living process. Zero: the newest
	// are read, however old.
	Since time.Time
	// Processes are the living processes of the CLIs. They are needed for CLIs whose files do not name the process.
	Processes []Process
}

// Reader reads the files of agent CLIs.
type Reader struct {
	options     Options
	looks       uint64
	transcripts map[string]*transcript
	folders     map[string]*folder
	heads       map[string]*head
	real        map[string]string // directories with links resolved
	files       []filesOf         // of the CLIs that have a place
	faults      map[Kind]error    // why the files of a CLI were not read completely at the last look
	watch       *watch            // nil: Watch was not called
}

// filesOf are the files of a CLI in one place.
type filesOf struct {
	kind  Kind
	place string
	files
}

// placesMost is in how many places files are read at most.
const placesMost = 32

// NewReader returns a reader. It opens nothing yet.
func NewReader(o Options) *Reader {
	r := &Reader{
		options: o, transcripts: map[string]*transcript{}, folders: map[string]*folder{}, real: map[string]string{}, heads: map[string]*head{},
		faults: map[Kind]error{},
	}
	for i := range table {
		if place := o.Places[table[i].Kind]; place != "" {
			r.Also(table[i].Kind, place)
		}
	}
	return r
}

// Also has a CLI's files read in another place, too, such as that of a second account. No place is read twice.
func (r *Reader) Also(kind Kind, place string) {
	read := Of(kind).files
	known := slices.ContainsFunc(r.files, func(f filesOf) bool { return f.kind == kind && r.realPath(f.place) == r.realPath(place) })
	if read != nil && !known && len(r.files) < placesMost {
		r.files = append(r.files, filesOf{kind, place, read(source{r, place})})
	}
}

// Close ends what [Reader.Watch] has started. Without Watch it need not be called.
func (r *Reader) Close() error {
	if r.watch == nil {
		return nil
	}
	err := r.watch.close()
	r.watch = nil
	return err
}

// resolveEvery is after how many looks links in directories' paths are resolved again.
const resolveEvery = 64

// Fault says what of a CLI's files could not be read at the last look; nil: nothing. The reason is an error, or that there
// is too much of it. What it would have shown is not known.
func (r *Reader) Fault(kind Kind) error { return r.faults[kind] }

// Sessions reads the files and returns the wanted sessions, the latest first. The error says what could not be read,
// such as a directory without access, or one with too many files; the sessions that could be read are returned all the
// same. Missing and invalid files are not errors. [Reader.Fault] has the error of one CLI.
func (r *Reader) Sessions(q Query) ([]Session, error) {
	r.looks++
	if r.looks%resolveEvery == 0 {
		clear(r.real)
	}
	want := wanted{Query: q, roots: r.roots(q.Dirs), named: map[Process]bool{}}
	clear(r.faults)
	var all []Session
	var errs []error
	for _, f := range r.files {
		found, err := f.sessions(&want)
		all = append(all, found...)
		errs = append(errs, err)
		if err != nil {
			r.faults[f.kind] = errors.Join(r.faults[f.kind], err)
		}
	}
	assign(all, q.Processes)
	if len(q.Dirs) == 0 {
		all = slices.DeleteFunc(all, func(s Session) bool { return s.PID == 0 })
	}
	slices.SortStableFunc(all, func(a, b Session) int {
		return cmp.Or(b.Turn.LastAt.Compare(a.Turn.LastAt), strings.Compare(a.ID, b.ID))
	})
	r.forget()
	return all, errors.Join(errs...)
}

// forget drops what this look has not used.
func (r *Reader) forget() {
	maps.DeleteFunc(r.transcripts, func(_ string, t *transcript) bool { return t.looked != r.looks })
	maps.DeleteFunc(r.folders, func(_ string, f *folder) bool { return f.looked != r.looks })
	maps.DeleteFunc(r.heads, func(_ string, h *head) bool { return h.looked != r.looks })
	r.watch.keep(r.folders)
}

// transcript reads what is new in a transcript. nil: it does not exist, or is older than since.
func (r *Reader) transcript(path string, since time.Time, fresh func() parser) (*transcript, error) {
	t := r.transcripts[path]
	if t == nil {
		t = newTranscript(path, fresh)
	}
	err := t.look(since)
	if missing(err) {
		return nil, nil
	}
	if err != nil && t.tail.info == nil {
		return nil, err
	}
	t.looked = r.looks
	r.transcripts[path] = t
	return t, err
}

// wanted is a query during a look.
type wanted struct {
	Query
	roots []string         // its directories, each also with links resolved
	named map[Process]bool // those that a session names, by kind and PID
}

// has reports whether sessions in a directory are wanted.
func (w *wanted) has(dir string) bool {
	return len(w.roots) == 0 || slices.ContainsFunc(w.roots, func(root string) bool { return Within(dir, root) })
}

// mayLive reports whether a process may live: if no processes of its kind were given, any may.
func (w *wanted) mayLive(kind Kind, pid int) bool {
	none := true
	for _, p := range w.Processes {
		if p.Kind == kind {
			if p.PID == pid {
				return true
			}
			none = false
		}
	}
	return none
}

// mayBeOf reports whether a living process of a CLI, which no session names, may have written something at at. It is one
// in a directory, or in any if dir is "". One whose directory the system does not tell may be in each.
func (w *wanted) mayBeOf(kind Kind, dir string, at time.Time) bool {
	return slices.ContainsFunc(w.Processes, func(p Process) bool {
		return p.Kind == kind && (dir == "" || p.Dir == "" || p.Dir == dir) && !w.named[Process{Kind: kind, PID: p.PID}] && !p.Began.IsZero() && p.Began.Before(at)
	})
}

// roots returns the directories, and where that differs also their paths with links resolved, which is how a process
// knows its own directory.
func (r *Reader) roots(dirs []string) []string {
	var roots []string
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue
		}
		dir = filepath.Clean(dir)
		roots = append(roots, dir)
		if real := r.realPath(dir); real != dir {
			roots = append(roots, real)
		}
	}
	return roots
}

// realPath resolves links in a path. A path that does not exist is returned unchanged.
func (r *Reader) realPath(path string) string {
	real, known := r.real[path]
	if !known {
		real = path
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			real = resolved
		}
		r.real[path] = real
	}
	return real
}

// Within reports whether dir is root or below it. Both are clean; nothing is below "".
func Within(dir, root string) bool {
	rest, below := strings.CutPrefix(dir, root)
	return below && root != "" && (rest == "" || rest[0] == filepath.Separator || root[len(root)-1] == filepath.Separator)
}

// assign finds the process of sessions whose file names none: the only process of its kind in their directory, if it
// already lived when the transcript was last written. It gets the latest session.
func assign(all []Session, processes []Process) {
	owned := map[int]bool{}
	for _, s := range all {
		owned[s.PID] = true
	}
	for _, p := range processes {
		same := func(o Process) bool { return o.Kind == p.Kind && o.Dir == p.Dir && !owned[o.PID] }
		if owned[p.PID] || p.PID == 0 || p.Dir == "" || p.Began.IsZero() || slices.IndexFunc(processes, func(o Process) bool { return o != p && same(o) }) >= 0 {
			continue
		}
		latest := -1
		for i, s := range all {
			if s.Kind != p.Kind || s.PID != 0 || s.Subagent || s.Dir != p.Dir || s.Turn.LastAt.Before(p.Began) {
				continue
			}
			if latest < 0 || s.Turn.LastAt.After(all[latest].Turn.LastAt) {
				latest = i
			}
		}
		if latest >= 0 {
			all[latest].PID, all[latest].Start, all[latest].Assigned = p.PID, p.Start, true
		}
	}
}

package watch

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// survey compares what is there with what was. [New] makes its first scan; then the watcher's goroutine owns it. All
// its paths are absolute slash paths.
type survey struct {
	sel       *selection
	notify    *fsnotify.Watcher // nil: there are no events
	add       func(dir string) error
	mostFiles int
	seen      *state // by the last scan
	told      *state // what the changes reported so far lead to
}

// state is the result of a scan.
type state struct {
	rules   *rules
	dirs    map[string]*folder
	files   int
	entries int      // of all dirs
	silent  bool     // changes in one of dirs are not reported
	linked  bool     // nor are those of files behind links in one of dirs
	missing []string // starts that are not there; parents are not watched
	tooMuch bool     // the scan ended early
}

// folder is a watched directory. Those that did not change have the same one in the next state.
type folder struct {
	files   map[string]fingerprint // by name
	subs    []string               // paths of the watched directories in it
	entries int                    // also those that are not watched
	linked  bool                   // links to files are in it, which change elsewhere
	heard   bool                   // the kernel reports changes in it
	stale   bool                   // and has reported one
}

// print is what is known of a file.
func (st *state) print(dir, name string) (print fingerprint, ok bool) {
	if f := st.dirs[dir]; f != nil {
		print, ok = f.files[name]
	}
	return print, ok
}

// blank is the state before a scan. Ignore rules that cannot have changed are kept.
func (s *survey) blank() *state {
	r := s.seen.rules
	if r == nil || s.seen.silent || r.stale() {
		r = newRules(s.sel.starts)
		s.sel.apply(r)
	}
	return &state{rules: r, dirs: map[string]*folder{}}
}

// scan looks at every directory that may have changed, and at the content of new and changed files in it if read is set.
// It watches the directories it finds, and no others.
func (s *survey) scan(read bool) *state {
	now := s.blank()
	for _, start := range s.sel.starts {
		s.walk(now, start, read)
		if now.dirs[start] == nil {
			now.missing = append(now.missing, start)
		}
	}
	s.unhear(func(dir string) bool { return now.dirs[dir] == nil })
	return now
}

func (s *survey) walk(now *state, dir string, read bool) {
	if now.dirs[dir] != nil || now.tooMuch {
		return
	}
	f := s.seen.dirs[dir]
	if f == nil || !f.heard || f.stale || f.linked || now.rules != s.seen.rules {
		if f = s.examine(now, dir, f, read); f == nil {
			return
		}
	}
	now.dirs[dir] = f
	now.files += len(f.files)
	now.entries += f.entries
	now.silent = now.silent || !f.heard
	now.linked = now.linked || f.linked
	now.tooMuch = now.files > s.mostFiles || len(now.dirs) > maxDirs
	for _, sub := range f.subs {
		s.walk(now, sub, read)
	}
}

// examine reads a directory, known from the last scan or nil, and returns nil if that fails.
func (s *survey) examine(now *state, dir string, known *folder, read bool) *folder {
	if known == nil {
		known = &folder{}
	}
	// The watch comes first, so that nothing happens unseen between the two.
	f := &folder{files: map[string]fingerprint{}, heard: known.heard || s.listen(dir, now.entries)}
	entries, err := s.list(dir)
	if err != nil {
		return nil
	}
	f.entries = len(entries) + 1
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if s.isDir(p, e) {
			if s.sel.hasDir(now.rules, p) {
				f.subs = append(f.subs, p)
			}
			continue
		}
		if !s.sel.hasFile(now.rules, p) {
			continue
		}
		print, there := glance(filepath.FromSlash(p))
		f.linked = f.linked || e.Type()&fs.ModeSymlink != 0 && (there || !isDirectory(filepath.FromSlash(p)))
		if before, was := known.files[e.Name()]; was && before.stamp == print.stamp && !before.fresh {
			print = before
		} else if there && read {
			print, there = look(filepath.FromSlash(p), time.Now())
		}
		if there {
			f.files[e.Name()] = print
		}
	}
	return f
}

// list reads a directory. A Python virtual environment counts as empty, whatever its name, unless a glob names it.
func (s *survey) list(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(filepath.FromSlash(dir))
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "pyvenv.cfg" }) && !s.sel.spelledOut(dir) {
		return nil, err
	}
	return entries, err
}

// isDir follows a link only where a glob spells the link's name out: elsewhere links could lead in circles.
func (s *survey) isDir(p string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 || !s.sel.spelledOut(p) {
		return e.IsDir()
	}
	return isDirectory(filepath.FromSlash(p))
}

// listen asks for the events of a directory, and reports whether all of them will come.
func (s *survey) listen(dir string, entries int) bool {
	return s.notify != nil && (mostEntries == 0 || entries < mostEntries) && !eventless(filepath.FromSlash(dir)) && s.add(filepath.FromSlash(dir)) == nil
}

// unhear ends watches.
func (s *survey) unhear(which func(dir string) bool) {
	for dir, f := range s.seen.dirs {
		if f.heard && which(dir) {
			_ = s.notify.Remove(filepath.FromSlash(dir)) // an error means that the watch went with the directory
			f.heard = false
		}
	}
}

// note takes in an event, and reports whether a scan may find a change. New directories are watched at once.
func (s *survey) note(e fsnotify.Event) bool {
	p := filepath.ToSlash(filepath.Clean(e.Name))
	parent := s.seen.dirs[path.Dir(p)]
	if e.Op == fsnotify.Chmod {
		return false
	}
	if f := s.seen.dirs[p]; f != nil {
		f.stale = true // some systems report new entries as a Write
		if e.Has(fsnotify.Create | fsnotify.Rename | fsnotify.Remove) {
			s.seen.rules.replaced = true
			s.rewatch(p)
		}
		return true
	}
	if parent == nil {
		return false
	}
	if path.Base(p) == ".gitignore" {
		s.seen.rules.replaced = true
		return true
	}
	matters := s.sel.hasFile(s.seen.rules, p)
	if e.Has(fsnotify.Create) {
		if st, err := os.Lstat(filepath.FromSlash(p)); err == nil && s.isDir(p, fs.FileInfoToDirEntry(st)) {
			if matters = s.sel.hasDir(s.seen.rules, p); matters {
				s.rewatch(p)
			}
		}
	}
	parent.stale = parent.stale || matters
	if print, is := parent.files[path.Base(p)]; is { // its size and time may be the old ones nevertheless
		print.fresh = true
		parent.files[path.Base(p)] = print
	}
	return matters
}

// rewatch renews the watches of a directory and of all below it: the kernel's belong to the directories that had the names.
func (s *survey) rewatch(dir string) {
	s.unhear(func(d string) bool { _, is := below(dir, d); return is || d == dir })
	found := s.blank()
	found.entries = s.seen.entries
	s.walk(found, dir, false)
	for d, f := range found.dirs {
		if s.seen.dirs[d] == nil {
			s.seen.dirs[d] = &folder{}
		}
		s.seen.dirs[d].heard, s.seen.dirs[d].stale = f.heard, true
	}
}

// lost is for events that did not come: any directory may be another one by now.
func (s *survey) lost() {
	s.seen.rules.replaced = true
	s.unhear(func(string) bool { return true })
}

// polled reports whether there is anything without events: directories, files behind links, and starts that are not there.
func (s *survey) polled() bool {
	return s.seen.silent || s.seen.linked || len(s.seen.missing) > 0
}

// poll scans, and reports whether there is a change that the last scan had not found: an unchanged state must not
// prolong the quiet time.
func (s *survey) poll() bool {
	if !s.seen.silent && !s.seen.linked && !slices.ContainsFunc(s.seen.missing, isDirectory) {
		return false
	}
	before := s.seen
	s.seen = s.scan(true)
	if len(s.changes(s.told, s.seen)) == 0 {
		s.told = s.seen
		return false
	}
	return len(s.changes(before, s.seen)) > 0
}

// settle scans and returns the files that changed, in the user's form, sorted.
func (s *survey) settle() []string {
	before := s.told
	s.seen = s.scan(true)
	s.told = s.seen
	return s.changes(before, s.seen)
}

// changes compares two states. What only other ignore rules show or hide did not change.
func (s *survey) changes(before, now *state) []string {
	var changed []string
	for dir, f := range now.dirs {
		if before.dirs[dir] == f {
			continue
		}
		for name, print := range f.files {
			known, was := before.print(dir, name)
			if p := path.Join(dir, name); was && known.differs(print) || !was && s.sel.hasFile(before.rules, p) {
				changed = append(changed, s.name(p))
			}
		}
	}
	for dir, f := range before.dirs {
		if now.dirs[dir] == f {
			continue
		}
		for name := range f.files {
			if _, is := now.print(dir, name); is {
				continue
			}
			p := path.Join(dir, name)
			if _, is := glance(filepath.FromSlash(p)); !is || s.shows(now.rules, dir) && s.sel.hasFile(now.rules, p) {
				changed = append(changed, s.name(p)) // gone, or back since the scan
			}
		}
	}
	slices.Sort(changed)
	return changed
}

// shows reports whether a scan with these rules looks into a directory that is there.
func (s *survey) shows(r *rules, dir string) bool {
	for !slices.Contains(s.sel.starts, dir) {
		if !s.sel.hasDir(r, dir) {
			return false
		}
		dir = path.Dir(dir)
	}
	return true
}

// name is a path in the user's form.
func (s *survey) name(p string) string {
	if rel, ok := below(s.sel.root, p); ok {
		p = rel
	}
	return filepath.FromSlash(p)
}

// readContents completes the first scan, which [New] keeps its caller waiting for. A file that has changed since keeps
// its print, so that the change is found.
func (s *survey) readContents(ctx context.Context) {
	for dir, f := range s.told.dirs {
		for name, known := range f.files {
			if ctx.Err() != nil {
				return
			}
			if now, ok := look(filepath.Join(filepath.FromSlash(dir), name), time.Now()); ok && now.stamp == known.stamp {
				f.files[name] = now
			}
		}
	}
}

func (s *survey) close() {
	if s.notify != nil {
		_ = s.notify.Close() // the descriptor is gone either way
	}
}

const (
	// hashLimit is the size in bytes up to which content decides whether a file changed; above, size and time do.
	hashLimit = 1 << 20
	// tick is the coarsest resolution of file times, FAT's. A file read within a tick of its last change may change
	// again without a new time.
	tick = 2 * time.Second
)

// seed makes sums of this process comparable with each other.
var seed = maphash.MakeSeed()

// stamp distinguishes states of a file without reading it.
type stamp struct {
	size int64
	time int64
}

func stampOf(st fs.FileInfo) stamp {
	return stamp{st.Size(), st.ModTime().UnixNano()}
}

// fingerprint is the known state of a file.
type fingerprint struct {
	stamp
	sum    uint64
	hashed bool
	fresh  bool // size and time being equal proves nothing yet
}

// glance looks at a file without reading it. ok is false if there is no regular file, directly or behind a link.
func glance(name string) (f fingerprint, ok bool) {
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() {
		return fingerprint{}, false
	}
	return fingerprint{stamp: stampOf(st)}, true
}

// look reads a file of up to hashLimit. A file that cannot be read is known by size and time only.
func look(name string, now time.Time) (f fingerprint, ok bool) {
	f, ok = glance(name)
	if !ok || f.size > hashLimit {
		return f, ok
	}
	text, err := atomicfile.Read(name, hashLimit)
	if err != nil {
		return f, !errors.Is(err, fs.ErrNotExist)
	}
	f.size, f.sum, f.hashed = int64(len(text)), maphash.Bytes(seed, text), true
	f.fresh = now.Sub(time.Unix(0, f.time)).Abs() < tick
	return f, true
}

// differs reports whether the file changed from f to g.
func (f fingerprint) differs(g fingerprint) bool {
	if f.hashed && g.hashed {
		return f.size != g.size || f.sum != g.sum
	}
	return f.stamp != g.stamp
}

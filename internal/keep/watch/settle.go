package watch

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// note takes an event in: where to look later. New directories are watched at once.
func (s *survey) note(e fsnotify.Event) bool {
	p := filepath.ToSlash(filepath.Clean(e.Name))
	parent := s.folders[path.Dir(p)]
	if s.folders[p] != nil {
		return s.noteFolder(p, e)
	}
	if parent == nil {
		return false
	}
	if path.Base(p) == ".gitignore" {
		s.newRules = true
		return true
	}
	if e.Has(fsnotify.Create) {
		if st, err := os.Lstat(filepath.FromSlash(p)); err == nil && s.isDir(p, fs.FileInfoToDirEntry(st)) {
			return s.noteNewFolder(p)
		}
	}
	if !s.sel.hasFile(s.rules, p) {
		return false
	}
	s.markDirty(p, reported)
	return true
}

// noteFolder is about a directory that is known. It may be another one of the same name by now.
func (s *survey) noteFolder(p string, e fsnotify.Event) bool {
	switch {
	case e.Has(fsnotify.Create), e.Has(fsnotify.Rename), e.Has(fsnotify.Remove):
		s.rewatch(p)
		s.markDirty(p, replaced)
		return true
	case e.Has(fsnotify.Write): // some systems report new entries so
		s.markDirty(p, suspect)
		return true
	}
	return false
}

// noteNewFolder watches a directory that has appeared, if files in it can matter.
func (s *survey) noteNewFolder(p string) bool {
	if !s.sel.hasDir(s.rules, p) {
		return false
	}
	s.sayTooMuch(s.cover(p, false))
	s.markDirty(p, replaced)
	return true
}

// rewatch renews the watches of a directory and of all below it: the kernel's belong to the directories that had the names.
func (s *survey) rewatch(dir string) {
	s.walk(dir, s.unlisten)
	s.walk(dir, s.listen)
}

func (s *survey) markDirty(p string, m mark) {
	if old, ok := s.dirty[p]; !ok || old < m {
		s.dirty[p] = m
	}
}

// failed takes in an error of the source of events. After a lost event a change can be anywhere.
func (s *survey) failed(err error) bool {
	s.log.Debug("file events were lost: looking at everything", "error", err)
	s.everything = true
	return true
}

// polled reports whether there is anything without events: polled directories, and starts that are not there.
func (s *survey) polled() bool {
	return s.polledDirs > 0 || slices.ContainsFunc(s.sel.starts, func(start string) bool { return s.folders[start] == nil })
}

// poll compares what has no events, by size and time. It reports whether anything differs from the last round.
func (s *survey) poll() bool {
	before := s.newRules
	news := false
	for _, start := range s.sel.starts {
		if st, err := os.Stat(filepath.FromSlash(start)); s.folders[start] == nil && err == nil && st.IsDir() {
			news = s.peek(start, replaced, stamp{}) || news
		}
	}
	for dir, f := range s.folders {
		if f.eventSource == polled {
			news = s.pollFolder(dir, f) || news
		}
	}
	return news || s.newRules && !before
}

// peek marks a path that polling found dirty, and reports whether that is new: an unchanged state must not prolong
// the quiet time.
func (s *survey) peek(p string, m mark, now stamp) bool {
	before, ok := s.peeked[p]
	s.peeked[p] = now
	s.markDirty(p, m)
	return !ok || before != now
}

func (s *survey) pollFolder(dir string, f *folder) (news bool) {
	entries, err := s.list(dir)
	if err != nil {
		return s.peek(dir, suspect, stamp{})
	}
	seen := 0
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if e.Name() == ".gitignore" {
			if _, read := s.rules.stamps[p]; !read {
				s.newRules = true
			}
		}
		if s.isDir(p, e) {
			if s.folders[p] == nil && s.sel.hasDir(s.rules, p) {
				news = s.peek(p, replaced, stamp{}) || news
			}
			continue
		}
		known, ok := f.files[e.Name()]
		if !ok && !s.sel.hasFile(s.rules, p) {
			continue
		}
		there, fresh := s.pollFile(p, known, ok)
		if ok && there {
			seen++
		}
		news = fresh || news
	}
	if seen < len(f.files) {
		news = s.peek(dir, suspect, stamp{size: int64(seen)}) || news
	}
	return news
}

// pollFile notes a file that is not as it is known, and reports whether that is news.
func (s *survey) pollFile(p string, known fingerprint, was bool) (there, news bool) {
	now, there := glance(filepath.FromSlash(p))
	if was == there && now.stamp == known.stamp && !known.fresh {
		return there, false
	}
	return there, s.peek(p, suspect, now.stamp)
}

// settle examines every dirty place and returns the files that changed, as slash paths. Only the present state counts,
// not the order of events.
func (s *survey) settle() []string {
	changed := map[string]bool{}
	dirty := s.dirty
	s.dirty, s.peeked = map[string]mark{}, map[string]stamp{}
	if s.newRules || s.rules.stale() {
		old := s.rules
		s.freshRules()
		s.look(old, changed)
	} else if s.everything {
		s.look(nil, changed)
	}
	s.everything = false
	for _, p := range slices.Sorted(maps.Keys(dirty)) {
		s.settlePath(p, dirty[p], changed)
	}
	return slices.Sorted(maps.Keys(changed))
}

// look compares everything. Files that only other ignore rules (old, or nil) hid until now did not change.
func (s *survey) look(old *rules, changed map[string]bool) {
	for _, start := range s.sel.starts {
		s.compare(start, replaced, old, changed)
	}
	for dir := range s.folders {
		if !s.reachable(dir) {
			s.forget(dir)
		}
	}
}

// reachable reports whether the rules as they are now lead to dir.
func (s *survey) reachable(dir string) bool {
	for at := dir; ; at = path.Dir(at) {
		if slices.Contains(s.sel.starts, at) {
			return true
		}
		if s.folders[at] == nil || !s.sel.hasDir(s.rules, at) {
			return false
		}
	}
}

func (s *survey) settlePath(p string, m mark, changed map[string]bool) {
	st, err := os.Lstat(filepath.FromSlash(p))
	isDir := err == nil && s.isDir(p, fs.FileInfoToDirEntry(st))
	switch {
	case s.folders[p] != nil && !isDir:
		for _, file := range s.forget(p) {
			changed[file] = true
		}
	case isDir:
		if slices.Contains(s.sel.starts, p) || s.folders[path.Dir(p)] != nil && s.sel.hasDir(s.rules, p) {
			s.compare(p, m, nil, changed)
		}
		return
	}
	if f := s.folders[path.Dir(p)]; f != nil && s.sel.hasFile(s.rules, p) {
		s.compareFile(f, p, m, nil, changed)
	}
}

// compare examines a directory: with replaced also everything below it, and new directories in any case.
func (s *survey) compare(dir string, m mark, old *rules, changed map[string]bool) {
	if s.folders[dir] == nil {
		if s.sayTooMuch(s.cover(dir, false)) {
			return
		}
		m = replaced
	}
	f := s.folders[dir]
	entries, err := s.list(dir)
	if f == nil || err != nil {
		for _, file := range s.forget(dir) {
			changed[file] = true
		}
		return
	}
	if m == replaced && f.eventSource == watched {
		s.hear(f, unwatched) // asking again does no harm, and the watch may have gone with a directory of this name
	}
	s.listen(dir, f)
	s.spend(dir, f, len(entries))
	there := map[string]bool{} // true: a directory
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		isDir := s.isDir(p, e)
		there[e.Name()] = isDir
		switch {
		case !isDir && s.sel.hasFile(s.rules, p):
			s.compareFile(f, p, suspect, old, changed)
		case !isDir:
			s.unknow(f, e.Name()) // hidden by a new rule, not changed
		case s.sel.hasDir(s.rules, p) && (m == replaced || s.folders[p] == nil):
			s.compare(p, replaced, old, changed)
		}
	}
	s.miss(dir, f, there, changed)
}

// miss records what f knows and does not exist any more; there has the existing entries.
func (s *survey) miss(dir string, f *folder, there, changed map[string]bool) {
	for name := range f.files {
		if isDir, exists := there[name]; isDir || !exists {
			s.unknow(f, name)
			changed[path.Join(dir, name)] = true
		}
	}
	for sub := range f.subs {
		if !there[sub] {
			for _, file := range s.forget(path.Join(dir, sub)) {
				changed[file] = true
			}
		}
	}
}

func (s *survey) compareFile(f *folder, p string, m mark, old *rules, changed map[string]bool) {
	name := path.Base(p)
	known, was := f.files[name]
	if m == suspect && was && !known.fresh {
		if now, there := glance(filepath.FromSlash(p)); there && now.stamp == known.stamp {
			return
		}
	}
	now, there := look(filepath.FromSlash(p), time.Now())
	switch {
	case !was && !there:
		return
	case !there:
		s.unknow(f, name)
		changed[p] = true
	case !was:
		if s.files >= maxFiles {
			s.sayTooMuch(ErrTooMuch)
			return
		}
		s.know(f, name, now)
		if old == nil || !old.ignores(p, false) {
			changed[p] = true
		}
	default:
		s.know(f, name, now)
		if known.differs(now) {
			changed[p] = true
		}
	}
}

// sayTooMuch reports whether err is set, and logs it the first time.
func (s *survey) sayTooMuch(err error) bool {
	if err != nil && !s.saidTooMuch {
		s.saidTooMuch = true
		s.log.Warn("not everything is watched", "error", err)
	}
	return err != nil
}

// told returns the paths in the user's form.
func (s *survey) told(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		if rel, ok := below(s.sel.root, p); ok {
			p = rel
		}
		out[i] = filepath.FromSlash(p)
	}
	return out
}

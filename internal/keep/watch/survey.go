package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// survey is the known state of the watched directories. [New] fills it; then the watcher's goroutine owns it. All its
// paths are absolute slash paths.
type survey struct {
	sel    *selection
	rules  *rules
	log    *slog.Logger
	notify *fsnotify.Watcher // nil: there are no events
	add    func(dir string) error

	folders    map[string]*folder
	files      int
	polledDirs int      // folders that are polled
	unread     []string // files whose content was not read yet
	spent      int      // of watchBudget

	dirty       map[string]mark  // where something may have changed
	peeked      map[string]stamp // dirty paths as polling last saw them
	everything  bool             // it may be anywhere: events were lost
	newRules    bool             // an ignore file was written
	saidPolling bool
	saidTooMuch bool
}

// folder is one watched directory.
type folder struct {
	files       map[string]fingerprint // by name
	subs        map[string]bool        // names of the watched directories in it
	eventSource eventSource
	cost        int // of watchBudget
}

// eventSource is how changes in a folder are noticed.
type eventSource uint8

const (
	unwatched eventSource = iota // not at all: it has only just been found, or is gone
	watched                      // the kernel reports them
	polled                       // by looking every so often
)

// mark says how a dirty path is examined.
type mark uint8

const (
	suspect  mark = iota // size and time decide if the content has to be read
	reported             // an event named it: its content is read
	replaced             // a directory that may be another one now: everything in it is looked at
)

func newSurvey(sel *selection, log *slog.Logger) *survey {
	s := &survey{sel: sel, log: log, folders: map[string]*folder{}, dirty: map[string]mark{}, peeked: map[string]stamp{}}
	s.freshRules()
	return s
}

func (s *survey) freshRules() {
	s.rules = newRules(s.sel.starts)
	s.sel.apply(s.rules)
	s.newRules = false
}

func checkRoot(root string) error {
	st, err := os.Stat(root)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s is not a directory", root)
	}
	return nil
}

// begin records everything without reporting. A start that does not exist yet is polled for.
func (s *survey) begin() error {
	for _, start := range s.sel.starts {
		if err := s.cover(start, true); err != nil {
			return err
		}
	}
	return nil
}

// cover watches dir and everything below it. With record, existing files count as known; otherwise they are new, and
// found by the next look.
func (s *survey) cover(dir string, record bool) error {
	if len(s.folders) >= maxDirs {
		return fmt.Errorf("%s: more than %d directories: %w", dir, maxDirs, ErrTooMuch)
	}
	f := s.folder(dir)
	// The watch comes first, so that nothing happens unseen between the two.
	s.listen(dir, f)
	entries, err := s.list(dir)
	if err != nil {
		s.forget(dir)
		return nil
	}
	s.spend(dir, f, len(entries))
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if s.isDir(p, e) {
			if s.folders[p] == nil && s.sel.hasDir(s.rules, p) {
				if err := s.cover(p, record); err != nil {
					return err
				}
			}
			continue
		}
		if record && s.sel.hasFile(s.rules, p) {
			if err := s.record(f, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// folder is the state of dir, created if needed.
func (s *survey) folder(dir string) *folder {
	f := s.folders[dir]
	if f == nil {
		f = &folder{files: map[string]fingerprint{}, subs: map[string]bool{}}
		s.folders[dir] = f
		if parent := s.folders[path.Dir(dir)]; parent != nil && parent != f {
			parent.subs[path.Base(dir)] = true
		}
	}
	return f
}

// record takes a file in f for known as it is. Its content is read when there is time.
func (s *survey) record(f *folder, p string) error {
	print, ok := glance(filepath.FromSlash(p))
	if !ok {
		return nil
	}
	if s.files >= maxFiles {
		return fmt.Errorf("%s: more than %d files: %w", path.Dir(p), maxFiles, ErrTooMuch)
	}
	s.know(f, path.Base(p), print)
	if print.size <= hashLimit {
		s.unread = append(s.unread, p)
	}
	return nil
}

// list reads a directory. A Python virtual environment counts as empty, whatever its name, unless a glob names it.
func (s *survey) list(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() == "pyvenv.cfg" && !s.sel.spelledOut(dir) {
			return nil, nil
		}
	}
	return entries, nil
}

// isDir follows a link only where a glob spells the link's name out: elsewhere links could lead in circles.
func (s *survey) isDir(p string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 || !s.sel.spelledOut(p) {
		return e.IsDir()
	}
	st, err := os.Stat(filepath.FromSlash(p))
	return err == nil && st.IsDir()
}

// listen asks for the events of a directory, or finds that it has to be polled.
func (s *survey) listen(dir string, f *folder) {
	if f.eventSource != unwatched {
		return
	}
	name := filepath.FromSlash(dir)
	if s.notify == nil {
		s.hear(f, polled)
		return
	}
	if system := eventless(name); system != "" {
		s.hear(f, polled)
		s.sayPolling(name, "file system "+system+" does not report changes made elsewhere")
		return
	}
	err := s.add(name)
	switch {
	case err == nil:
		s.hear(f, watched)
	case errors.Is(err, fs.ErrNotExist):
	default:
		s.hear(f, polled)
		s.sayPolling(name, err.Error())
	}
}

// unlisten ends what listen began.
func (s *survey) unlisten(dir string, f *folder) {
	if f.eventSource == watched {
		// An error means that the watch went with the directory.
		_ = s.notify.Remove(filepath.FromSlash(dir))
	}
	s.hear(f, unwatched)
	s.spent -= f.cost
	f.cost = 0
}

func (s *survey) hear(f *folder, h eventSource) {
	if f.eventSource == polled {
		s.polledDirs--
	}
	if h == polled {
		s.polledDirs++
	}
	f.eventSource = h
}

// spend keeps to the budget of systems where each file in a watched directory costs a descriptor.
func (s *survey) spend(dir string, f *folder, entries int) {
	if watchBudget == 0 || f.eventSource != watched {
		return
	}
	s.spent += entries + 1 - f.cost
	f.cost = entries + 1
	if s.spent > watchBudget {
		s.unlisten(dir, f)
		s.hear(f, polled)
		s.sayPolling(filepath.FromSlash(dir), fmt.Sprintf("more than %d files and directories, each of which costs a descriptor", watchBudget))
	}
}

// sayPolling logs once that, and for the first directory why, there are no events.
func (s *survey) sayPolling(dir, why string) {
	if !s.saidPolling {
		s.saidPolling = true
		s.log.Warn("no file events: polling instead, which notices changes later", "directory", dir, "why", why)
	}
}

func (s *survey) know(f *folder, name string, print fingerprint) {
	if _, known := f.files[name]; !known {
		s.files++
	}
	f.files[name] = print
}

func (s *survey) unknow(f *folder, name string) {
	if _, known := f.files[name]; known {
		s.files--
		delete(f.files, name)
	}
}

// forget drops a directory and all below it, and returns the files that were known there.
func (s *survey) forget(dir string) []string {
	var files []string
	s.walk(dir, func(at string, f *folder) {
		for name := range f.files {
			files = append(files, path.Join(at, name))
		}
		s.files -= len(f.files)
		s.unlisten(at, f)
		delete(s.folders, at)
	})
	if parent := s.folders[path.Dir(dir)]; parent != nil {
		delete(parent.subs, path.Base(dir))
	}
	return files
}

// walk visits the known folders from dir downwards, each after those in it.
func (s *survey) walk(dir string, visit func(string, *folder)) {
	f := s.folders[dir]
	if f == nil {
		return
	}
	for sub := range f.subs {
		s.walk(path.Join(dir, sub), visit)
	}
	visit(dir, f)
}

// spare reads one file whose content is not known yet. If it has changed since it was first seen, its print is kept, so
// that the change is found.
func (s *survey) spare() bool {
	if len(s.unread) == 0 {
		if s.unread != nil {
			s.log.Debug("content of watched files is known")
		}
		s.unread = nil
		return false
	}
	last := len(s.unread) - 1
	p := s.unread[last]
	s.unread = s.unread[:last]
	f := s.folders[path.Dir(p)]
	if f == nil {
		return true
	}
	known, ok := f.files[path.Base(p)]
	if !ok || known.hashed {
		return true
	}
	if now, ok := look(filepath.FromSlash(p), time.Now()); ok && now.stamp == known.stamp {
		f.files[path.Base(p)] = now
	}
	return true
}

func (s *survey) close() {
	if s.notify != nil {
		// The descriptor is gone either way.
		_ = s.notify.Close()
	}
}

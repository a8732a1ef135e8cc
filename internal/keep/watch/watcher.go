package watch

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options say what is watched and how. They need at least one including glob, or Auto.
type Options struct {
	// Root is the directory that globs are relative to. "": the working directory.
	Root string
	// Globs choose the files, in the syntax of doublestar: "**/*.py", "src/**/*.{ts,js}", "/opt/tool/bin/tool". One that
	// begins with "!" excludes, anywhere in the list. A directory means everything in it.
	Globs []string
	// Auto is a command line whose script's code, see [Auto], is watched besides Globs. nil: none.
	Auto []string
	// Debounce is the quiet time before a change is reported. 0: 200 ms. After the first event it is reported within 2 s
	// (or Debounce, if longer), within 10 s while git holds its index.lock.
	Debounce time.Duration
	// Poll is how often directories are looked at that give no events, less often where looking takes long. 0: 2 s.
	Poll time.Duration
	// AlwaysPoll does without events. For file systems that lose them and are not known to.
	AlwaysPoll bool
	// Log gets what is watched and why something is polled. nil: nothing is logged.
	Log *slog.Logger
}

const (
	defaultDebounce = 200 * time.Millisecond
	defaultPoll     = 2 * time.Second
	tellWithin      = 2 * time.Second
	holdAtMost      = 10 * time.Second

	maxFiles = 100_000 // watched files; more is a glob that was not meant so
	maxDirs  = 50_000
)

// ErrTooMuch is in the error of [New] when the globs choose more than 100,000 files or 50,000 directories.
var ErrTooMuch = errors.New("too much to watch: name the directories with the code, or exclude some with '!dir'")

// Watcher watches files. [New] makes one.
type Watcher struct {
	stopOnce sync.Once
	stop     chan struct{}
	done     chan struct{}
}

// New begins to watch and calls onChange, on a goroutine of its own and never concurrently, with what changed: paths
// relative to Root where they are below it, otherwise absolute, sorted, each once. Changes after New has returned are
// noticed. Files that appear or disappear count as changed; directories as such do not.
//
// Errors: invalid globs, a Root that is not a directory, [ErrTooMuch], and those of [Auto].
func New(opts Options, onChange func(paths []string)) (*Watcher, error) {
	return newWatcher(opts, onChange, (*fsnotify.Watcher).Add, func() bool { return false })
}

// newWatcher lets a test refuse watches, and delay reports while it writes.
func newWatcher(opts Options, onChange func([]string), add func(*fsnotify.Watcher, string) error, held func() bool) (*Watcher, error) {
	opts, err := withDefaults(opts)
	if err != nil {
		return nil, err
	}
	sel, err := newSelection(filepath.ToSlash(opts.Root), opts.Globs)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	s := newSurvey(sel, opts.Log)
	if opts.AlwaysPoll {
		s.saidPolling = true
	} else if s.notify, err = fsnotify.NewWatcher(); err != nil {
		s.sayPolling(opts.Root, err.Error())
	}
	s.add = func(dir string) error { return add(s.notify, dir) }
	if err := s.begin(); err != nil {
		s.close()
		return nil, fmt.Errorf("watch %s: %w", opts.Root, err)
	}
	opts.Log.Info("watching files", "files", s.files, "directories", len(s.folders), "globs", opts.Globs)
	if s.files == 0 {
		opts.Log.Warn("no file to watch yet: does the glob say what was meant?", "root", opts.Root, "globs", opts.Globs)
	}
	w := &Watcher{stop: make(chan struct{}), done: make(chan struct{})}
	go w.run(opts, s, onChange, held)
	return w, nil
}

func withDefaults(opts Options) (Options, error) {
	root, err := filepath.Abs(opts.Root)
	if err != nil {
		return opts, fmt.Errorf("watch %s: %w", opts.Root, err)
	}
	opts.Root = root
	if err := checkRoot(root); err != nil {
		return opts, fmt.Errorf("watch: %w", err)
	}
	if opts.Debounce < 0 || opts.Poll < 0 {
		return opts, errors.New("watch: times must not be negative")
	}
	if opts.Debounce == 0 {
		opts.Debounce = defaultDebounce
	}
	if opts.Poll == 0 {
		opts.Poll = defaultPoll
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if len(opts.Auto) > 0 {
		found, err := Auto(root, opts.Auto)
		if err != nil {
			return opts, err
		}
		opts.Globs = append(found, opts.Globs...)
	}
	return opts, nil
}

// run is the watcher's goroutine.
func (w *Watcher) run(opts Options, s *survey, onChange func([]string), held func() bool) {
	defer close(w.done)
	defer s.close()
	l := loop{
		debounce: debounce{quiet: opts.Debounce, limit: max(tellWithin, opts.Debounce), hold: max(holdAtMost, opts.Debounce)},
		interval: opts.Poll,
		stop:     w.stop,
		do: callbacks{
			note: s.note, failed: s.failed, poll: s.poll, polled: s.polled, spare: s.spare,
			held: func(now time.Time) bool { return held() || s.rules.locked(now) },
			settle: func() {
				changed := s.settle()
				if len(changed) == 0 || w.stopped() {
					return
				}
				onChange(s.told(changed))
			},
		},
	}
	if s.notify != nil {
		l.events, l.errors = s.notify.Events, s.notify.Errors
	}
	l.run()
}

func (w *Watcher) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// Close ends the watching and waits for a running call of onChange; none follows. It must not be called from onChange
// itself. A second call has no effect.
func (w *Watcher) Close() {
	w.stopOnce.Do(func() { close(w.stop) })
	<-w.done
}

package watch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
)

// Options say what is watched. They need at least one including glob, or Auto.
type Options struct {
	// Root is the directory that globs are relative to. "": the working directory.
	Root string
	// Globs choose the files, in the syntax of doublestar: "**/*.py", "src/**/*.{ts,js}", "/opt/tool/bin/tool". One that
	// begins with "!" excludes, anywhere in the list. A directory means everything in it.
	Globs []string
	// Auto is a command line whose script's code, see [Auto], is watched besides Globs. nil: none.
	Auto []string
}

const (
	maxFiles = 100_000 // watched files; more is a glob that was not meant so
	maxDirs  = 50_000
)

// Watcher watches files. [New] makes one.
type Watcher struct {
	ctx  context.Context // until Close
	stop context.CancelFunc
	done chan struct{}
}

// setup is how a watcher works. Tests have their own.
type setup struct {
	quiet     time.Duration // before a change is reported, at most 2 s in all, or 10 s while git holds its index.lock
	interval  time.Duration // between scans where there are no events, longer if a scan takes long
	mostFiles int
	add       func(*fsnotify.Watcher, string) error // nil: there are no events
	held      func() bool                           // reports whether reports have to wait
	ready     func()                                // called when the files' content is known
}

func usual() setup {
	return setup{
		quiet: 200 * time.Millisecond, interval: 2 * time.Second, mostFiles: maxFiles, add: (*fsnotify.Watcher).Add,
		held: func() bool { return false }, ready: func() {},
	}
}

// New begins to watch and calls onChange, on a goroutine of its own and never concurrently, with what changed: paths
// relative to Root where they are below it, otherwise absolute, sorted, each once. Changes after New has returned are
// noticed. Files that appear or disappear count as changed; directories as such do not.
//
// Errors: invalid globs, a Root that is not a directory, more than 100,000 files or 50,000 directories, and those of [Auto].
func New(opts Options, onChange func(paths []string)) (*Watcher, error) {
	return newWatcher(opts, usual(), onChange)
}

func newWatcher(opts Options, how setup, onChange func([]string)) (*Watcher, error) {
	sel, err := opts.selection()
	if err != nil {
		return nil, err
	}
	s := &survey{sel: sel, seen: &state{}, mostFiles: how.mostFiles}
	if how.add != nil {
		s.notify, _ = fsnotify.NewWatcher() // an error means that everything is polled
	}
	s.add = func(dir string) error { return how.add(s.notify, dir) }
	s.told = s.scan(false)
	s.seen = s.told
	if s.told.tooMuch {
		s.close()
		return nil, fmt.Errorf("watch %s: more than %d files or %d directories: too much to watch: "+
			"name the directories with the code, or exclude some with '!dir'", sel.root, maxFiles, maxDirs)
	}
	w := &Watcher{done: make(chan struct{})}
	w.ctx, w.stop = context.WithCancel(context.Background())
	go w.run(s, how, onChange)
	return w, nil
}

func (o Options) selection() (*selection, error) {
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", o.Root, err)
	}
	switch st, err := os.Stat(root); {
	case err != nil:
		return nil, fmt.Errorf("watch: %w", err)
	case !st.IsDir():
		return nil, fmt.Errorf("watch: %s is not a directory", root)
	}
	globs := o.Globs
	if len(o.Auto) > 0 {
		found, err := Auto(root, o.Auto)
		if err != nil {
			return nil, err
		}
		globs = append(found, globs...)
	}
	sel, err := newSelection(filepath.ToSlash(root), globs)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	return sel, nil
}

// run is the watcher's goroutine.
func (w *Watcher) run(s *survey, how setup, onChange func([]string)) {
	defer close(w.done)
	defer s.close()
	s.readContents(w.ctx)
	how.ready()
	l := loop{
		debounce: debounce{quiet: how.quiet, limit: max(2*time.Second, how.quiet), hold: max(10*time.Second, how.quiet)},
		interval: how.interval,
		stop:     w.ctx.Done(),
		do: callbacks{
			note: s.note, lost: s.lost, poll: s.poll, polled: s.polled,
			held: func(now time.Time) bool { return how.held() || s.told.rules.locked(now) },
			settle: func() {
				if changed := s.settle(); len(changed) > 0 && w.ctx.Err() == nil {
					onChange(changed)
				}
			},
		},
	}
	if s.notify != nil {
		l.events, l.errors = s.notify.Events, s.notify.Errors
	}
	l.run()
}

// Close ends the watching and waits for a running call of onChange; none follows. It must not be called from onChange
// itself. A second call has no effect.
func (w *Watcher) Close() {
	w.stop()
	<-w.done
}

// loop waits for events and times. Its actions are passed in, so that it also runs on a fake clock.
type loop struct {
	debounce debounce
	interval time.Duration         // between rounds of polling
	events   <-chan fsnotify.Event // nil: none come
	errors   <-chan error
	stop     <-chan struct{}
	do       callbacks
}

// callbacks are the loop's actions. All run on its goroutine.
type callbacks struct {
	note   func(fsnotify.Event) bool // reports whether the event can matter
	lost   func()                    // some events did not come
	poll   func() bool               // looks where no events come; reports whether something is to be compared
	polled func() bool               // reports whether there is anything to poll
	held   func(now time.Time) bool  // reports whether comparing has to wait
	settle func()                    // compares, and reports
}

// run ends when stop is closed.
func (l *loop) run() {
	var poll <-chan time.Time
	rest := l.interval
	for {
		if !l.do.polled() {
			poll = nil
		} else if poll == nil {
			poll = time.After(rest)
		}
		var quiet <-chan time.Time
		if at, ok := l.debounce.due(); ok {
			quiet = time.After(time.Until(at))
		}
		select {
		case <-l.stop:
			return
		case e := <-l.events:
			l.touchIf(l.do.note(e))
		case <-l.errors:
			l.do.lost()
			l.touchIf(true)
		case <-poll:
			begin := time.Now()
			l.touchIf(l.do.poll())
			poll, rest = nil, max(l.interval, 19*time.Since(begin)) // polling takes at most a twentieth of the time
		case <-quiet:
			if now := time.Now(); l.debounce.over(now, l.do.held(now)) {
				l.do.settle()
			}
		}
	}
}

func (l *loop) touchIf(matters bool) {
	if matters {
		l.debounce.touch(time.Now())
	}
}

// debounce decides when a series of events is over. It has no clock: the times come as arguments.
type debounce struct {
	quiet time.Duration // how long nothing must happen
	limit time.Duration // longest time from the first event
	hold  time.Duration // the same while the series is held up

	active bool
	last   time.Time // of the latest event
	until  time.Time // when limit is over
	never  time.Time // when hold is over
}

// touch notes an event.
func (d *debounce) touch(now time.Time) {
	if !d.active {
		d.active, d.until, d.never = true, now.Add(d.limit), now.Add(d.hold)
	}
	d.last = now
}

// due returns when the series ends if nothing more happens; ok is false if there is none.
func (d *debounce) due() (at time.Time, ok bool) {
	return deadline.Earliest(d.last.Add(d.quiet), d.until), d.active
}

// over reports whether the series has ended, and forgets it then. While held it has not, until hold has passed; after a
// hold a quiet time begins again, because events of that time may still be coming.
func (d *debounce) over(now time.Time, held bool) bool {
	at, ok := d.due()
	if !ok || now.Before(at) {
		return false
	}
	if held && now.Before(d.never) {
		d.last, d.until = now, deadline.Earliest(now.Add(d.limit), d.never)
		return false
	}
	d.active = false
	return true
}

package agentcli

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// watch turns file events into signals. Each event is taken at once: a watcher that waits for that may block a look, which
// adds folders to it.
type watch struct {
	watcher  *fsnotify.Watcher
	signal   chan struct{}
	quit     chan struct{}
	done     sync.WaitGroup
	followed map[string]fs.FileInfo // used only by [Reader.Sessions]
}

// Watch returns a channel with a signal when something that the last look has seen may have changed. So a prompt is
// noticed at once and not at the next poll. One signal stands for all that comes before it is received: how often to look
// is the receiver's business. It follows only folders that a look since then has used, and for one that does not exist the
// nearest existing one above it. If the system's limit of followed folders is reached, polling remains. Further calls
// return the same channel. [Reader.Close] ends it; the channel is not closed.
func (r *Reader) Watch() (<-chan struct{}, error) {
	if r.watch != nil {
		return r.watch.signal, nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch the files of agents: %w", err)
	}
	w := &watch{watcher: watcher, signal: make(chan struct{}, 1), quit: make(chan struct{}), followed: map[string]fs.FileInfo{}}
	w.done.Go(w.run)
	r.watch = w
	return w.signal, nil
}

// run passes events on until the watch is closed.
func (w *watch) run() {
	for {
		select {
		case <-w.quit:
			return
		case event, open := <-w.watcher.Events:
			if !open {
				return
			}
			if isNews(event) {
				w.tell()
			}
		case <-w.watcher.Errors: // events were lost
			w.tell()
		}
	}
}

func (w *watch) tell() {
	select {
	case w.signal <- struct{}{}:
	default: // the previous signal was not received yet
	}
}

// isNews reports whether an event may be relevant. SQLite's shared memory file is also changed by our own reading.
func isNews(event fsnotify.Event) bool {
	return event.Op&^fsnotify.Chmod != 0 && !strings.HasSuffix(event.Name, "-shm")
}

// follow watches a folder that a look has used. An error only means that changes are noticed later.
func (w *watch) follow(path string, f *folder) {
	if w == nil || len(f.names) > followedEntries {
		return
	}
	if before := w.followed[path]; before != nil && os.SameFile(before, f.info) {
		return
	}
	if w.watcher.Add(path) == nil {
		w.followed[path] = f.info
	}
}

// keep stops watching folders that looks do not use any more.
func (w *watch) keep(folders map[string]*folder) {
	if w == nil {
		return
	}
	for path := range w.followed {
		if folders[path] == nil {
			delete(w.followed, path)
			_ = w.watcher.Remove(path) // it may have been removed
		}
	}
}

func (w *watch) close() error {
	close(w.quit)
	err := w.watcher.Close()
	w.done.Wait()
	if err != nil {
		return fmt.Errorf("watch the files of agents: %w", err)
	}
	return nil
}

package collect

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/outlive-mcp/outlive/internal/view/control"
)

// noticeGap is how long further sockets are waited for before all are looked at: many runs may start at once.
const noticeGap = 5 * time.Millisecond

// openNotices watches the directories of control sockets, so that a run is followed as soon as it listens: one that lives
// shorter than the time between two looks would not be seen otherwise. nil: the system cannot do that, and looking is all.
func openNotices(dirs []string) *fsnotify.Watcher {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil
	}
	for _, dir := range dirs {
		_ = w.Add(dir) // the first run makes it, and its parent tells
		if parent := filepath.Dir(dir); parent != filepath.Clean(os.TempDir()) {
			_ = w.Add(parent) // a directory that is not there is left to looking; so is the temporary one, where too much happens
		}
	}
	return w
}

// notice follows the runs whose sockets appear, until ctx ends.
func (c *Collector) notice(ctx context.Context, w *fsnotify.Watcher, dirs []string) {
	defer w.Close()
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case e, more := <-w.Events:
			switch {
			case !more:
				return
			case slices.Contains(dirs, e.Name):
				if e.Has(fsnotify.Create) {
					_ = w.Add(e.Name)
				}
			case !slices.Contains(dirs, filepath.Dir(e.Name)):
				continue
			}
		case _, more := <-w.Errors: // events were lost: look
			if !more {
				return
			}
		case <-due:
			due = nil
			if found, err := control.DiscoverBeside(c.lives, c.opts.Dirs...); err == nil { // an error is told by the next look
				c.follow(ctx, found)
			}
			continue
		}
		if due == nil {
			due = time.After(noticeGap)
		}
	}
}

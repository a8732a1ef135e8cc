package hooks

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// The folders below the one that [Dir] returns.
const (
	eventsFolder   = "events"
	requestsFolder = "requests"
	answersFolder  = "answers"
)

const (
	// maxEvents is how many events may wait for a monitor. A session makes some tens in an hour.
	maxEvents = 1024
	// room is how many events are removed in addition when there are too many, so that this is not necessary for each
	// new event.
	room = 128
	// droppedFile says that events were removed before they were taken. It sorts after all events.
	droppedFile = "dropped"
	// maxFile is the maximum size of one of our own files that is read. JSON needs up to six bytes for one.
	maxFile = 256 << 10
	// halfLife is the age from which a hidden file is removed as left over; in use it exists for less than a
	// millisecond.
	halfLife = time.Minute
)

// Dir is the folder for hooks in a home.
func Dir(home string) string { return filepath.Join(home, "hooks") }

// Prepare makes the folders below dir, so that they can be watched, and returns the two in which new files appear:
// events and requests.
func Prepare(dir string) (watched []string, err error) {
	for _, name := range []string{eventsFolder, requestsFolder, answersFolder} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fmt.Errorf("make the folders for hooks: %w", err)
		}
		if err := private(path); err != nil {
			return nil, fmt.Errorf("folders for hooks: %w", err)
		}
	}
	if err := private(dir); err != nil {
		return nil, fmt.Errorf("folders for hooks: %w", err)
	}
	return []string{filepath.Join(dir, eventsFolder), filepath.Join(dir, requestsFolder)}, nil
}

// Drop writes an event for the monitor. It is not synced to disk: after a loss of power the latest events do not
// matter.
func Drop(dir string, e Event) error {
	events := filepath.Join(dir, eventsFolder)
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("leave event: %w", err)
	}
	path := filepath.Join(events, fmt.Sprintf("%019d-%s.json", e.Time.UnixNano(), rand.Text()[:8]))
	err = atomicfile.Write(path, text)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = Prepare(dir); err == nil {
			err = atomicfile.Write(path, text)
		}
	}
	if err != nil {
		return fmt.Errorf("leave event: %w", err)
	}
	return bound(events)
}

// writeNew creates a file; it fails if the name exists, also as a link.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// bound removes the oldest events when there are too many: the latest are more important. That there were others is
// said, since an agent may wait for what one of them asked.
func bound(events string) error {
	names, err := namesIn(events)
	if err != nil || len(names) <= maxEvents {
		return err
	}
	if err := writeNew(filepath.Join(events, droppedFile), nil); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("remove old events: %w", err)
	}
	slices.Sort(names) // hidden names are first, so that a young one's event may be removed
	for _, name := range names[:len(names)-maxEvents+room] {
		if err := os.Remove(filepath.Join(events, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove old events: %w", err)
		}
	}
	return nil
}

func namesIn(folder string) ([]string, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// Drain passes the waiting events to take, in the order of their times, and removes them if take returns nil: after a
// kill in between they are passed again. dropped says that earlier events were removed because there were too many, or
// that some cannot be read. take is not called without events, unless some were dropped. Files that are not events are
// removed and named in the error; the others are passed all the same.
func Drain(dir string, take func(events []Event, dropped bool) error) error {
	folder := filepath.Join(dir, eventsFolder)
	names, err := namesIn(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("take events of hooks: %w", err)
	}
	slices.Sort(names)
	var events []Event
	var taken []string
	var odd error
	dropped := false
	for _, name := range names {
		path := filepath.Join(folder, name)
		if strings.HasPrefix(name, ".") {
			sweep(path)
			continue
		}
		if name == droppedFile {
			dropped, taken = true, append(taken, path)
			continue
		}
		var e Event
		switch err := readJSON(path, &e); {
		case errors.Is(err, fs.ErrNotExist): // a hook has removed it to make room
		case err != nil:
			dropped = true
			odd = errors.Join(odd, fmt.Errorf("event of a hook: %w", err), os.Remove(path))
		default:
			events, taken = append(events, e), append(taken, path)
		}
	}
	if len(events) == 0 && !dropped {
		return odd
	}
	slices.SortStableFunc(events, func(a, b Event) int { return a.Time.Compare(b.Time) })
	if err := take(events, dropped); err != nil {
		return errors.Join(fmt.Errorf("take events of hooks: %w", err), odd)
	}
	for _, path := range taken {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			odd = errors.Join(odd, fmt.Errorf("take events of hooks: %w", err))
		}
	}
	return odd
}

// sweep removes a file that a killed process has left.
func sweep(path string) {
	if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > halfLife {
		_ = os.Remove(path)
	}
}

// readJSON reads one of our own files. It does not follow links and does not block on pipes.
func readJSON(path string, into any) error {
	text, err := atomicfile.ReadPlain(path, maxFile)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

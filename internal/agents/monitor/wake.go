package monitor

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// Between two looks on events is that many times the last look's duration, so that agents which write constantly do not cause
// constant looks; but at most wakeMost, since a look takes long on a busy machine, and what is seen late is told late. Events within
// wakeGap are covered by one look.
const (
	wakeGap  = 300 * time.Millisecond
	wakeRest = 20
	wakeMost = 2 * time.Second
)

// alarms are the events that cause an early look: the end of a process, a file of an agent, a hook, a user request.
type alarms struct {
	exits   *process.Exits
	files   *fsnotify.Watcher
	vendors <-chan struct{}
}

// openAlarms starts watching. What cannot be watched is polled every five seconds.
func (m *Monitor) openAlarms() {
	a := &m.alarms
	warn := func(what string, err error) {
		if err != nil {
			m.opts.Logger.Warn("file watching unavailable: polling", slog.String("what", what), slog.Any("error", err))
		}
	}
	a.exits = process.NewExits()
	var err error
	a.files, err = fsnotify.NewWatcher()
	warn("files", err)
	dirs, err := hooks.Prepare(hooks.Dir(m.opts.Home))
	warn("hooks", err)
	runs := filepath.Dir(agentrun.Path(m.opts.Home, "x"))
	dirs = append(dirs, runs, filepath.Dir(RequestBell(m.opts.Home)))
	for _, dir := range slices.Compact(dirs) {
		err := os.MkdirAll(dir, 0o700)
		if err == nil && a.files != nil {
			err = a.files.Add(dir)
		}
		warn(dir, err)
	}
	m.followVendors(m.seen.Load())
}

// followVendors watches the CLIs' files from before the first look, which registers the files to follow.
func (m *Monitor) followVendors(p *snapshot) {
	wanted := slices.ContainsFunc(p.Agents, func(a agent) bool { return a.ownsDirectory() && vendorKind(a.Kind) != "" })
	if !wanted || m.alarms.vendors != nil {
		return
	}
	signals, err := m.sources.reader.Watch()
	if err != nil {
		m.opts.Logger.Warn("file watching unavailable: sessions are polled", slog.Any("error", err))
	}
	m.alarms.vendors = signals
}

// watch sets the processes and files to watch.
func (m *Monitor) watch(cases []*examined) {
	if m.alarms.exits == nil {
		return
	}
	var ids []process.Identity
	for _, c := range cases {
		if c.subject.process != (process.Identity{}) {
			ids = append(ids, c.subject.process)
		}
	}
	m.alarms.exits.Watch(ids)
	m.followVendors(m.seen.Load())
}

func (m *Monitor) closeAlarms() error {
	var err error
	if m.alarms.exits != nil {
		m.alarms.exits.Close()
	}
	if m.alarms.files != nil {
		err = m.alarms.files.Close()
	}
	if m.sources.reader != nil {
		err = errors.Join(err, m.sources.reader.Close())
	}
	return err
}

// wait returns when the next look is due: after the pause, or earlier on an event. took is how long the last look took.
// It returns false when the monitor must end.
func (m *Monitor) wait(done <-chan struct{}, pause, took time.Duration) bool {
	looked := time.Now()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	var ended <-chan struct{}
	died := false
	var files <-chan fsnotify.Event
	var lost <-chan error
	if m.alarms.exits != nil {
		ended = m.alarms.exits.C
	}
	if m.alarms.files != nil {
		files, lost = m.alarms.files.Events, m.alarms.files.Errors
	}
	select {
	case <-done:
		return false
	case <-timer.C:
		return true
	case <-ended:
		died = true
	case <-m.alarms.vendors:
	case <-files:
	case <-lost: // events were lost: look
	}
	// Further events until then are covered by the same look.
	rest := min(wakeRest*took, wakeMost) - time.Since(looked)
	gap := time.NewTimer(min(max(wakeGap, rest), pause))
	defer gap.Stop()
	if died {
		gap.Reset(min(wakeGap, pause))
	}
	for {
		select {
		case <-done:
			return false
		case <-gap.C:
			return true
		case <-ended: // an agent's end is never delayed
			gap.Reset(min(wakeGap, pause))
		case <-files:
		case <-m.alarms.vendors:
		}
	}
}

// RequestBell is the file that is written after a request, so that a running monitor handles it at once.
func RequestBell(home string) string { return filepath.Join(home, "wishes", "bell") }

// Ring tells the monitor of a home that there is something new.
func Ring(home string) error {
	bell := RequestBell(home)
	if err := os.MkdirAll(filepath.Dir(bell), 0o700); err != nil {
		return fmt.Errorf("user request: %w", err)
	}
	if err := os.WriteFile(bell, []byte(time.Now().Format(time.RFC3339Nano)+"\n"), 0o600); err != nil {
		return fmt.Errorf("user request: %w", err)
	}
	return nil
}

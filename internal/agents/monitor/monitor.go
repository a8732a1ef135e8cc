package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// Monitor watches one home, which it locks.
type Monitor struct {
	opts          Options
	lock          *lock
	store         *store
	registryStore *registryStore
	sources       *sources
	kept          kept
	notifiers     notifiers
	alarms        alarms
	seen          atomic.Pointer[snapshot] // the last registry snapshot, for other goroutines; set when it is opened

	// The database's state of agents and of what was done. Only the loop changes it.
	agentStates map[string]agentState
	recoveries  map[string][]attempt
	doubtful    bool // a write failed: read again from the database

	last   Clocks // of the last look
	sleeps []Sleep
	grace  time.Time         // until when silence is not evidence; zero: it is
	why    string            // the same in words
	told   string            // the last error that was logged, to log it once
	swept  time.Time         // when old data was removed last
	judged map[string]string // agent: its last diagnosis that was recorded
	// unrecorded is why the last evidence could not be recorded; "": it could.
	unrecorded string
	// verdicts are the last ones that were written down, by agent; watched is when the monitor has looked without a break, as far
	// as it is written down.
	verdicts map[string]Verdict
	watched  Period
	reported fleetMemory
	undone   []string // agents that needed an action at the last look, while the home could not be written
	unkept   unkept
}

// Open locks a home, writes its PID file and opens its database; [Monitor.Close] releases all. The error is a
// [RunningError] when another monitor has the home.
func Open(ctx context.Context, opts Options) (*Monitor, error) {
	opts = opts.withDefaults()
	if opts.Home == "" {
		return nil, errors.New("monitor: no home")
	}
	if err := os.MkdirAll(opts.Home, 0o700); err != nil {
		return nil, fmt.Errorf("monitor: %w", err)
	}
	l, err := takeLock(opts.PIDFile, opts.processes)
	if err != nil {
		return nil, err
	}
	m := &Monitor{opts: opts, lock: l, judged: map[string]string{}, kept: kept{from: opts.Servers}}
	for _, path := range []string{opts.Registry, opts.PIDFile} {
		if err := atomicfile.Sweep(path, time.Now()); err != nil && !errors.Is(err, os.ErrNotExist) {
			opts.Logger.Warn("what a killed writer has left stays", slog.Any("error", err))
		}
	}
	err = m.load(ctx, opts.Database())
	if err == nil {
		err = m.notifiers.outbox.Retry(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// load opens the database and reads the state of an earlier run.
func (m *Monitor) load(ctx context.Context, database string) error {
	var err error
	if m.store, err = openStore(ctx, database); err != nil {
		return err
	}
	m.sources = &sources{home: m.opts.Home, places: m.opts.Places, procs: m.opts.processes, reader: agentcli.NewReader(agentcli.Options{Places: m.opts.Places, OpenFiles: m.opts.processes.Files})}
	if m.registryStore, err = openRegistryStore(ctx, m.opts, m.store); err != nil {
		return err
	}
	m.doubtful = true // until it has been read
	if m.verdicts, err = m.store.lastVerdicts(ctx); err != nil {
		return err
	}
	if m.watched, err = m.store.lastWatched(ctx); err != nil {
		return err
	}
	if m.sleeps, err = m.store.sleeps(ctx); err != nil {
		return err
	}
	for name, to := range map[string]any{"steps": &m.sources.steps, "moment": &m.last, "grace": &m.grace} {
		if _, err = fact(ctx, m.store.db, name, to); err != nil {
			return err
		}
	}
	if m.last.Boot == "" { // clocks of another run, which cannot be compared with ours
		m.last = Clocks{}
	}
	m.why = "the registry was restored, or the machine slept, only just"
	p := m.registryStore.read(ctx)
	m.seen.Store(&p)
	if err := m.openNotifiers(ctx, &p); m.notifiers.outbox == nil {
		return err
	} else if err != nil {
		m.opts.Logger.Error("some channels cannot be reached", slog.Any("error", err))
	}
	return nil
}

// Close releases the home. Nothing has to be completed first.
func (m *Monitor) Close() error {
	m.closeNotifiers()
	var err error
	if m.sources != nil {
		err = m.closeAlarms()
	}
	if m.store != nil {
		err = errors.Join(err, m.store.close())
	}
	return errors.Join(err, m.lock.release())
}

// Run watches until ctx ends: one cycle at once and then one each interval (PIV-14). In between it looks every five
// seconds, and whenever an event asks for it, and logs only changes. Errors of cycles are logged and retried, never
// returned.
func (m *Monitor) Run(ctx context.Context) error {
	if !m.opts.clockOnly {
		m.openAlarms()
	}
	m.carry(ctx)
	if m.opts.Answer {
		release, err := hooks.Announce(ctx, hooks.Dir(m.opts.Home))
		if err != nil {
			return fmt.Errorf("monitor: %w", err)
		}
		defer func() { _ = release() }() // the lock is released when the process exits
	}
	pause := min(m.opts.Interval, lookEvery)
	var next time.Time // of the next cycle
	for {
		begin := time.Now()
		s, err := m.look(ctx)
		took := time.Since(begin)
		if ctx.Err() != nil {
			return nil
		}
		m.complain(err)
		m.mindDisk(ctx, err)
		if m.opts.Looked != nil {
			m.opts.Looked(err)
		}
		if t := time.Now(); !t.Before(next) || s.acted() {
			m.report(ctx, s)
			next = t.Add(m.opts.Interval - pause/2) // looks may be slightly early or late
		}
		if !m.wait(ctx.Done(), pause, took) {
			return nil
		}
	}
}

// complain logs an error unless it was the last one logged.
func (m *Monitor) complain(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != m.told && text != "" {
		m.opts.Logger.Error("some actions failed; they are tried again", slog.Any("error", err))
	}
	m.told = text
}

// drainTime is how long Once waits until its messages are sent. A later run sends the rest.
const drainTime = 20 * time.Second

// Once runs a single cycle (PIV-14, --once) and sends the outbox. An error says that the cycle could not be completed;
// the summary has what it saw.
func (m *Monitor) Once(ctx context.Context) (Summary, error) {
	s, err := m.look(ctx)
	if err == nil {
		m.report(ctx, s)
	}
	m.mindDisk(ctx, err)
	sending, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	m.opts.checkpoint("send-before")
	m.notifiers.outbox.Drain(sending)
	m.opts.checkpoint("send-after")
	return s, err
}

// report prints PIV's summary and stores the clocks for the next run.
func (m *Monitor) report(ctx context.Context, s Summary) {
	fmt.Fprintln(m.opts.Out, s)
	err := setFact(ctx, m.store.db, "moment", m.last)
	if m.last.Wall.Sub(m.swept) > sweepEvery {
		m.swept, m.doubtful = m.last.Wall, true
		err = errors.Join(err, m.store.forget(ctx, m.last.Wall), m.notifiers.outbox.Forget(ctx))
	}
	if err != nil && ctx.Err() == nil {
		m.opts.Logger.Error("the state cannot be kept", slog.Any("error", err))
	}
}

// Summary is the result of a cycle.
type Summary struct {
	Projects  int // in the registry
	Stalled   int // of them
	Recovered int // of these: restarted in this cycle
	Escalated int // of these: escalated in this cycle
}

// String is the line of PIV-14.
func (s Summary) String() string {
	return fmt.Sprintf("Monitor cycle complete: %d projects, %d stalled, %d recovered", s.Projects, s.Stalled, s.Recovered)
}

func (s Summary) acted() bool { return s.Recovered > 0 || s.Escalated > 0 }

// Database is the path of the database.
func (o Options) Database() string { return filepath.Join(o.Home, "monitor.db") }

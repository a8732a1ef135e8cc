package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/notify"
)

// Monitor watches one home. Only one does at a time.
type Monitor struct {
	opts   Options
	lock   *lock
	store  *store
	book   *book
	outbox *notify.Outbox
	posted chan struct{} // something is in the outbox

	last   Moment // of the last look
	sleeps []Sleep
	grace  time.Time // until when silence is no evidence; zero: it is
	why    string    // the same in words
	told   string    // the last error that was logged: once is enough
	lost   string    // the same of the registry
	swept  time.Time // when what is long over was removed last
}

// Open takes a home: its lock, its PID file and its database, all of which [Monitor.Close] gives back. The error is a
// [RunningError] when another monitor has it.
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
	m := &Monitor{opts: opts, lock: l, posted: make(chan struct{}, 1)}
	if err := m.load(ctx, opts.Database()); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// load opens the database and reads what an earlier run has left.
func (m *Monitor) load(ctx context.Context, database string) error {
	var err error
	if m.store, err = openStore(ctx, database); err != nil {
		return err
	}
	if m.outbox, err = notify.NewOutbox(ctx, m.store.db, m.opts.Chat); err != nil {
		return err
	}
	if m.book, err = openBook(ctx, m.opts.Registry, m.store); err != nil {
		return err
	}
	if m.sleeps, err = m.store.sleeps(ctx); err != nil {
		return err
	}
	if _, err = m.store.fact(ctx, "moment", &m.last); err != nil {
		return err
	}
	if m.last.Boot == "" { // clocks of another run, which ours cannot be compared with
		m.last = Moment{}
	}
	_, err = m.store.fact(ctx, "grace", &m.grace)
	m.why = "the registry was restored, or the machine slept, only just"
	return errors.Join(err, m.outbox.Retry(ctx))
}

// Close gives the home back. Nothing has to be brought to an end first.
func (m *Monitor) Close() error {
	var err error
	if m.store != nil {
		err = m.store.close()
	}
	return errors.Join(err, m.lock.release())
}

// Run watches until ctx ends: one cycle at once and one each interval (S4), and a look in between every five seconds,
// which says something only when there is something to do. The error is never a cycle's: those are told and tried again.
func (m *Monitor) Run(ctx context.Context) error {
	done := make(chan struct{})
	if m.opts.Sender != nil {
		go func() {
			defer close(done)
			m.post(ctx)
		}()
	} else {
		close(done)
	}
	defer func() { <-done }()
	pause := min(m.opts.Interval, lookEvery)
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	var next time.Time // of the next cycle
	for {
		s, err := m.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		m.complain(err)
		if t := time.Now(); !t.Before(next) || s.acted() {
			m.report(ctx, s)
			next = t.Add(m.opts.Interval - pause/2) // ticks may come a little early or late
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// complain logs an error when it is news.
func (m *Monitor) complain(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != m.told && text != "" {
		m.opts.Logger.Error("not everything could be done; it is tried again", slog.Any("error", err))
	}
	m.told = text
}

// drainTime is how long Once waits for what it has to say to be sent. What is not sent then, a later run sends.
const drainTime = 20 * time.Second

// Once runs a single cycle (S4 --once), and sends what is in the outbox. An error says that the cycle could not be
// finished; what it saw of stalls is in the summary.
func (m *Monitor) Once(ctx context.Context) (Summary, error) {
	s, err := m.look(ctx)
	if err == nil {
		m.report(ctx, s)
	}
	if m.opts.Sender != nil {
		ctx, cancel := context.WithTimeout(ctx, drainTime)
		defer cancel()
		m.drain(ctx)
	}
	return s, err
}

// report prints S4's summary and keeps what the next run wants to know of the clocks.
func (m *Monitor) report(ctx context.Context, s Summary) {
	fmt.Fprintln(m.opts.Out, s)
	err := m.store.setFact(ctx, "moment", m.last)
	if m.last.Wall.Sub(m.swept) > sweepEvery {
		m.swept = m.last.Wall
		err = errors.Join(err, m.store.forget(ctx, m.last.Wall))
	}
	if err != nil && ctx.Err() == nil {
		m.opts.Logger.Error("the state cannot be kept", slog.Any("error", err))
	}
}

// Summary is what a cycle has come to.
type Summary struct {
	Projects  int // in the registry
	Stalled   int // of them
	Recovered int // of these: restarted in this cycle
	Escalated int // of these: a human was told in this cycle
}

// String is S4's line.
func (s Summary) String() string {
	return fmt.Sprintf("Monitor cycle complete: %d projects, %d stalled, %d recovered", s.Projects, s.Stalled, s.Recovered)
}

func (s Summary) acted() bool { return s.Recovered > 0 || s.Escalated > 0 }

// wake tells the postman.
func (m *Monitor) wake() {
	select {
	case m.posted <- struct{}{}:
	default:
	}
}

// lastWords is how long a message may still take when the monitor is asked to end.
const lastWords = 3 * time.Second

// post is the postman: it sends what is in the outbox until ctx ends.
func (m *Monitor) post(ctx context.Context) {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(lastWords, cancel)
		context.AfterFunc(sending, func() { timer.Stop() })
	})
	defer stop()
	for ctx.Err() == nil {
		next := m.deliver(sending)
		var due <-chan time.Time
		if !next.IsZero() {
			timer := time.NewTimer(time.Until(next))
			defer timer.Stop()
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-m.posted:
		case <-due:
		}
	}
}

// drain sends what is due before ctx ends.
func (m *Monitor) drain(ctx context.Context) {
	end, _ := ctx.Deadline()
	for {
		next := m.deliver(ctx)
		if next.IsZero() || next.After(end) || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
		}
	}
}

func (m *Monitor) deliver(ctx context.Context) (next time.Time) {
	m.opts.checkpoint("send-before")
	next, err := m.outbox.Deliver(ctx, time.Now(), m.opts.Sender)
	m.opts.checkpoint("send-after")
	if err != nil && ctx.Err() == nil {
		m.opts.Logger.Warn("a message was not sent", slog.Any("error", err), slog.Time("next", next))
	}
	return next
}

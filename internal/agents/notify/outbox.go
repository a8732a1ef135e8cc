package notify

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// again marks a message that may have arrived before.
const again = "\n\n(sent again: whether the first one arrived is not known)"

// ErrNoChannel says that a message is for a channel that does not exist.
var ErrNoChannel = errors.New("no such channel")

// Outbox keeps messages until they are sent, independently for each channel: a slow or dead one does not delay others.
// [Outbox.Put] may be called from any goroutine, each channel's [Outbox.Deliver] by one at a time.
type Outbox struct {
	db     *sql.DB
	logger *slog.Logger
	lanes  map[string]*lane
	sends  *sends
}

// lane is one channel's part of the outbox.
type lane struct {
	name    string
	channel Channel
	wake    chan struct{}
	told    string    // the failure that was logged last: once is enough
	limited time.Time // until when the service wants nothing, not even an answer
	gathers time.Time // until when others of the message's kind are waited for; zero: not yet

	// unsettled stores a result that could not be stored yet.
	unsettled func(ctx context.Context) error
}

// NewOutbox returns the outbox of a database that has run [Schema]. Only one process may deliver from it at a time. What
// was being sent when an earlier one was killed is sent again, marked. Messages for channels that are not among channels
// wait. logger may be nil.
func NewOutbox(ctx context.Context, db *sql.DB, channels map[string]Channel, logger *slog.Logger) (*Outbox, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	_, err := db.ExecContext(ctx, `UPDATE outbox_message SET state = 'queued', unsure = 1 WHERE state = 'sending'`)
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	o := &Outbox{db: db, logger: logger, lanes: map[string]*lane{}, sends: &sends{last: map[string][]time.Time{}}}
	for name, c := range channels {
		o.lanes[name] = &lane{name: name, channel: c, wake: make(chan struct{}, 1)}
		if err := o.follow(ctx, o.lanes[name]); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// follow sets the address that a channel has moved to, unless it has been given another one since.
func (o *Outbox) follow(ctx context.Context, l *lane) error {
	m, ok := l.channel.(Mover)
	if !ok {
		return nil
	}
	var from, to string
	err := o.db.QueryRowContext(ctx, `SELECT moved_from, moved_to FROM outbox_channel WHERE name = ?`, l.name).Scan(&from, &to)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("outbox: %w", err)
	}
	if to != "" && from == m.Address() {
		m.MoveTo(to)
	}
	return nil
}

// KeepPace counts the messages of an earlier outbox, which sends no more, as its own.
func (o *Outbox) KeepPace(earlier *Outbox) { o.sends = earlier.sends }

// Channels are the names of the channels, in order.
func (o *Outbox) Channels() []string { return slices.Sorted(maps.Keys(o.lanes)) }

// Put queues a message for a channel within tx, after removing secrets. A key that was put before is ignored. A state of
// a thread replaces an older one that still waits. Call [Outbox.Wake] after the commit. The error is an [ErrNoChannel],
// an [ErrCallback] or the database's.
func (o *Outbox) Put(ctx context.Context, tx *sql.Tx, channel string, m Message) error {
	l, ok := o.lanes[channel]
	if !ok {
		return fmt.Errorf("outbox: %s: %w", channel, ErrNoChannel)
	}
	if err := m.check(); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	for _, part := range m.redacted().parts(l.limit() - len(again)) {
		if err := putPart(ctx, tx, channel, part); err != nil {
			return fmt.Errorf("outbox: %w", err)
		}
	}
	return nil
}

func (l *lane) limit() int {
	if s, ok := l.channel.(Sized); ok {
		return max(s.Limit(), 2*len(again))
	}
	return MessageLimit
}

// putPart queues one message as it will be sent.
func putPart(ctx context.Context, tx *sql.Tx, channel string, m Message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	r, err := tx.ExecContext(ctx, `INSERT INTO outbox_message (channel, key, thread, message) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		channel, m.Key, m.Thread, string(b))
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 || m.Thread == "" {
		return err
	}
	return merge(ctx, tx, channel, m.Thread)
}

// merge reduces the waiting states of a thread to the newest, in the position of the oldest, so that a thread that
// changes often gets its turn. A message being sent is left alone.
func merge(ctx context.Context, tx *sql.Tx, channel, thread string) error {
	list, err := partsOf(ctx, tx, `SELECT id, 1, message FROM outbox_message WHERE channel = ? AND thread = ? AND state = 'queued' ORDER BY id`, channel, thread)
	if err != nil || len(list) < 2 {
		return err
	}
	last := list[len(list)-1].message
	last.Minor = !slices.ContainsFunc(list, func(p part) bool { return !p.message.Minor }) // a change that was never sent stays one
	b, err := json.Marshal(last)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE outbox_message SET message = ?, plain = 0 WHERE id = ?`, string(b), list[0].id)
	for _, p := range list[1:] {
		_, e := tx.ExecContext(ctx, `UPDATE outbox_message SET state = 'merged' WHERE id = ?`, p.id)
		err = errors.Join(err, e)
	}
	return err
}

// Withdraw drops the messages of a thread that are not sent yet, within tx, unless one is being sent now, or may have arrived.
func (o *Outbox) Withdraw(ctx context.Context, tx *sql.Tx, thread string) error {
	_, err := tx.ExecContext(ctx, `UPDATE outbox_message SET state = 'dropped', error = 'withdrawn' WHERE thread = ? AND state = 'queued' AND channel NOT IN
		(SELECT channel FROM outbox_message WHERE thread = ? AND (state IN ('sending', 'sent') OR unsure = 1))`, thread, thread)
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}

// Retry makes messages due that have failed: a new start, or a change of the setting, is a reason to try again. What the
// service has put off waits on.
func (o *Outbox) Retry(ctx context.Context) error {
	_, err := o.db.ExecContext(ctx, `UPDATE outbox_message SET not_before = 0 WHERE state = 'queued' AND error NOT LIKE ?`, string(Limited)+":%")
	return err
}

// kept is how many messages that are dealt with are remembered: their keys are not put again, their threads can be
// changed and answered.
const kept = 5000

// Forget removes old messages. Call it now and then.
func (o *Outbox) Forget(ctx context.Context) error {
	_, err := o.db.ExecContext(ctx, `DELETE FROM outbox_message WHERE state NOT IN ('queued', 'sending') AND id <= (SELECT max(id) FROM outbox_message) - ?`, kept)
	return err
}

// ThreadOf is the thread of a sent message: "" if it has none, or is a list of several. known is false if it was removed.
func ThreadOf(ctx context.Context, tx *sql.Tx, channel, ref string) (thread string, known bool, err error) {
	var threads int
	var one sql.NullString
	err = tx.QueryRowContext(ctx, `SELECT count(DISTINCT thread), max(thread) FROM outbox_message WHERE channel = ? AND ref = ?`, channel, ref).Scan(&threads, &one)
	if threads == 1 {
		thread = one.String
	}
	return thread, threads > 0, err
}

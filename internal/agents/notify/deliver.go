package notify

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// entry is one message of the outbox.
type entry struct {
	id            int64
	message       Message
	tries         int
	notBefore     time.Time
	unsure, plain bool
	told          bool    // an earlier state of the thread was
	ref           string  // of the message that shows it; "": none does
	again         bool    // that message may be the second one
	others        []int64 // messages that are sent with it, in a list
	fresh         bool    // nothing of its list is sent yet
}

// Deliver sends a channel's oldest message, if it is due, and returns when to call again: zero when nothing waits.
// Messages keep their order, so one that has to wait holds up those behind it; only answers to a person go first. The
// error is a [SendError] of the message, which the outbox has dealt with, or the database's.
func (o *Outbox) Deliver(ctx context.Context, channel string, now time.Time) (next time.Time, err error) {
	l, ok := o.lanes[channel]
	if !ok {
		return time.Time{}, fmt.Errorf("outbox: %s: %w", channel, ErrNoChannel)
	}
	if err := l.settleNow(ctx); err != nil {
		return now.Add(firstRetry), fmt.Errorf("outbox: %w", err)
	}
	e, err := o.oldest(ctx, l)
	if errors.Is(err, sql.ErrNoRows) {
		l.gathers = time.Time{}
		return time.Time{}, nil
	}
	if err != nil {
		return now.Add(firstRetry), fmt.Errorf("outbox: %w", err)
	}
	due := latest(e.notBefore, l.limited, o.sends.next(l, e.message.Asked), l.gathered(e, now))
	if due.After(now) {
		return due, nil
	}
	// Recorded before it is sent: after a kill it is known that it may have arrived.
	if _, err := o.db.ExecContext(ctx, `UPDATE outbox_message SET state = 'sending' WHERE id = ?`, e.id); err != nil {
		return now.Add(firstRetry), fmt.Errorf("outbox: %w", err)
	}
	ref, failure := l.say(ctx, e)
	o.sends.note(l, now)
	l.gathers = time.Time{}
	// The request is over in any case; its result must not be lost.
	return o.settle(context.WithoutCancel(ctx), l, now, e, ref, failure)
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// settleNow stores a result that could not be stored before.
func (l *lane) settleNow(ctx context.Context) error {
	if l.unsettled == nil {
		return nil
	}
	err := l.unsettled(ctx)
	if err == nil {
		l.unsettled = nil
	}
	return err
}

// oldest is the message that comes next. The error is sql.ErrNoRows when nothing waits.
func (o *Outbox) oldest(ctx context.Context, l *lane) (e entry, err error) {
	err = transact(ctx, o.db, func(tx *sql.Tx) error {
		if e, err = first(ctx, tx, l.name); err != nil {
			return err
		}
		if e.message.Thread != "" {
			if e, err = newest(ctx, tx, l.name, e); err != nil {
				return err
			}
		}
		e, err = l.listed(ctx, tx, e)
		return err
	})
	return e, err
}

// newest is the newest state of the message's thread, with the message that shows it.
func newest(ctx context.Context, tx *sql.Tx, channel string, e entry) (entry, error) {
	// A state that was put while this one was being sent has not been merged with it.
	_, err := tx.ExecContext(ctx, `UPDATE outbox_message SET state = 'queued' WHERE id = ? AND state <> 'queued'`, e.id)
	if err := errors.Join(err, merge(ctx, tx, channel, e.message.Thread)); err != nil {
		return e, err
	}
	if e, err = first(ctx, tx, channel); err != nil {
		return e, err
	}
	err = tx.QueryRowContext(ctx, `SELECT ref, unsure FROM outbox_message WHERE channel = ? AND thread = ? AND state = 'sent' ORDER BY id DESC LIMIT 1`,
		channel, e.message.Thread).Scan(&e.ref, &e.again)
	if errors.Is(err, sql.ErrNoRows) {
		return e, nil
	}
	e.told = err == nil
	return e, err
}

// first reads the message that has waited longest, answers to a person before others. One in state 'sending' is not being
// sent now, since there is only one caller: the state was stored, but the commit's success was not seen.
func first(ctx context.Context, tx *sql.Tx, channel string) (e entry, err error) {
	var text string
	var notBefore int64
	row := tx.QueryRowContext(ctx, `SELECT id, message, tries, not_before, unsure, plain FROM outbox_message
		WHERE channel = ? AND state IN ('queued', 'sending') ORDER BY coalesce(json_extract(message, '$.asked'), 0) DESC, id LIMIT 1`, channel)
	if err := row.Scan(&e.id, &text, &e.tries, &notBefore, &e.unsure, &e.plain); err != nil {
		return e, err
	}
	e.notBefore = time.UnixMilli(notBefore)
	if err := json.Unmarshal([]byte(text), &e.message); err != nil {
		return e, fmt.Errorf("message %d: %w", e.id, err)
	}
	return e, nil
}

// say sends the message, as a change of an earlier one or as a new one.
func (l *lane) say(ctx context.Context, e entry) (ref string, failure *SendError) {
	m := e.message
	if e.plain {
		m.Text.Bold = nil
	}
	if editor, ok := l.channel.(Editor); ok && e.ref != "" {
		if e.again {
			m.Text.Body += again
		}
		return e.ref, asSendError(editor.Update(ctx, e.ref, m))
	}
	if e.told && m.Minor {
		return "", nil
	}
	if m.Follows = e.told; e.unsure {
		m.Text.Body += again
	}
	ref, err := l.channel.Send(ctx, m)
	return ref, asSendError(err)
}

func asSendError(err error) *SendError {
	if err == nil {
		return nil
	}
	failure := &SendError{Failure: Unreachable, Unsure: true, Err: err}
	_ = errors.As(err, &failure)
	return failure
}

// settle stores the result of sending a message.
func (o *Outbox) settle(ctx context.Context, l *lane, now time.Time, e entry, ref string, failure *SendError) (time.Time, error) {
	next := now
	if failure == nil {
		l.unsettled = func(ctx context.Context) error {
			return transact(ctx, o.db, func(tx *sql.Tx) error { return o.wasSent(ctx, tx, l, e, ref) })
		}
	} else {
		v := judge(failure, e.message, e.tries, e.plain)
		next = now.Add(v.wait)
		if failure.Failure == Limited {
			l.limited = next
		}
		from := ""
		if mover, ok := l.channel.(Mover); ok && v.address != "" {
			from = mover.Address()
			mover.MoveTo(v.address)
		}
		l.unsettled = func(ctx context.Context) error {
			return transact(ctx, o.db, func(tx *sql.Tx) error { return o.wasNotSent(ctx, tx, l, e, failure, v, next, from) })
		}
	}
	if err := l.settleNow(ctx); err != nil {
		return now.Add(firstRetry), fmt.Errorf("outbox: %w", err)
	}
	if failure != nil {
		if failure.Failure == Refused {
			o.Wake() // the others have something to send now
		}
		return next, failure
	}
	var waits int
	err := o.db.QueryRowContext(ctx, `SELECT count(*) FROM outbox_message WHERE channel = ? AND state = 'queued'`, l.name).Scan(&waits)
	if err == nil && waits == 0 {
		return time.Time{}, nil
	}
	return latest(next, o.sends.next(l, true)), err
}

func (o *Outbox) wasSent(ctx context.Context, tx *sql.Tx, l *lane, e entry, ref string) error {
	twice := e.unsure // repeating a change has no effect; a repeated message may be there twice
	if _, ok := l.channel.(Editor); ok && e.ref != "" {
		twice = e.again
	}
	_, err := tx.ExecContext(ctx, `UPDATE outbox_channel SET refused = 0 WHERE name = ?`, l.name)
	for _, id := range append(e.others, e.id) {
		_, failed := tx.ExecContext(ctx, `UPDATE outbox_message SET state = 'sent', ref = ?, refused = 0, unsure = ?, error = '' WHERE id = ?`, ref, twice, id)
		err = errors.Join(err, failed)
	}
	return err
}

func (o *Outbox) wasNotSent(ctx context.Context, tx *sql.Tx, l *lane, e entry, failure *SendError, v handling, next time.Time, from string) error {
	state := "queued"
	if v.drop {
		state = "dropped"
	}
	_, err := tx.ExecContext(ctx, `UPDATE outbox_message SET state = ?, tries = tries + 1, not_before = ?, refused = ?, unsure = unsure OR ?, plain = plain OR ?, error = ? WHERE id = ?`,
		state, next.UnixMilli(), v.refused, v.unsure, v.plain, failure.Error(), e.id)
	if err != nil {
		return err
	}
	if v.gone {
		_, err = tx.ExecContext(ctx, `UPDATE outbox_message SET ref = '' WHERE channel = ? AND thread = ?`, l.name, e.message.Thread)
	}
	if v.address != "" {
		_, e := tx.ExecContext(ctx, `INSERT INTO outbox_channel (name, moved_from, moved_to) VALUES (?, ?, ?)
			ON CONFLICT DO UPDATE SET moved_from = CASE WHEN moved_to = excluded.moved_from THEN moved_from ELSE excluded.moved_from END, moved_to = excluded.moved_to`,
			l.name, from, v.address)
		err = errors.Join(err, e)
	}
	if v.refused {
		err = errors.Join(err, o.tellTheOthers(ctx, tx, l, failure))
	}
	return err
}

// tellTheOthers reports by every other channel, once, that this one fails.
func (o *Outbox) tellTheOthers(ctx context.Context, tx *sql.Tx, l *lane, failure *SendError) error {
	var episode int
	err := tx.QueryRowContext(ctx, `INSERT INTO outbox_channel (name, refused, episodes) VALUES (?, 1, 1)
		ON CONFLICT DO UPDATE SET refused = 1, episodes = episodes + 1 WHERE refused = 0 RETURNING episodes`, l.name).Scan(&episode)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // they know
	}
	if err != nil {
		return err
	}
	var text Text
	text.WriteBold("No message can be sent by " + l.name)
	text.Write("\n\n" + failure.Error() + "\n\nWhat it has to say waits until that is set right.")
	for _, name := range o.Channels() {
		if name == l.name {
			continue
		}
		if err := o.Put(ctx, tx, name, Message{Key: fmt.Sprintf("refused/%s/%d", l.name, episode), Text: text}); err != nil {
			return err
		}
	}
	return nil
}

// transact runs f in one transaction: all of it happens, or nothing.
func transact(ctx context.Context, db *sql.DB, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

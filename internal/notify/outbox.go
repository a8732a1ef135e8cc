package notify

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Schema makes the outbox's table. The caller runs it on its database.
const Schema = `CREATE TABLE IF NOT EXISTS outbox (
	id         INTEGER PRIMARY KEY,
	key        TEXT NOT NULL UNIQUE,          -- what it is about: nothing is put twice
	text       TEXT NOT NULL,                 -- JSON of Text
	state      TEXT NOT NULL DEFAULT 'queued',-- queued, sending, sent, dropped
	tries      INTEGER NOT NULL DEFAULT 0,
	not_before INTEGER NOT NULL DEFAULT 0,    -- Unix milliseconds
	unsure     INTEGER NOT NULL DEFAULT 0,    -- it may have arrived already
	plain      INTEGER NOT NULL DEFAULT 0,    -- send without entities
	message    INTEGER NOT NULL DEFAULT 0,    -- its number in the chat
	error      TEXT NOT NULL DEFAULT ''
)`

// Sender sends one message. [Telegram] is one.
type Sender interface {
	Send(ctx context.Context, chat string, text Text) (id int, err error)
}

// Pauses of the outbox.
const (
	messagePause = time.Second     // between two messages to one chat (S4: 1 message a second)
	firstRetry   = 2 * time.Second // after an unreachable server, doubled up to lastRetry
	lastRetry    = 5 * time.Minute
	refusedRetry = time.Hour // after a dead token: a human may have dealt with it
)

// again marks a message that may have arrived before.
const again = "\n\n(sent again: whether the first one arrived is not known)"

// Outbox keeps messages until they are sent.
type Outbox struct {
	db   *sql.DB
	chat string
	last time.Time // of the last message that was sent
}

// NewOutbox returns the outbox of a database that has run [Schema]. Only one may deliver from it at a time. What was
// being sent when an earlier one was killed is sent again, marked.
func NewOutbox(ctx context.Context, db *sql.DB, chat string) (*Outbox, error) {
	_, err := db.ExecContext(ctx, `UPDATE outbox SET state = 'queued', unsure = 1 WHERE state = 'sending'`)
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	return &Outbox{db: db, chat: chat}, nil
}

// Put queues a message within tx, so that it is there exactly if what it tells is. A long one becomes several. A key
// that was put before is passed over.
func Put(ctx context.Context, tx *sql.Tx, key string, text Text) error {
	for i, part := range text.Split(MessageLimit - len(again)) {
		b, err := json.Marshal(part)
		if err != nil {
			return fmt.Errorf("outbox: %w", err)
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO outbox (key, text) VALUES (?, ?) ON CONFLICT (key) DO NOTHING`,
			fmt.Sprintf("%s/%d", key, i), string(b))
		if err != nil {
			return fmt.Errorf("outbox: %w", err)
		}
	}
	return nil
}

// entry is one message of the outbox.
type entry struct {
	id            int64
	text          Text
	tries         int
	notBefore     time.Time
	unsure, plain bool
}

// Deliver sends the oldest message, if it is due, and returns when to call again: zero when nothing waits. Messages keep
// their order, so one that has to wait holds up those behind it. The error is a [SendError] of the message, which the
// outbox has dealt with, or the database's.
func (o *Outbox) Deliver(ctx context.Context, now time.Time, s Sender) (next time.Time, err error) {
	e, err := o.oldest(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, nil
	}
	if err != nil {
		return now.Add(firstRetry), fmt.Errorf("outbox: %w", err)
	}
	due := e.notBefore
	if rest := o.last.Add(messagePause); rest.After(due) {
		due = rest
	}
	if due.After(now) {
		return due, nil
	}
	// Written down before it is done: whoever comes after a kill knows that it may have arrived.
	if _, err := o.db.ExecContext(ctx, `UPDATE outbox SET state = 'sending' WHERE id = ?`, e.id); err != nil {
		return now.Add(firstRetry), fmt.Errorf("outbox: %w", err)
	}
	text := e.text
	if e.plain {
		text.Bold = nil
	}
	if e.unsure {
		text.Body += again
	}
	id, sendErr := s.Send(ctx, o.chat, text)
	// The request is over, whatever became of ctx; what is known now must not be lost.
	return o.settle(context.WithoutCancel(ctx), now, e, id, sendErr)
}

func (o *Outbox) oldest(ctx context.Context) (e entry, err error) {
	var text string
	var notBefore int64
	row := o.db.QueryRowContext(ctx, `SELECT id, text, tries, not_before, unsure, plain FROM outbox WHERE state = 'queued' ORDER BY id LIMIT 1`)
	if err := row.Scan(&e.id, &text, &e.tries, &notBefore, &e.unsure, &e.plain); err != nil {
		return e, err
	}
	e.notBefore = time.UnixMilli(notBefore)
	if err := json.Unmarshal([]byte(text), &e.text); err != nil {
		return e, fmt.Errorf("message %d: %w", e.id, err)
	}
	return e, nil
}

// settle writes down what became of a message.
func (o *Outbox) settle(ctx context.Context, now time.Time, e entry, id int, sendErr error) (time.Time, error) {
	if sendErr == nil {
		o.last = now
		_, err := o.db.ExecContext(ctx, `UPDATE outbox SET state = 'sent', message = ?, error = '' WHERE id = ?`, id, e.id)
		if n, countErr := o.Waiting(ctx); err == nil && countErr == nil && n == 0 {
			return time.Time{}, nil
		}
		return now.Add(messagePause), err
	}
	v := judge(sendErr, e)
	if v.chat != "" {
		o.chat = v.chat
	}
	state := "queued"
	if v.drop {
		state = "dropped"
	}
	next := now.Add(v.wait)
	_, err := o.db.ExecContext(ctx, `UPDATE outbox SET state = ?, tries = tries + 1, not_before = ?, unsure = unsure OR ?, plain = plain OR ?, error = ? WHERE id = ?`,
		state, next.UnixMilli(), v.unsure, v.plain, sendErr.Error(), e.id)
	return next, errors.Join(sendErr, err)
}

// verdict is what a failure means for a message.
type verdict struct {
	wait          time.Duration
	drop          bool
	unsure, plain bool
	chat          string
}

// judge decides what becomes of a message that was not sent.
func judge(err error, e entry) verdict {
	failure := &SendError{Failure: Unreachable, Unsure: true}
	_ = errors.As(err, &failure)
	backoff := min(firstRetry<<min(e.tries, 10), lastRetry)
	switch failure.Failure {
	case Limited:
		return verdict{wait: max(failure.RetryAfter, messagePause)}
	case Moved:
		return verdict{wait: messagePause, chat: failure.Chat}
	case Refused:
		return verdict{wait: refusedRetry}
	case Rejected:
		// S4: what is not taken with its formatting is sent without. What is not taken then either never will be.
		return verdict{wait: messagePause, plain: true, drop: e.plain}
	}
	return verdict{wait: backoff, unsure: failure.Unsure}
}

// Waiting is how many messages are not sent yet.
func (o *Outbox) Waiting(ctx context.Context) (n int, err error) {
	err = o.db.QueryRowContext(ctx, `SELECT count(*) FROM outbox WHERE state IN ('queued', 'sending')`).Scan(&n)
	return n, err
}

// Retry makes everything that waits due at once: a new start is a reason to try again what was refused.
func (o *Outbox) Retry(ctx context.Context) error {
	_, err := o.db.ExecContext(ctx, `UPDATE outbox SET not_before = 0 WHERE state = 'queued' AND error LIKE 'telegram: refused%'`)
	return err
}

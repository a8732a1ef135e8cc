package notify

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"
)

const (
	// answerLimit is how long the answer to a press may be, in UTF-16 code units (Bot API: 200 characters).
	answerLimit = 200
	// repeats is how far behind the offset an update is a repetition. Telegram never sends one that was confirmed; but
	// after a week of silence it begins to count anywhere, and a number far behind is a new one.
	repeats = 100
	// applyTries is how often a failing update is tried before it is skipped, so that it does not block those after it
	// for ever.
	applyTries = 5
	// answerTries is the same of the answer to a press, which Telegram wants within seconds anyway.
	answerTries = 5
)

// Answers to presses that have no effect.
const (
	answerStranger = "You are not allowed to do this."
	answerUnknown  = "This button is not known here."
	answerFailed   = "This could not be done. See the log."
)

// apply deals with one update; applied is false when that was done before. next is the offset it was asked for with.
func (u *Updates) apply(ctx context.Context, raw json.RawMessage, next int64) (applied bool, err error) {
	var id struct {
		Update *int64 `json:"update_id"`
	}
	if err := json.Unmarshal(raw, &id); err != nil || id.Update == nil {
		return false, fmt.Errorf("telegram: an update without a number: %.200q", raw)
	}
	if *id.Update < next && *id.Update >= next-repeats {
		return false, nil
	}
	var up models.Update
	if err := json.Unmarshal(raw, &up); err != nil {
		u.opts.Logger.Warn("cannot read an update from Telegram", slog.Int64("update", *id.Update), slog.Any("error", err))
		up = models.Update{}
	}
	up.ID = *id.Update
	err = transact(ctx, u.opts.DB, func(tx *sql.Tx) error { return u.dealWith(ctx, tx, &up) })
	if err != nil && ctx.Err() == nil {
		if u.failed[up.ID]++; u.failed[up.ID] < applyTries {
			return false, fmt.Errorf("telegram: update %d: %w", up.ID, err)
		}
		u.opts.Logger.Error("answer from Telegram ignored", slog.Int64("update", up.ID), slog.Any("error", err))
		err = transact(ctx, u.opts.DB, func(tx *sql.Tx) error {
			if up.CallbackQuery != nil {
				if err := u.putAnswer(ctx, tx, up.CallbackQuery.ID, answerFailed); err != nil {
					return err
				}
			}
			return u.confirm(ctx, tx, up.ID)
		})
	}
	if err != nil {
		return false, fmt.Errorf("telegram: update %d: %w", up.ID, err)
	}
	delete(u.failed, up.ID)
	if u.opts.Changed != nil {
		u.opts.Changed()
	}
	// The human who pressed is waiting. The answer is stored: what fails now is sent later.
	if err := u.sendAnswers(ctx); err != nil && ctx.Err() == nil {
		u.opts.Logger.Warn("a press was not answered", slog.Any("error", err))
	}
	return true, nil
}

// dealWith does what an update asks for, and marks it as handled.
func (u *Updates) dealWith(ctx context.Context, tx *sql.Tx, up *models.Update) error {
	var err error
	switch {
	case up.CallbackQuery != nil:
		err = u.pressed(ctx, tx, up.ID, up.CallbackQuery)
	case up.Message != nil:
		err = u.wrote(ctx, tx, up.ID, up.Message)
	}
	if err != nil {
		return err
	}
	return u.confirm(ctx, tx, up.ID)
}

func (u *Updates) confirm(ctx context.Context, tx *sql.Tx, update int64) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO telegram_offset (bot, next) VALUES (?, ?) ON CONFLICT DO UPDATE SET next = excluded.next`, u.me, update+1)
	return err
}

func (u *Updates) pressed(ctx context.Context, tx *sql.Tx, update int64, q *models.CallbackQuery) error {
	from := From{Update: update, User: q.From.ID, Name: nameOf(&q.From)}
	message := 0
	switch m := q.Message; {
	case m.Message != nil:
		from.Chat, message = m.Message.Chat.ID, m.Message.ID
	case m.InaccessibleMessage != nil: // it is old
		from.Chat, message = m.InaccessibleMessage.Chat.ID, m.InaccessibleMessage.MessageID
	}
	from.Listed = slices.Contains(u.opts.Users, from.User)
	allowed, err := u.allowed(ctx, tx, from)
	if err != nil {
		return err
	}
	if !allowed {
		return u.putAnswer(ctx, tx, q.ID, answerStranger)
	}
	callback, err := ParseCallback(q.Data)
	if err != nil {
		return u.putAnswer(ctx, tx, q.ID, answerUnknown)
	}
	if err := u.find(ctx, tx, &from, message); err != nil {
		return err
	}
	answer, err := u.opts.Applier.Press(ctx, tx, Press{From: from, Callback: callback})
	if err != nil {
		return err
	}
	return u.putAnswer(ctx, tx, q.ID, answer)
}

func (u *Updates) wrote(ctx context.Context, tx *sql.Tx, update int64, m *models.Message) error {
	from := From{Update: update, Chat: m.Chat.ID, Topic: topicOf(m)}
	if m.From != nil {
		from.User, from.Name = m.From.ID, nameOf(m.From)
	}
	from.Listed = slices.Contains(u.opts.Users, from.User)
	allowed, err := u.allowed(ctx, tx, from)
	to := m.ReplyToMessage
	if err != nil || !allowed || m.Text == "" {
		return err
	}
	// In a topic, what replies to nothing replies to the notice that the topic was created, which may be the bot's.
	if to == nil || to.From == nil || to.ForumTopicCreated != nil || strconv.FormatInt(to.From.ID, 10) != u.me {
		return u.said(ctx, tx, from, m)
	}
	if err := u.find(ctx, tx, &from, to.ID); err != nil {
		return err
	}
	if from.Channel != "" && from.Thread == "" { // to a list, or to an answer: about whom, the text has to say
		return u.said(ctx, tx, from, m)
	}
	return u.opts.Applier.Reply(ctx, tx, Reply{From: from, Text: m.Text})
}

// topicOf is the topic of a message. Replies in groups without topics have a thread, too, which is none.
func topicOf(m *models.Message) int {
	switch {
	case m.IsTopicMessage:
		return m.MessageThreadID
	case m.Chat.IsForum:
		return generalTopic
	}
	return 0
}

// said handles a text that replies to no message about one thing. In a group only commands and replies are for us: members
// write to each other there. A command that names a bot is assumed to be ours, since Telegram sends a bot those of others only if it
// is an administrator.
func (u *Updates) said(ctx context.Context, tx *sql.Tx, from From, m *models.Message) error {
	s := Said{From: from, Text: strings.TrimSpace(m.Text)}
	if word, isCommand := strings.CutPrefix(s.Text, "/"); isCommand {
		word, rest, _ := strings.Cut(strings.ReplaceAll(word, "\n", " "), " ")
		word, _, _ = strings.Cut(word, "@")
		s.Command, s.Text = strings.ToLower(word), strings.TrimSpace(rest)
	}
	person := m.From != nil && !m.From.IsBot && m.SenderChat == nil
	if u.opts.Own == "" || !person || s.Command == "" && !from.Private() && from.Channel == "" {
		return nil
	}
	s.Channel = u.opts.Own
	return u.opts.Applier.Say(ctx, tx, s)
}

// allowed reports whether a user may ask for something. A refusal is logged, which shows users the number of their chat.
func (u *Updates) allowed(ctx context.Context, tx *sql.Tx, from From) (bool, error) {
	chat := slices.Contains(u.opts.Chats, from.Chat)
	if !chat {
		var before string
		err := tx.QueryRowContext(ctx, `SELECT moved_from FROM outbox_channel WHERE moved_to = ? LIMIT 1`, strconv.FormatInt(from.Chat, 10)).Scan(&before)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return false, err
		}
		old, err := strconv.ParseInt(before, 10, 64)
		chat = err == nil && slices.Contains(u.opts.Chats, old)
	}
	if chat && (len(u.opts.Users) == 0 || from.Listed) {
		return true, nil
	}
	u.opts.Logger.Warn("message to the bot from a user who is not allowed", slog.Int64("chat", from.Chat), slog.Int64("user", from.User), slog.String("name", from.Name))
	return false, nil
}

// find looks up the message that was answered.
func (u *Updates) find(ctx context.Context, tx *sql.Tx, from *From, message int) error {
	from.Ref = messageRef(strconv.FormatInt(from.Chat, 10), message)
	for _, c := range u.opts.Channels {
		thread, known, err := ThreadOf(ctx, tx, c, from.Ref)
		if err != nil {
			return err
		}
		if known {
			from.Channel, from.Thread = c, thread
			return nil
		}
	}
	return nil
}

func nameOf(u *models.User) string {
	if u.Username != "" {
		return "@" + u.Username
	}
	return u.FirstName
}

func (u *Updates) putAnswer(ctx context.Context, tx *sql.Tx, call, text string) error {
	text = Text{Body: Redact(text)}.Fit(answerLimit).Body
	_, err := tx.ExecContext(ctx, `INSERT INTO telegram_answer (bot, call, text) VALUES (?, ?, ?)`, u.me, call, text)
	return err
}

// sendAnswers answers the handled presses. One that Telegram rejects as too old counts as answered.
func (u *Updates) sendAnswers(ctx context.Context) error {
	for {
		var id int64
		var call, text string
		err := u.opts.DB.QueryRowContext(ctx, `SELECT id, call, text FROM telegram_answer WHERE bot = ? ORDER BY id LIMIT 1`, u.me).Scan(&id, &call, &text)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("telegram: %w", err)
		}
		if err := u.answer(ctx, call, text); err != nil {
			_, err2 := u.opts.DB.ExecContext(ctx, `UPDATE telegram_answer SET tries = tries + 1 WHERE id = ?`, id)
			_, err3 := u.opts.DB.ExecContext(ctx, `DELETE FROM telegram_answer WHERE tries >= ?`, answerTries)
			return errors.Join(err, err2, err3)
		}
		if _, err := u.opts.DB.ExecContext(ctx, `DELETE FROM telegram_answer WHERE id = ?`, id); err != nil {
			return fmt.Errorf("telegram: %w", err)
		}
	}
}

func (u *Updates) answer(ctx context.Context, call, text string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := u.api.AnswerCallbackQuery(ctx, &bot.AnswerCallbackQueryParams{CallbackQueryID: call, Text: text})
	failure := sendError(err)
	switch {
	case failure == nil || failure.Failure == Rejected:
		return nil
	case failure.Failure == Limited:
		return &pollError{429, "too many answers", int(failure.RetryAfter.Seconds())}
	}
	return fmt.Errorf("telegram: %w", failure)
}

package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"
)

// MessageLimit is how long a Telegram message may be, in UTF-16 code units.
const MessageLimit = 4096

// requestTime is how long one request to the Bot API may take.
const requestTime = 20 * time.Second

// TelegramOptions say who speaks and who listens.
type TelegramOptions struct {
	Token  string // TELEGRAM_BOT_TOKEN (S4)
	ChatID string // TELEGRAM_CHAT_ID (S4): a number, or @channel
	APIURL string // of the Bot API server; "": Telegram's own
	Client *http.Client
}

// Telegram sends messages to one chat. It is send-only: whoever polls the same bot for updates is not disturbed.
type Telegram struct {
	bot *bot.Bot
}

// NewTelegram returns a sender. It makes no request.
func NewTelegram(o TelegramOptions) (*Telegram, error) {
	if strings.TrimSpace(o.ChatID) == "" {
		return nil, errors.New("telegram: the chat is missing")
	}
	client := o.Client
	if client == nil {
		client = &http.Client{Timeout: requestTime}
	}
	options := []bot.Option{bot.WithSkipGetMe(), bot.WithHTTPClient(requestTime, client)}
	if o.APIURL != "" {
		options = append(options, bot.WithServerURL(strings.TrimRight(o.APIURL, "/")))
	}
	b, err := bot.New(o.Token, options...)
	if err != nil {
		return nil, fmt.Errorf("telegram: %w", err)
	}
	return &Telegram{bot: b}, nil
}

// Check asks who we are (S4 getMe): the health check.
func (t *Telegram) Check(ctx context.Context) (name string, err error) {
	me, err := t.bot.GetMe(ctx)
	if err != nil {
		return "", sendError(err)
	}
	return me.Username, nil
}

// Send sends one message to the chat and returns its number there. The text fits [MessageLimit]. An error is a
// [SendError].
func (t *Telegram) Send(ctx context.Context, chat string, text Text) (id int, err error) {
	m, err := t.bot.SendMessage(ctx, &bot.SendMessageParams{ChatID: chat, Text: text.Body, Entities: entities(text)})
	if err != nil {
		return 0, sendError(err)
	}
	return m.ID, nil
}

// entities are the bold parts as Telegram counts: in UTF-16 code units.
func entities(t Text) []models.MessageEntity {
	var list []models.MessageEntity
	for _, b := range t.Bold {
		list = append(list, models.MessageEntity{
			Type: models.MessageEntityTypeBold, Offset: units(t.Body[:b.Start]), Length: units(t.Body[b.Start:b.End]),
		})
	}
	return list
}

// Failure is what a message that was not sent means for the next try.
type Failure string

// The kinds of failure.
const (
	// Unreachable: no answer, or the server's own failure (5xx). Try again after a while.
	Unreachable Failure = "unreachable"
	// Limited: too many messages (429). Try again after SendError.RetryAfter.
	Limited Failure = "limited"
	// Refused: the token is dead, or the bot may not write to this chat (401, 403, 404). No message will get through
	// until a human has done something.
	Refused Failure = "refused"
	// Rejected: this message is wrong (400), others may be right.
	Rejected Failure = "rejected"
	// Moved: the chat has another number now, SendError.Chat.
	Moved Failure = "moved"
)

// SendError says why a message was not sent.
type SendError struct {
	Failure    Failure
	RetryAfter time.Duration // of [Limited]
	Chat       string        // of [Moved]
	// Unsure says that the message may have arrived although nobody said so.
	Unsure bool
	Err    error
}

// Error names the failure; the token is not in it.
func (e *SendError) Error() string { return fmt.Sprintf("telegram: %s: %v", e.Failure, e.Err) }

// Unwrap returns what the library said.
func (e *SendError) Unwrap() error { return e.Err }

func sendError(err error) *SendError {
	e := &SendError{Err: err}
	var limited *bot.TooManyRequestsError
	var moved *bot.MigrateError
	switch {
	case errors.As(err, &limited):
		e.Failure, e.RetryAfter = Limited, time.Duration(limited.RetryAfter)*time.Second
	case errors.As(err, &moved):
		e.Failure, e.Chat = Moved, fmt.Sprint(moved.MigrateToChatID)
	case errors.Is(err, bot.ErrorUnauthorized), errors.Is(err, bot.ErrorForbidden), errors.Is(err, bot.ErrorNotFound):
		e.Failure = Refused
	case errors.Is(err, bot.ErrorBadRequest) && strings.Contains(strings.ToLower(err.Error()), "chat"):
		e.Failure = Refused // "chat not found": the setting is wrong, not the message
	case errors.Is(err, bot.ErrorBadRequest):
		e.Failure = Rejected
	default:
		e.Failure, e.Unsure = Unreachable, arrived(err)
	}
	return e
}

// arrived reports whether the request may have reached the server although its answer did not reach us. A connection
// that was never made and an answer that says no are sure; everything else is not.
func arrived(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var syntax *json.SyntaxError // what came was no answer of the Bot API: a proxy's error page
	return !errors.As(err, &syntax) && !strings.Contains(err.Error(), "error response from telegram")
}

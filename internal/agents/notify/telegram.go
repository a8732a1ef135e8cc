package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"
)

// requestTime is how long one request to the Bot API may take.
const requestTime = 20 * time.Second

// TelegramOptions describe the bot and the chat.
type TelegramOptions struct {
	Token  string // TELEGRAM_BOT_TOKEN (PIV-16)
	ChatID string // TELEGRAM_CHAT_ID (PIV-16): a number, or @channel
	Topic  int    // of a group with topics: where messages go; 0 or 1: its topic General
	APIURL string // of the Bot API server; "": Telegram's own
	// Client makes the requests; its time limit is what one may take. nil: one of 20 s.
	Client *http.Client
}

// Telegram is the [Channel] of one chat: messages with buttons, which can be edited. It does not listen, so another
// poller of the bot is not disturbed; see [Updates].
type Telegram struct {
	bot   *bot.Bot
	topic int

	mu   sync.Mutex
	chat string
}

// NewTelegram returns the channel of a chat. It makes no request.
func NewTelegram(o TelegramOptions) (*Telegram, error) {
	chat := strings.TrimSpace(o.ChatID)
	if chat == "" {
		return nil, errors.New("telegram: the chat is missing")
	}
	if _, err := strconv.ParseInt(chat, 10, 64); err != nil && !strings.HasPrefix(chat, "@") {
		return nil, fmt.Errorf("telegram: the chat %q is neither a number nor @name", chat)
	}
	b, err := newBot(o.Token, o.APIURL, o.Client)
	if err != nil {
		return nil, err
	}
	return &Telegram{bot: b, topic: o.Topic, chat: chat}, nil
}

// newBot returns the library's client. It makes no request.
func newBot(token, apiURL string, client *http.Client) (*bot.Bot, error) {
	if client == nil {
		client = &http.Client{Timeout: requestTime}
	}
	options := []bot.Option{bot.WithSkipGetMe(), bot.WithHTTPClient(requestTime, tokenless{client}), bot.WithErrorsHandler(func(error) {})}
	if apiURL != "" {
		options = append(options, bot.WithServerURL(strings.TrimRight(apiURL, "/")))
	}
	b, err := bot.New(strings.TrimSpace(token), options...)
	if err != nil {
		return nil, fmt.Errorf("telegram: %w", err)
	}
	return b, nil
}

// tokenless is a client whose errors do not show the URL, which contains the token. The library removes it, too, but
// while its other goroutine may be reading the error.
type tokenless struct{ client *http.Client }

// Do makes one request.
func (t tokenless) Do(r *http.Request) (*http.Response, error) {
	answer, err := t.client.Do(r)
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	return answer, err
}

// Check asks for the bot's name (PIV-12, getMe): the health check.
func (t *Telegram) Check(ctx context.Context) (name string, err error) {
	me, err := t.bot.GetMe(ctx)
	if err != nil {
		return "", sendError(err)
	}
	return me.Username, nil
}

// Limit is Telegram's.
func (t *Telegram) Limit() int { return MessageLimit }

// Pace is Telegram's: a message a second to one chat, and 20 a minute to a group, in all of its topics together.
func (t *Telegram) Pace() Pace {
	chat := t.Address()
	p := Pace{Gap: messagePause, Of: "telegram " + chat}
	if strings.HasPrefix(chat, "-") || strings.HasPrefix(chat, "@") {
		p.PerMinute = 20
	}
	return p
}

// Address is the chat.
func (t *Telegram) Address() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.chat
}

// MoveTo is for a group that has become a supergroup: it has another number then.
func (t *Telegram) MoveTo(chat string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.chat = chat
}

// generalTopic is the number of the topic that every group with topics has. Messages to it name none.
const generalTopic = 1

// Send sends one message. Its id is <chat>/<number>: a chat that has moved has new numbers.
func (t *Telegram) Send(ctx context.Context, m Message) (ref string, err error) {
	chat, topic := t.Address(), cmp.Or(m.Topic, t.topic)
	if topic == generalTopic {
		topic = 0
	}
	sent, err := t.bot.SendMessage(ctx, &bot.SendMessageParams{
		ChatID: chat, MessageThreadID: topic, Text: m.Text.Body, Entities: entities(m.Text), ReplyMarkup: keyboard(m.Buttons),
		LinkPreviewOptions: noPreview,
	})
	if err == nil {
		return messageRef(chat, sent.ID), nil
	}
	failure := sendError(err)
	if failure.Failure == Rejected && m.Topic == 0 && says(err, "message thread not found", "topic_closed", "topic_deleted") {
		failure.Failure = Refused // the channel's own topic is gone: the setting is wrong, not the message
	}
	return "", failure
}

// Update changes a message. "Not modified" is a success.
func (t *Telegram) Update(ctx context.Context, ref string, m Message) error {
	chat, id, err := parseRef(ref)
	if err != nil {
		return &SendError{Failure: Gone, Err: err}
	}
	_, err = t.bot.EditMessageText(ctx, &bot.EditMessageTextParams{
		ChatID: chat, MessageID: id, Text: m.Text.Body, Entities: entities(m.Text), ReplyMarkup: keyboard(m.Buttons),
		LinkPreviewOptions: noPreview,
	})
	switch failure := sendError(err); {
	case err == nil || says(err, "message is not modified"):
		return nil
	case says(err, "message to edit not found", "message can't be edited", "message_id_invalid"), failure.Failure == Moved:
		failure.Failure, failure.Address = Gone, "" // a group's messages stay behind when it moves
		return failure
	default:
		return failure
	}
}

// noPreview keeps Telegram from fetching links in an agent's log.
var noPreview = &models.LinkPreviewOptions{IsDisabled: bot.True()}

func messageRef(chat string, id int) string { return chat + "/" + strconv.Itoa(id) }

func parseRef(ref string) (chat string, id int, err error) {
	chat, number, _ := strings.Cut(ref, "/")
	if id, err = strconv.Atoi(number); err != nil || chat == "" {
		return "", 0, fmt.Errorf("%q is not a message", ref)
	}
	return chat, id, nil
}

// keyboard is nil without buttons: a change then takes away those that are there.
func keyboard(rows [][]Button) models.ReplyMarkup {
	var k models.InlineKeyboardMarkup
	for _, row := range rows {
		var line []models.InlineKeyboardButton
		for _, b := range row {
			line = append(line, models.InlineKeyboardButton{Text: b.Label, CallbackData: b.Callback.String()})
		}
		if len(line) > 0 {
			k.InlineKeyboard = append(k.InlineKeyboard, line)
		}
	}
	if len(k.InlineKeyboard) == 0 {
		return nil
	}
	return &k
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

// sendError classifies an error of the Bot API. nil is nil.
func sendError(err error) *SendError {
	e := &SendError{Err: err}
	var limited *bot.TooManyRequestsError
	var moved *bot.MigrateError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limited):
		e.Failure, e.RetryAfter = Limited, time.Duration(limited.RetryAfter)*time.Second
	case errors.As(err, &moved):
		e.Failure, e.Address = Moved, fmt.Sprint(moved.MigrateToChatID)
	case errors.Is(err, bot.ErrorUnauthorized), errors.Is(err, bot.ErrorForbidden), errors.Is(err, bot.ErrorNotFound):
		e.Failure = Refused
	case errors.Is(err, bot.ErrorBadRequest) && says(err, "chat not found", "chat_id", "need administrator rights", "have no rights"):
		e.Failure = Refused // the setting is wrong, not the message
	case errors.Is(err, bot.ErrorBadRequest):
		e.Failure = Rejected
	default:
		e.Failure, e.Unsure = Unreachable, arrived(err)
	}
	return e
}

// says reports whether an error of the Bot API contains one of the lower-case words: it has no codes.
func says(err error, words ...string) bool {
	return err != nil && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(err.Error()), w) })
}

// arrived reports whether the request may have reached the server without a response. It has not if there was no
// connection, or an error response.
func arrived(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var syntax *json.SyntaxError // what came was not an answer of the Bot API: a proxy's error page
	return !errors.As(err, &syntax) && !says(err, "error response from telegram")
}

// telegramOptions reads the URL of a chat, telegram://<token>@telegram?chats=<chat>, or <chat>:<topic> as Shoutrrr has it.
// Any other host than "telegram" is a Bot API server of one's own; disabletls=yes speaks HTTP to it.
func telegramOptions(u *url.URL) (TelegramOptions, error) {
	o := TelegramOptions{Token: u.User.Username(), ChatID: u.Query().Get("chats")}
	if rest, ok := u.User.Password(); ok {
		o.Token += ":" + rest
	}
	if strings.Contains(o.ChatID, ",") {
		return o, errors.New("telegram: one chat for each channel")
	}
	if chat, topic, ok := strings.Cut(o.ChatID, ":"); ok {
		n, err := strconv.Atoi(topic)
		if err != nil || n < 1 {
			return o, errors.New("telegram: behind chats=<chat>: belongs the number of a topic")
		}
		o.ChatID, o.Topic = chat, n
	}
	if u.Host != "telegram" && u.Host != "" {
		scheme := "https"
		if u.Query().Get("disabletls") == "yes" {
			scheme = "http"
		}
		o.APIURL = scheme + "://" + u.Host + strings.TrimRight(u.Path, "/")
	}
	return o, nil
}

package notify

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"
	"github.com/gofrs/flock"
)

// Times of listening.
const (
	pollTime     = 50 * time.Second // how long the server keeps a poll open when nothing happens
	answerTime   = 10 * time.Second // how long a request may take that is answered at once
	lockRetry    = 30 * time.Second // while another process of ours listens to the bot
	conflictWait = 10 * time.Minute // while another process listens: each try of ours ends a poll of theirs
	hastyBelow   = time.Second      // a server that answers an empty poll sooner knows no long polls, or a proxy cuts them short
	lastPause    = time.Minute      // between two tries of a server that cannot be reached, doubled from 1 s
)

// UpdatesOptions say which chats and users are listened to.
type UpdatesOptions struct {
	Token  string // of the bot
	APIURL string // of the Bot API server; "": Telegram's own
	Client *http.Client
	// DB has run [Schema].
	DB *sql.DB
	// Channels are the outbox's channels that speak with this bot: threads are looked for there.
	Channels []string
	// Own is the channel for answers to texts that reply to none of its messages. "": such texts are ignored.
	Own string
	// Chats may press and reply, also under a new number. Others are refused.
	Chats []int64
	// Users of these chats may. nil: all of them.
	Users []int64
	// LockDir is where processes of ours see which bots are listened to; all homes of a user share it.
	LockDir string
	// Applier does what was asked.
	Applier Applier
	// Changed is called after each applied update, outside of its transaction, and when [Updates.Hears] changes. May be nil.
	Changed func()
	// Logger gets log messages. May be nil.
	Logger *slog.Logger
}

// Applier does what humans ask for. Its methods run within the transaction that marks the update as handled: their
// changes of the database happen once, or not at all. An error rolls back, and the update comes again, five times at
// most. They must do nothing else, and are not called concurrently.
type Applier interface {
	// Press returns the answer to the human, up to 200 characters, even if it comes too late or has no effect. "": none.
	Press(ctx context.Context, tx *sql.Tx, p Press) (answer string, err error)
	Reply(ctx context.Context, tx *sql.Tx, r Reply) error
	Say(ctx context.Context, tx *sql.Tx, s Said) error
}

// From says who answered which message.
type From struct {
	Update  int64  // its number: every later one of this bot has a higher one, but for weeks of silence
	Chat    int64  // where
	Topic   int    // where in it, for [Message.Topic]; 0: it has no topics
	User    int64  // who
	Name    string // the same to read: @name, or the first name
	Listed  bool   // the user is one of UpdatesOptions.Users; false also when there are none
	Channel string // the outbox's channel that sent it; "": not known any more
	Thread  string // its thread; "": none, or it is a list of several, or not known any more
	Ref     string // the message
}

// nameLimit is how much of a user's name is shown, in UTF-16 code units. The rest of the text needs room.
const nameLimit = 41

// Who names the user for people and for records. First names can be chosen freely, so the number is included.
func (f From) Who() string {
	return fmt.Sprintf("%s (%d)", Text{Body: f.Name}.Fit(nameLimit).Body, f.User)
}

// Private reports whether the chat has only one user besides the bot: groups and channels have negative numbers.
func (f From) Private() bool { return f.Chat > 0 }

// Press is a button that a human has pressed. That the nonce is right the applier has to see.
type Press struct {
	From
	Callback Callback
}

// Reply is a text that a human wrote as a reply to a message of ours.
type Reply struct {
	From
	Text string
}

// Said is a text to the bot that replies to no message of ours, or to one that is about no thread or about several.
type Said struct {
	From           // Channel is UpdatesOptions.Own, without a thread
	Command string // such as status, in lower case; "": it is none. Behind it, Text is what follows
	Text    string
}

// Updates receives humans' answers to a Telegram bot. Only one process can listen to one bot; while another does, no
// answers are received, and sending continues.
type Updates struct {
	opts   UpdatesOptions
	api    *bot.Bot
	me     string // the bot's number, which is the first part of its token
	url    string // of getUpdates
	lock   *flock.Flock
	hears  atomic.Bool
	failed map[int64]int // how often an update could not be applied
	told   string        // what was logged last, to log it once
}

// NewUpdates returns a listener. It makes no request.
func NewUpdates(o UpdatesOptions) (*Updates, error) {
	if o.DB == nil || o.Applier == nil || o.LockDir == "" {
		return nil, errors.New("telegram: a database, an applier and a directory for locks are required")
	}
	o.Token = strings.TrimSpace(o.Token)
	if o.Client == nil {
		o.Client = &http.Client{} // each request has its own time
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	api, err := newBot(o.Token, o.APIURL, o.Client)
	if err != nil {
		return nil, err
	}
	me, _, _ := strings.Cut(o.Token, ":")
	if _, err := strconv.ParseInt(me, 10, 64); err != nil {
		return nil, errors.New("telegram: a token is <number>:<letters>")
	}
	if o.APIURL == "" {
		o.APIURL = "https://api.telegram.org"
	}
	sum := sha256.Sum256([]byte(o.Token))
	return &Updates{
		opts: o, api: api, me: me, url: strings.TrimRight(o.APIURL, "/") + "/bot" + o.Token + "/getUpdates",
		lock:   flock.New(filepath.Join(o.LockDir, "telegram-"+hex.EncodeToString(sum[:8])+".lock")),
		failed: map[int64]int{},
	}, nil
}

// Hears reports whether answers are received now.
func (u *Updates) Hears() bool { return u.hears.Load() }

func (u *Updates) setHears(hears bool) {
	if u.hears.Swap(hears) != hears && u.opts.Changed != nil {
		u.opts.Changed()
	}
}

// Run listens until ctx ends. Errors are logged once and retried.
func (u *Updates) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if pause := u.listen(ctx); !wait(ctx, nil, time.Now().Add(pause)) {
			return
		}
	}
}

// listen polls as long as that is ours to do, and returns after how long to try again.
func (u *Updates) listen(ctx context.Context) (pause time.Duration) {
	if err := os.MkdirAll(u.opts.LockDir, 0o700); err != nil {
		u.tell(err)
		return lockRetry
	}
	locked, err := u.lock.TryLock()
	if err == nil && !locked {
		err = errors.New("another process listens to this bot")
	}
	if err != nil {
		u.tell(err)
		return lockRetry
	}
	defer func() {
		u.setHears(false)
		_ = u.lock.Unlock()
	}()
	for tries := 0; ctx.Err() == nil; {
		err := u.step(ctx)
		if ctx.Err() != nil {
			return 0
		}
		u.setHears(err == nil)
		u.tell(err)
		if err == nil {
			tries = 0
			continue
		}
		pause, leave := afterPoll(err, tries)
		if leave {
			return pause
		}
		if tries++; !wait(ctx, nil, time.Now().Add(pause)) {
			return 0
		}
	}
	return 0
}

// afterPoll handles a failure of listening: how long to wait, and whether to leave the bot to others meanwhile.
func afterPoll(err error, tries int) (pause time.Duration, leave bool) {
	var answer *pollError
	if errors.As(err, &answer) {
		switch answer.Code {
		case http.StatusConflict:
			return conflictWait, true
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
			return refusedRetry, true
		case http.StatusTooManyRequests:
			return max(time.Duration(answer.RetryAfter)*time.Second, time.Second), false
		}
	}
	return min(time.Second<<min(tries, 10), lastPause), false
}

// tell logs an error unless it was the last, and its end.
func (u *Updates) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == u.told:
	case text != "":
		u.opts.Logger.Warn("answers from Telegram are not heard; messages are sent all the same", slog.String("bot", u.me), slog.Any("error", err))
	default:
		u.opts.Logger.Info("answers from Telegram are heard", slog.String("bot", u.me))
	}
	u.told = text
}

// errRepeated says that the server sends only confirmed updates.
var errRepeated = errors.New("the server repeats what is confirmed")

// step is one poll with its updates. The offset of the next poll confirms them to the server, so it is only advanced to
// what was committed.
func (u *Updates) step(ctx context.Context) error {
	if err := u.sendAnswers(ctx); err != nil {
		return err
	}
	next, err := u.offset(ctx)
	if err != nil {
		return err
	}
	begun, patient := time.Now(), u.Hears()
	list, err := u.poll(ctx, next)
	if err != nil {
		return err
	}
	if len(list) == 0 && patient && time.Since(begun) < hastyBelow {
		wait(ctx, nil, begun.Add(hastyBelow))
	}
	fresh := len(list) == 0
	for _, raw := range list {
		applied, err := u.apply(ctx, raw, next)
		if err != nil {
			return errors.Join(err, u.sendAnswers(ctx))
		}
		fresh = fresh || applied
	}
	if !fresh {
		return errRepeated
	}
	return nil
}

func (u *Updates) offset(ctx context.Context) (next int64, err error) {
	err = u.opts.DB.QueryRowContext(ctx, `SELECT next FROM telegram_offset WHERE bot = ?`, u.me).Scan(&next)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("telegram: %w", err)
	}
	return next, nil
}

// pollError is an error response to a poll.
type pollError struct {
	Code        int
	Description string
	RetryAfter  int // seconds
}

// Error is what the server said.
func (e *pollError) Error() string { return fmt.Sprintf("telegram: %d %s", e.Code, e.Description) }

// pollLimit is how many bytes the answer to a poll may have: a hundred updates are far below.
const pollLimit = 16 << 20

// poll asks for updates from next on, and waits for the first; not before it is known that we may. The library can ask only in a loop of its own, which
// confirms an update before it was dealt with; so the request is made here.
func (u *Updates) poll(ctx context.Context, next int64) ([]json.RawMessage, error) {
	patience := 0
	if u.Hears() {
		patience = int(pollTime / time.Second)
	}
	body, err := json.Marshal(map[string]any{
		"offset": next, "timeout": patience, "limit": 100,
		"allowed_updates": []string{models.AllowedUpdateMessage, models.AllowedUpdateCallbackQuery},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pollTime+answerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("telegram: %w", ErrURL)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := tokenless{u.opts.Client}.Do(request)
	if err != nil {
		return nil, fmt.Errorf("telegram: %w", err)
	}
	defer response.Body.Close()
	var answer struct {
		OK          bool              `json:"ok"`
		Result      []json.RawMessage `json:"result"`
		Code        int               `json:"error_code"`
		Description string            `json:"description"`
		Parameters  struct {
			RetryAfter int `json:"retry_after"`
		} `json:"parameters"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, pollLimit)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("telegram: %s: %w", response.Status, err)
	}
	if !answer.OK {
		if answer.Code == 0 {
			answer.Code = response.StatusCode
		}
		return nil, &pollError{answer.Code, answer.Description, answer.Parameters.RetryAfter}
	}
	return answer.Result, nil
}

package monitor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// SQLite's codes for a database that cannot be written (sqlite.org/rescode.html).
const (
	sqliteReadOnly = 8
	sqliteIOErr    = 10
	sqliteFull     = 13
	sqliteCantOpen = 14
)

// unwritable reports whether an error says that the home cannot be written, mostly because its disk is full. Then no
// action is possible, since actions must be recorded first.
func unwritable(err error) bool {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return slices.Contains([]int{sqliteReadOnly, sqliteIOErr, sqliteFull, sqliteCantOpen}, e.Code()&0xff)
	}
	return errors.Is(err, syscall.ENOSPC)
}

// unkept is the state of notifications while the home cannot be written. Only the loop changes it.
type unkept struct {
	since  time.Time       // zero: it can be written
	agents map[string]bool // agents in need of an action that were named in the message
	owed   owed            // the message about it
}

// owed is a message that is sent past the outbox, and the channels that still need it.
type owed struct {
	channels []string
	text     notify.Text
	tries    int
	next     time.Duration // before that it is not tried again, by the clock of the machine while it is awake
}

// due reports whether a channel still needs the message, and may be tried now.
func (o *owed) due(now time.Duration) bool {
	return len(o.channels) > 0 && (o.tries == 0 || now >= o.next)
}

// Tries of one such message.
const (
	pastTime  = 10 * time.Second // how long one may take
	pastPause = 10 * time.Second // after the first; each further pause is twice as long
	pastTries = 8                // in some twenty minutes
)

// send tries the channels that still need the message.
func (o *owed) send(ctx context.Context, channels map[string]notify.Channel, now time.Duration, log *slog.Logger) {
	var left []string
	for _, name := range o.channels {
		channel, known := channels[name]
		if !known {
			continue
		}
		sending, cancel := context.WithTimeout(ctx, pastTime)
		_, err := channel.Send(sending, notify.Message{Key: "home/" + rand.Text(), Text: o.text})
		cancel()
		if err == nil {
			continue
		}
		log.Warn("channel not available: its messages are not sent", slog.String("channel", name), slog.Any("error", err))
		if !o.over(err) {
			left = append(left, name)
		}
	}
	o.channels, o.next = left, now+pastPause<<o.tries
	o.tries++
}

// over reports whether a failed try is a channel's last. A message that may have arrived is sent once more.
func (o *owed) over(err error) bool {
	failure := &notify.SendError{Failure: notify.Unreachable, Unsure: true} // for any other error
	_ = errors.As(err, &failure)
	return failure.Failure == notify.Refused || failure.Failure == notify.Rejected || failure.Unsure && o.tries > 0 || o.tries+1 >= pastTries
}

// mindDisk notifies people directly by the channels, without the outbox, when the home cannot be written and when it can
// be again. The outbox's senders are stopped meanwhile: one goroutine uses a channel at a time.
func (m *Monitor) mindDisk(ctx context.Context, err error) {
	u := &m.unkept
	switch broken := unwritable(err); {
	case broken:
		var news []string
		for _, a := range m.undone {
			if !u.agents[a] {
				news = append(news, a)
			}
		}
		if !u.since.IsZero() && len(news) == 0 {
			break
		}
		if u.since.IsZero() {
			*u = unkept{since: m.last.Wall, agents: map[string]bool{}}
		}
		for _, a := range news {
			u.agents[a] = true
		}
		u.owe(m.notifiers.channels, m.opts.redact(diskText(m.opts.Home, err, news)))
	case !u.since.IsZero():
		*u = unkept{}
		m.opts.Logger.Info("the home can be written again")
		u.owe(m.notifiers.channels, "🟢 outlive monitor works again\n\n"+m.opts.Home+" can be written again.")
	}
	if !u.owed.due(m.last.Mono) {
		return
	}
	running := m.notifiers.stop != nil
	m.closeNotifiers()
	u.owed.send(ctx, m.notifiers.channels, m.last.Mono, m.opts.Logger)
	if running {
		m.carry(ctx)
	}
}

func (u *unkept) owe(channels map[string]notify.Channel, text string) {
	u.owed = owed{channels: slices.Sorted(maps.Keys(channels)), text: notify.Text{Body: text}}
}

// diskText says what is not done, and why.
func diskText(home string, err error, agents []string) string {
	text := fmt.Sprintf("🔴 outlive monitor cannot work\n\n%s cannot be written: nothing is restarted, and no other message is sent, until it can.", home)
	if host, hostErr := os.Hostname(); hostErr == nil {
		text += "\nHost: " + host
	}
	if len(agents) > 0 {
		text += "\nNot done: something for " + strings.Join(agents, ", ")
	}
	return text + "\nReason: " + err.Error()
}

// Await opens a home as [Open] does, but waits until ctx ends for a home that cannot be written. It reports that once,
// in the log and by opts.Channels.
func Await(ctx context.Context, opts Options) (*Monitor, error) {
	opts = opts.withDefaults()
	var u unkept
	for first := true; ; first = false {
		m, err := Open(ctx, opts)
		if err == nil || !unwritable(err) {
			return m, err
		}
		if first {
			opts.Logger.Error("the home cannot be written; nothing is done until it can", slog.Any("error", err))
			u.owe(opts.Channels, opts.redact(diskText(opts.Home, err, nil)))
		}
		if now := opts.clock().Mono; u.owed.due(now) {
			u.owed.send(ctx, opts.Channels, now, opts.Logger)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(min(opts.Interval, lookEvery)):
		}
	}
}

package monitor

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// notifiers are the channels, with the goroutines that send messages and receive answers.
type notifiers struct {
	from   *registry.Registry // that the channels are of; nil: none are open
	outbox *notify.Outbox
	// channels are used by the outbox, also those that could not be opened; other users stop the outbox first.
	channels map[string]notify.Channel
	stop     context.CancelFunc // stops the goroutines; nil: none run
	done     sync.WaitGroup

	listeners []Listener
	heard     time.Time // when one of them last received answers, or was started
}

// openNotifiers opens the channels that a registry names, besides PIV's. Whatever has changed in the registry, messages that
// have failed are tried again at once.
func (m *Monitor) openNotifiers(ctx context.Context, p *snapshot) error {
	n := &m.notifiers
	before := n.outbox != nil
	same := func(a, b registry.Channel) bool {
		a.Pos = b.Pos
		return a == b
	}
	switch {
	case before && p.Registry == n.from:
		return nil
	case before && slices.EqualFunc(p.Registry.Channels, n.from.Channels, same):
		n.from = p.Registry
		return n.outbox.Retry(ctx)
	}
	channels := maps.Clone(m.opts.Channels)
	if channels == nil {
		channels = map[string]notify.Channel{}
	}
	var errs []error
	if m.opts.OpenChannel != nil {
		for _, c := range p.Registry.Channels {
			opened, err := m.opts.OpenChannel(c)
			if err != nil {
				errs = append(errs, fmt.Errorf("channel %s: %w", c.Name, err))
				opened = notify.Unopened{Err: err}
			}
			channels[c.Name] = opened
		}
	}
	running := n.stop != nil
	m.closeNotifiers() // before another outbox treats their messages as unfinished
	outbox, err := notify.NewOutbox(ctx, m.store.db, channels, m.opts.Logger)
	if err == nil {
		if before {
			outbox.KeepPace(n.outbox)
			errs = append(errs, outbox.Retry(ctx))
		}
		n.from, n.outbox, n.channels = p.Registry, outbox, channels
	}
	errs = append(errs, err)
	if running {
		m.carry(ctx)
	}
	return errors.Join(errs...)
}

// carry starts the outbox's senders and the listeners.
func (m *Monitor) carry(ctx context.Context) {
	ctx, m.notifiers.stop = context.WithCancel(ctx)
	outbox := m.notifiers.outbox
	m.notifiers.done.Go(func() { outbox.Run(ctx) })
	if m.opts.Listen == nil {
		return
	}
	updates, err := m.opts.Listen(m.store.db, outbox.Channels(), &answers{m})
	if err != nil {
		m.opts.Logger.Warn("answers from the phone are not heard", slog.Any("error", err))
		return
	}
	m.notifiers.listeners, m.notifiers.heard = updates, time.Time{}
	for _, u := range updates {
		m.notifiers.done.Go(func() { u.Run(ctx) })
	}
}

// unheardFor is how long listening may fail until messages lose their buttons: one poll may fail.
const unheardFor = 30 * time.Second

// unheard reports whether button presses are not received. A monitor without listeners, because it looks only once,
// leaves them to the next one: Telegram keeps presses for a day.
func (m *Monitor) unheard(now time.Time) bool {
	hears := slices.ContainsFunc(m.notifiers.listeners, Listener.Hears)
	if hears || m.notifiers.heard.IsZero() {
		m.notifiers.heard = now
	}
	return len(m.notifiers.listeners) > 0 && now.Sub(m.notifiers.heard) > unheardFor
}

// closeNotifiers stops them; a message being sent has three seconds.
func (m *Monitor) closeNotifiers() {
	if m.notifiers.stop != nil {
		m.notifiers.stop()
		m.notifiers.done.Wait()
		m.notifiers.stop, m.notifiers.listeners = nil, nil
	}
}

// put queues a message for its channels. Of a channel that is not declared any more, the incident's next tier
// is informed.
func (m *Monitor) put(ctx context.Context, tx *sql.Tx, channels []string, message notify.Message) error {
	var errs []error
	for _, name := range channels {
		message := message
		if m.opts.Listen == nil || !m.hearsFrom(name) { // presses are not received
			message.Buttons, message.Line.Buttons = nil, nil
		}
		err := m.notifiers.outbox.Put(ctx, tx, name, message)
		if errors.Is(err, notify.ErrNoChannel) {
			m.opts.Logger.Error("channel is not declared any more: its messages are not sent", slog.String("channel", name))
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// hearsFrom reports whether a press on a channel may be heard. The listener is that of the environment's bot alone; what a
// program does with its buttons is not known.
func (m *Monitor) hearsFrom(channel string) bool {
	c, named := m.seen.Load().Registry.Channel(channel)
	return !named || c.Address == ownBot || strings.HasPrefix(c.Address, "exec:")
}

// reply queues what answers a text that a person has written to the bot: in the topic of the question, before other messages.
func (m *Monitor) reply(ctx context.Context, tx *sql.Tx, key, channel string, topic int, message notify.Message) error {
	message.Key, message.Topic, message.Asked = key, topic, true
	return m.put(ctx, tx, []string{channel}, message)
}

// send performs the effects send and edit.
func (m *Monitor) send(ctx context.Context, tx *sql.Tx, i incident.Incident, e incident.Send) error {
	message := e.Message
	if message.Key = "incident/" + e.Key; e.Key == i.ID {
		message.Thread = i.ID
	}
	return m.put(ctx, tx, e.Channels, message)
}

func (m *Monitor) edit(ctx context.Context, tx *sql.Tx, e incident.Edit) error {
	message := e.Message
	message.Key, message.Thread, message.Minor = "incident/"+e.Key+"/"+rand.Text(), e.Key, e.InPlace
	return m.put(ctx, tx, e.Channels, message)
}

// answers handles button presses and replies. It runs beside the loop and shares only the database and the registry
// snapshot with it.
type answers struct{ m *Monitor }

var _ notify.Applier = (*answers)(nil)

// Press implements [notify.Applier].
func (a *answers) Press(ctx context.Context, tx *sql.Tx, p notify.Press) (string, error) {
	i, err := loadIncident(ctx, tx, p.Callback.Incident)
	if err != nil || i.ID == "" {
		return "This is not known any more", err
	}
	if incident.Verb(p.Callback.Verb).Acts() && !a.m.mayDecide(p.From) {
		return notListed, nil
	}
	answers := incident.Verb(p.Callback.Verb) == incident.Allow || incident.Verb(p.Callback.Verb) == incident.Deny
	if answers && p.Callback.Nonce == i.Nonce && i.Facts.Request != "" && !a.m.waits(i.Facts.Request) {
		return "The agent does not wait for this any more", nil
	}
	_, answer, err := a.m.stepIncident(ctx, tx, i, incident.Pressed{
		Verb: incident.Verb(p.Callback.Verb), Nonce: p.Callback.Nonce, By: p.Who(), Next: newNonce(),
	}, a.m.policyNow(i), time.Now())
	return answer, err
}

// notListed is the answer to users without permission.
const notListed = "in a group, only users in TELEGRAM_USER_IDS may do this"

// mayDecide reports whether a user may act on an agent: the owner of a private chat, and in a group the listed users.
func (m *Monitor) mayDecide(from notify.From) bool { return from.Listed || from.Private() }

// waits reports whether a permission request is still open. If it cannot be read, answering it will report the error.
func (m *Monitor) waits(request string) bool {
	open, err := hooks.Requests(hooks.Dir(m.opts.Home))
	return err != nil || slices.ContainsFunc(open, func(q hooks.Request) bool { return q.ID == request })
}

// Reply implements [notify.Applier]: a reply to an incident's message is given to the agent.
func (a *answers) Reply(ctx context.Context, tx *sql.Tx, r notify.Reply) error {
	i, err := loadIncident(ctx, tx, r.Thread)
	if err != nil || i.ID == "" {
		return err
	}
	if !a.m.mayDecide(r.From) {
		a.m.opts.Logger.Warn("a reply was not given to the agent: "+notListed, slog.String("agent", i.Key.Agent), slog.String("by", r.Who()))
		return nil
	}
	_, err = addRequest(ctx, tx, UserRequest{Agent: i.Key.Agent, Verb: verbSay, By: r.Who(), Target: i.ID, Text: r.Text}, time.Now())
	return err
}

func newNonce() string { return rand.Text()[:6] }

// loadIncident is the incident of an id.
func loadIncident(ctx context.Context, tx *sql.Tx, id string) (incident.Incident, error) {
	list, err := query(ctx, tx, `SELECT data FROM trouble WHERE id = ?`, scanIncident, id)
	if len(list) == 0 {
		return incident.Incident{}, err
	}
	return list[0], err
}

// policyNow is the policy of an incident by the last registry snapshot, for other goroutines than the loop.
func (m *Monitor) policyNow(i incident.Incident) incident.Policy {
	in := incidents{m: m, snapshot: m.seen.Load()}
	return in.policyOf(in.agentOf(i))
}

package cli

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// agentsOptions are the options for looking at the agents of a home: the sources and their places.
func agentsOptions(home string) monitor.Options {
	user, err := os.UserHomeDir()
	if err != nil {
		user = ""
	}
	o := monitor.Options{
		Version: version(), Home: home, HomeFlag: homeFlag(home), Registry: os.Getenv("PIV_REGISTRY_PATH"), Log: os.Getenv("PIV_IMPROVEMENT_LOG_PATH"),
		PIDFile: os.Getenv("PIV_SUPERVISOR_PID_PATH"), UserHome: user,
	}
	o.Servers = &keptServers{}
	o.Places = agentcli.DefaultPlaces(user, os.Getenv)
	if program, err := os.Executable(); err == nil {
		o.Wrapper = []string{program, "agent", "run", "--home", home, "--keep"}
	}
	return o
}

// The variables of Telegram. No agent gets them: with the token it could answer its own questions.
const (
	envTelegramToken = "TELEGRAM_BOT_TOKEN"
	envTelegramChat  = "TELEGRAM_CHAT_ID"
	envTelegramAPI   = "TELEGRAM_API_URL"
	envTelegramUsers = "TELEGRAM_USER_IDS"
)

// ownChannel is the channel of these variables.
const ownChannel = "telegram"

var monitorSecrets = []string{envTelegramToken, envTelegramChat, envTelegramAPI, envTelegramUsers}

// telegramSetting is what the environment says of Telegram.
type telegramSetting struct {
	token, chat, api string
	users            []int64 // who may decide; nil: nobody is named
}

func telegramFromEnv() (telegramSetting, error) {
	t := telegramSetting{token: os.Getenv(envTelegramToken), chat: os.Getenv(envTelegramChat), api: os.Getenv(envTelegramAPI)}
	for text := range strings.FieldsFuncSeq(os.Getenv(envTelegramUsers), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			return t, fmt.Errorf("%s: %q is not the number of a Telegram user; write numbers with commas between them", envTelegramUsers, text)
		}
		t.users = append(t.users, id)
	}
	return t, nil
}

// openGroup reports whether every member of the chat could decide: a group or channel, and no users are named.
func (t telegramSetting) openGroup() bool {
	return (strings.HasPrefix(t.chat, "-") || strings.HasPrefix(t.chat, "@")) && len(t.users) == 0
}

func (t telegramSetting) complete() bool { return t.token != "" && t.chat != "" }

// open opens the chat, in one of its topics if it is given.
func (t telegramSetting) open(topic int) (notify.Channel, error) {
	return notify.NewTelegram(notify.TelegramOptions{Token: t.token, ChatID: t.chat, APIURL: t.api, Topic: topic})
}

// addChannels adds the channels, and the listeners for answers.
func addChannels(o *monitor.Options, answers string) error {
	t, err := telegramFromEnv()
	if err != nil {
		return err
	}
	if o.Answer && t.openGroup() {
		return fmt.Errorf("--permissions: %s is a group, and every member of it could allow commands; name who may in %s (user numbers, with commas between them)", envTelegramChat, envTelegramUsers)
	}
	o.OpenGroup = t.openGroup()
	if !t.complete() && t.token != t.chat {
		o.Logger.Warn("Telegram is not configured: both TELEGRAM_BOT_TOKEN and TELEGRAM_CHAT_ID are needed")
	}
	if t.complete() {
		channel, err := t.open(0)
		if err != nil {
			return err
		}
		o.Channels = map[string]notify.Channel{ownChannel: channel}
	}
	o.OpenChannel = func(c registry.Channel) (notify.Channel, error) { return openChannel(t, o.Environ, c) }
	native := !isSupervisors(o)
	if t.complete() && (answers == "on" || answers == "auto" && native) {
		o.Listen = t.listen(o)
	}
	return nil
}

// isSupervisors reports whether a home is the PIV supervisor's.
func isSupervisors(o *monitor.Options) bool {
	r, err := registry.Read(registryOf(*o), registry.Options{Home: o.UserHome})
	return err == nil && r.Version == 1
}

// openChannel opens what a registry names: telegram is what the environment says.
func openChannel(t telegramSetting, environ []string, c registry.Channel) (notify.Channel, error) {
	address, err := registry.Expand(c.Address, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if address == "telegram" {
		if !t.complete() {
			return nil, fmt.Errorf("telegram: both TELEGRAM_BOT_TOKEN and TELEGRAM_CHAT_ID are needed")
		}
		return t.open(c.Topic)
	}
	if command, ok := strings.CutPrefix(address, "exec:"); ok {
		return notify.NewExec(strings.Fields(command), environ)
	}
	return notify.Open(address, c.Topic)
}

// listen makes the listener for answers in the chat. That works only for a chat with a number, not for a channel's name.
func (t telegramSetting) listen(o *monitor.Options) func(*sql.DB, []string, notify.Applier) ([]monitor.Listener, error) {
	return func(db *sql.DB, channels []string, to notify.Applier) ([]monitor.Listener, error) {
		chat, err := strconv.ParseInt(t.chat, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("telegram: TELEGRAM_CHAT_ID %q is not a number", t.chat)
		}
		if err := os.MkdirAll(stateDir(), 0o700); err != nil {
			return nil, fmt.Errorf("telegram: %w", err)
		}
		ring := func() { _ = monitor.Ring(o.Home) } // it is seen to at the next look all the same
		u, err := notify.NewUpdates(notify.UpdatesOptions{
			Token: t.token, APIURL: t.api, DB: db, Channels: channels, Own: ownChannel, Chats: []int64{chat}, Users: t.users, LockDir: stateDir(),
			Applier: to, Logger: o.Logger, Changed: ring,
		})
		if err != nil {
			return nil, err
		}
		return []monitor.Listener{u}, nil
	}
}

const (
	// checkTime is how long all channels together may take to say whether they work.
	checkTime = 10 * time.Second
	// testTime is how long one may take with a message.
	testTime = 40 * time.Second
)

// ownedChannel is a channel with the name that people know, or why it cannot be opened.
type ownedChannel struct {
	label string
	notify.Channel
	err error
}

// channelsOf are those by which the monitor of a home would tell people.
func channelsOf(o monitor.Options, view monitor.View) (list []ownedChannel) {
	if c, ok := o.Channels[ownChannel]; ok {
		list = append(list, ownedChannel{"Telegram", c, nil})
	}
	if view.Registry == nil {
		return list
	}
	for _, named := range view.Registry.Channels {
		c, err := o.OpenChannel(named)
		list = append(list, ownedChannel{named.Name, c, err})
	}
	return list
}

// lookedAt looks at a home, and says what in its registry is odd. then is what comes of one that cannot be read.
func lookedAt(ctx context.Context, io streams, o monitor.Options, then string) (monitor.View, error) {
	view, err := monitor.Inspect(ctx, o)
	if err != nil {
		return view, &exitError{exitFailure, err}
	}
	if view.Lost != "" {
		fmt.Fprintln(io.out, "registry: "+logline.Printable(view.Lost)+then+"; the last good copy, if there is one, is used")
	}
	for _, warning := range view.Registry.Warned() {
		fmt.Fprintln(io.out, "registry: "+logline.Printable(warning))
	}
	return view, nil
}

// checkChannels says of each channel what can be said without a message.
func checkChannels(ctx context.Context, io streams, o monitor.Options, view monitor.View) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	list := channelsOf(o, view)
	for _, c := range list {
		fmt.Fprintln(io.out, c.label+": "+logline.Printable(c.check(ctx)))
	}
	if len(list) == 0 {
		fmt.Fprintln(io.out, "Telegram: not configured: no message would be sent")
	}
}

func (c ownedChannel) check(ctx context.Context) string {
	checker, can := c.Channel.(notify.Checker)
	switch {
	case c.err != nil:
		return c.err.Error()
	case !can:
		return "not tried, since that takes a message: outlive monitor --test-channels"
	}
	name, err := checker.Check(ctx)
	if err != nil {
		return err.Error()
	}
	if _, program := c.Channel.(*notify.Exec); program {
		return "would run " + name
	}
	return "would tell as @" + name
}

// testChannels is --test-channels: a message by each channel, and what became of it.
func testChannels(ctx context.Context, io streams, o monitor.Options) error {
	view, err := lookedAt(ctx, io, o, "")
	if err != nil {
		return err
	}
	list := channelsOf(o, view)
	if len(list) == 0 {
		return fail(exitFailure, "no channel is set up: give TELEGRAM_BOT_TOKEN and TELEGRAM_CHAT_ID, or the registry channels")
	}
	failed := 0
	for _, c := range list {
		answer, err := c.test(ctx)
		if err != nil {
			failed++
			answer = "not sent: " + err.Error()
		}
		fmt.Fprintln(io.out, c.label+": "+logline.Printable(answer))
	}
	if failed > 0 {
		return fail(exitFailure, "%d of %d channels do not work", failed, len(list))
	}
	return nil
}

// test sends one message, and says what the service has answered.
func (c ownedChannel) test(ctx context.Context) (answer string, err error) {
	if c.err != nil {
		return "", c.err
	}
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	var text notify.Text
	text.Write("outlive monitor --test-channels on " + host + ": messages of " + c.label + " arrive here.")
	ref, err := c.Send(ctx, notify.Message{Key: "test/" + rand.Text(), Text: text})
	switch _, program := c.Channel.(*notify.Exec); {
	case err != nil:
		return "", err
	case program:
		return "sent: the program has ended with status 0", nil
	case ref != "":
		return "sent: it is message " + ref + " there", nil
	}
	return "sent: the service has taken it", nil
}

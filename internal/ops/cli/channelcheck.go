package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

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
	view, err := monitor.Inspect(ctx, o)
	if err != nil {
		return &exitError{exitFailure, err}
	}
	if view.Lost != "" {
		fmt.Fprintln(io.out, "registry: "+logline.Printable(view.Lost)+"; the last good copy, if there is one, is used")
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

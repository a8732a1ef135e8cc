package notify

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// OpenOptions are common to all channels.
type OpenOptions struct {
	// Environ is the environment of programs, see [ExecOptions].
	Environ []string
	// Topic is where messages of a Telegram channel go. 0: where the URL says.
	Topic int
}

// ErrURL says that something is not a URL. The text is not shown, since it may be a secret.
var ErrURL = errors.New("this is not a URL")

// Open returns the channel that a URL is of, and makes no request:
//
//   - telegram://<token>@telegram?chats=<chat>, or <chat>:<topic>; instead of telegram the host of a Bot API server of one's own, with
//     disabletls=yes when it speaks HTTP
//   - exec:///path/of/program?arg=<first>&arg=<second>&timeout=30s
//   - any service of Shoutrrr, by its URL: ntfy://…, gotify://…, slack://…, smtp://…, generic://…
//
// An error does not show the URL.
func Open(channel string, o OpenOptions) (Channel, error) {
	u, err := url.Parse(channel)
	if err != nil {
		return nil, ErrURL
	}
	if o.Topic != 0 && u.Scheme != "telegram" {
		return nil, errors.New("topic: only Telegram has topics")
	}
	switch u.Scheme {
	case "":
		return nil, fmt.Errorf("%w: must be telegram://, exec:// or a Shoutrrr address", ErrURL)
	case "telegram":
		t, err := telegramOptions(u)
		if err != nil {
			return nil, err
		}
		t.Topic = cmp.Or(o.Topic, t.Topic)
		return channelOr(NewTelegram(t))
	case "exec":
		x, err := execOptions(u)
		if err != nil {
			return nil, err
		}
		x.Environ = o.Environ
		return channelOr(NewExec(x))
	}
	return channelOr(NewShoutrrr(channel))
}

// channelOr keeps a nil pointer from looking like a channel.
func channelOr[C Channel](c C, err error) (Channel, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

func execOptions(u *url.URL) (ExecOptions, error) {
	program := u.Opaque // exec:C:\page.exe
	if program == "" {
		program = u.Host + u.Path
	}
	o := ExecOptions{Command: append([]string{program}, u.Query()["arg"]...)}
	if text := u.Query().Get("timeout"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return o, fmt.Errorf("exec: timeout=%q: must be a duration greater than 0", text)
		}
		o.Timeout = d
	}
	return o, nil
}

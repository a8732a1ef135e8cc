package notify

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
)

// ErrURL says that something is not a URL. The text is not shown, since it may be a secret.
var ErrURL = errors.New("this is not a URL")

// Open returns the channel that a URL is of, and makes no request. topic is where messages of a Telegram channel go; 0: where the URL says.
//
//   - telegram://<token>@telegram?chats=<chat>, or <chat>:<topic>; instead of telegram the host of a Bot API server of one's own, with
//     disabletls=yes when it speaks HTTP
//   - any service of Shoutrrr, by its URL: ntfy://…, gotify://…, slack://…, smtp://…, generic://…
//
// An error does not show the URL.
func Open(channel string, topic int) (Channel, error) {
	u, err := url.Parse(channel)
	if err != nil {
		return nil, ErrURL
	}
	if topic != 0 && u.Scheme != "telegram" {
		return nil, errors.New("topic: only Telegram has topics")
	}
	switch u.Scheme {
	case "":
		return nil, fmt.Errorf("%w: must be telegram:// or a Shoutrrr address", ErrURL)
	case "telegram":
		t, err := telegramOptions(u)
		if err != nil {
			return nil, err
		}
		t.Topic = cmp.Or(topic, t.Topic)
		return channelOr(NewTelegram(t))
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

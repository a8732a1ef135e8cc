package registry

import (
	"fmt"
	"strings"
	"testing"
)

// A channel is an address, or an address with a topic; a topic without Telegram is a mistake.
func TestChannels(t *testing.T) {
	for text, want := range map[string]string{
		`{me: telegram}`:                         "telegram 0",
		`{me: {address: telegram, topic: 7}}`:    "telegram 7",
		`{me: {address: "telegram"}}`:            "telegram 0",
		`{me: {address: "${WHERE}", topic: 7}}`:  "${WHERE} 7",
		`{me: {address: "exec:tell", topic: 7}}`: "channels.me.topic: only Telegram has topics: remove it",
		`{me: {address: telegram, topic: 0}}`:    "channels.me.topic is the number 0: want a whole number of at least 1",
		`{me: {topic: 7}}`:                       "channels.me has no address",
		`{me: {address: telegramm}}`:             "channels.me.address is not a channel address",
		`{me: {address: telegram, thread: 7}}`:   `unknown key "thread" in channels.me`,
		`{me: }`:                                 "channels.me has no value",
		`{me: [telegram]}`:                       "channels.me is a list: want keys, such as address",
	} {
		r, err := Parse("registry.yaml", []byte("version: 2\nchannels: "+text+"\n"), Options{})
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
			continue
		}
		if c := r.Channels; len(c) != 1 || c[0].Name != "me" || fmt.Sprintf("%s %d", c[0].Address, c[0].Topic) != want {
			t.Errorf("%s: %+v, want %s", text, c, want)
		}
	}
}

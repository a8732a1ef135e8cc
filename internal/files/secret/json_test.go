package secret

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	key := "ghp_" + strings.Repeat("a1", 15)
	for text, want := range map[string]string{
		`{"id":1,"n":1.50,"x":[true,null,"a b"]}`:                              `{"id":1,"n":1.50,"x":[true,null,"a b"]}`,
		`{"password":"hunter2","user":"ada"}`:                                  `{"password":"[redacted]","user":"ada"}`,
		`{ "api_key" : 1234 , "token":null, "secret":true}`:                    `{ "api_key" : "[redacted]" , "token":null, "secret":"[redacted]"}`,
		`{"credentials":{"a":["b",{"c":7}],"d":""},"e":"b"}`:                   `{"credentials":{"a":["[redacted]",{"c":"[redacted]"}],"d":""},"e":"b"}`,
		`{"arguments":{"text":"use ` + key + ` here"}}`:                        `{"arguments":{"text":"use [redacted] here"}}`,
		`["` + key + `",{"` + "pass\\u0077ord" + `":"x"}]`:                     `["[redacted]",{"` + "pass\\u0077ord" + `":"[redacted]"}]`,
		`{"progressToken":7,"nextToken":"x","max_tokens":5}`:                   `{"progressToken":7,"nextToken":"[redacted]","max_tokens":5}`,
		`{"text":"{\"password\":\"hunter2\",\"a\":\"<b>\"}","password":{}}`:    `{"text":"{\"password\":[redacted],\"a\":\"<b>\"}","password":{}}`,
		`"Authorization: Bearer abc123def"`:                                    `"Authorization: Bearer [redacted]"`,
		`{"a":"${TOKEN}","token":"${TOKEN}","b":"\"quoted\\","cookie":"\\\""}`: `{"a":"${TOKEN}","token":"${TOKEN}","b":"\"quoted\\","cookie":"[redacted]"}`,
		`not JSON, token=abcdef123456`:                                         `"not JSON, token=[redacted]"`,
		``:                                                                     `""`,
	} {
		if got := string(JSON([]byte(text), "progressToken")); got != want {
			t.Errorf("%s:\n%s, want\n%s", text, got, want)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"password":"x","a":[1,"b"]}`, `"\\"`, `{"":{"token":[{}]}}`, ` [ ] `} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		was := string(text)
		got := JSON(text)
		if !json.Valid(got) {
			t.Errorf("%q is not JSON any more: %q", was, got)
		}
		if string(text) != was {
			t.Error("the text itself was changed")
		}
		if again := JSON(got); string(again) != string(got) {
			t.Errorf("%q is changed again: %q", got, again)
		}
	})
}

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
		`["--password","hunter2","--name","ada","--token","--force"]`:          `["--password","[redacted]","--name","ada","--token","--force"]`,
		`"https://user:hunter2@host/x?token=abc123def&a=b"`:                    `"https://user:[redacted]@host/x?token=[redacted]&a=b"`,
		`"https://host/x?X-Amz-Signature=0a1b2c3d4e5f&a=b"`:                    `"https://host/x?X-Amz-Signature=[redacted]&a=b"`,
		`"9b2f5d1e-8c9a-4a53-9f6e-2f3f0a7c1b11"`:                               `"9b2f5d1e-8c9a-4a53-9f6e-2f3f0a7c1b11"`,
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

// A text without any of the words of a form is not held against it: that must not hide a secret from it.
func FuzzWordsOfForms(f *testing.F) {
	for _, text := range []string{"GHP_" + strings.Repeat("a1", 15), "pa\u017f\u017fword=hunter2", "to\u212Aen: abc123def", "https://a:b@c", "123456:" + strings.Repeat("x", 30)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, k := range looks {
			if small := strings.ToLower(text); k.form.MatchString(text) && !k.possible(small) && !strings.ContainsRune(text, '\u017F') {
				t.Errorf("%q has a form without any of its words %q", text, k.words)
			}
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("some words 12 ", 12) + `"},"_meta":{"progressToken":7}}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		JSON(text, "progressToken")
	}
}

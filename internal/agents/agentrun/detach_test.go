package agentrun

import (
	"strings"
	"testing"
)

func TestDetachKeys(t *testing.T) {
	const twoKeys = "ctrl-p,ctrl-q"
	for name, tt := range map[string]struct {
		keys   string
		typed  []string
		passed string
		left   bool
	}{
		"none of them":               {"", []string{"hello\r"}, "hello\r", false},
		"the default":                {"", []string{"ab\x1ccd"}, "ab", true},
		"by kitty's protocol":        {"", []string{"a\x1b[92;5u"}, "a", true},
		"with NumLock":               {"", []string{"\x1b[92;133u"}, "", true},
		"its release":                {"", []string{"\x1b[92;5:3u"}, "\x1b[92;5:3u", false},
		"with Alt":                   {"", []string{"\x1b[92;7u"}, "\x1b[92;7u", false},
		"by xterm's":                 {"", []string{"\x1b[27;5;92~"}, "", true},
		"cut in two":                 {"", []string{"\x1b[92", ";5u"}, "", true},
		"another one cut in two":     {"", []string{"\x1b[1", ";5C"}, "\x1b[1;5C", false},
		"Escape":                     {"", []string{"\x1b", "\x1b["}, "\x1b\x1b[", false},
		"two":                        {twoKeys, []string{"a\x10\x11b"}, "a", true},
		"the first, then others":     {twoKeys, []string{"\x10", "x"}, "\x10x", false},
		"the first twice":            {twoKeys, []string{"\x10\x10", "\x11"}, "\x10", true},
		"two by kitty's, apart":      {twoKeys, []string{"\x1b[112;5u", "\x1b[113;5u"}, "", true},
		"the first by kitty's alone": {twoKeys, []string{"\x1b[112;5u", "x"}, "\x1b[112;5ux", false},
		"a letter":                   {"ctrl-a,d", []string{"d\x01d"}, "d", true},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := ParseDetachKeys(tt.keys)
			if err != nil {
				t.Fatal(err)
			}
			l := detachScanner{keys: keys}
			passed, left := "", false
			for _, typed := range tt.typed {
				b, l := l.read([]byte(typed))
				passed, left = passed+string(b), left || l
			}
			if passed != tt.passed || left != tt.left {
				t.Errorf("passed %q, left %v", passed, left)
			}
		})
	}
	for text, want := range map[string]string{"": `Ctrl-\`, "ctrl-P,CTRL-q": "Ctrl-P Ctrl-Q", "ctrl-]": "Ctrl-]", "ctrl-a,d": "Ctrl-A d"} {
		if keys, err := ParseDetachKeys(text); err != nil || keys.String() != want {
			t.Errorf("%q: %v, %v", text, keys, err)
		}
	}
	for _, text := range []string{"ctrl-", "ctrl-ä", "esc", "ctrl-1", ",", "ü", " "} {
		if keys, err := ParseDetachKeys(text); err == nil {
			t.Errorf("%q: %v", text, keys)
		} else if !strings.Contains(err.Error(), "is not a key") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

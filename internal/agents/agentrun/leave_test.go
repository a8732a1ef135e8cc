package agentrun

import "testing"

func TestLeaveKey(t *testing.T) {
	for name, tt := range map[string]struct {
		typed  []string
		passed string
		left   bool
	}{
		"another one":             {[]string{"hello\r"}, "hello\r", false},
		"it":                      {[]string{"ab\x1ccd"}, "ab", true},
		"by kitty's protocol":     {[]string{"a\x1b[92;5u"}, "a", true},
		"with its other names":    {[]string{"\x1b[92:124:92;5:1;28u"}, "", true},
		"with NumLock":            {[]string{"\x1b[92;133u"}, "", true},
		"its release":             {[]string{"\x1b[92;5:3u"}, "\x1b[92;5:3u", false},
		"with Alt":                {[]string{"\x1b[92;7u"}, "\x1b[92;7u", false},
		"by xterm's":              {[]string{"\x1b[27;5;92~"}, "", true},
		"another by xterm's":      {[]string{"\x1b[27;5;93~"}, "\x1b[27;5;93~", false},
		"cut in two":              {[]string{"\x1b[92", ";5u"}, "", true},
		"another one cut in two":  {[]string{"\x1b[1", ";5C"}, "\x1b[1;5C", false},
		"Escape":                  {[]string{"\x1b", "\x1b["}, "\x1b\x1b[", false},
		"a letter cut in two":     {[]string{"\xc3", "\xbc"}, "ü", false},
		"behind half of a letter": {[]string{"\xc3\x1c"}, "\xc3", true},
	} {
		t.Run(name, func(t *testing.T) {
			var l leaveScanner
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
}

package batchfile

import (
	"errors"
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	const begin = `cmd.exe /d /e:ON /v:OFF /c ""C:\Program Files\npx.cmd"`
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, ``},
		{[]string{"-y", "@scope/server", `C:\dir`, "#$*+-./:?@_"}, ` -y @scope/server C:\dir #$*+-./:?@_`},
		{[]string{"http://h/?a=1&b=2"}, ` "http://h/?a=1&b=2"`},
		{[]string{"a b", "", "a|b<c>d^e(f)g!h,i;j=k"}, ` "a b" "" "a|b<c>d^e(f)g!h,i;j=k"`},
		{[]string{"%PATH%", "100%"}, ` "%%cd:~,%PATH%%cd:~,%" "100%%cd:~,%"`},
		{[]string{`say "hi"`, `a\"b`, `dir\`, `two words\\`}, ` "say ""hi""" "a\\""b" "dir\\" "two words\\\\"`},
		{[]string{`"&calc&"`}, ` """&calc&"""`},
		{[]string{"größe"}, ` größe`},
	} {
		got, err := Line(`C:\Program Files\npx.cmd`, tc.args)
		if want := begin + tc.want + `"`; got != want || err != nil {
			t.Errorf("%q:\n got %s\nwant %s, %v", tc.args, got, want, err)
		}
	}
	for _, tc := range []struct{ path, arg string }{{`a"b.cmd`, "x"}, {"a.cmd", "two\nlines"}, {"a.cmd", "\x00"}, {"a.cmd", "\r"}} {
		if line, err := Line(tc.path, []string{tc.arg}); !errors.Is(err, ErrArgument) {
			t.Errorf("%q %q: %s, %v", tc.path, tc.arg, line, err)
		}
	}
}

func TestIs(t *testing.T) {
	for _, path := range []string{`C:\npx.cmd`, "NPX.CMD", "x.bat", "x.Bat. ."} {
		if !Is(path) {
			t.Errorf("%s is one", path)
		}
	}
	for _, path := range []string{"npx", "npx.exe", "cmd", "x.cmd.exe", "bat"} {
		if Is(path) {
			t.Errorf("%s is none", path)
		}
	}
}

// Whatever an argument is, no character that means something to cmd stands outside of quotes, as cmd counts them, and no %
// begins the name of a variable.
func FuzzLine(f *testing.F) {
	for _, s := range []string{"", "a b", `"`, `\"`, `"&calc`, "%PATH%", `""&%`, "^&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		line, err := Line("x.cmd", []string{arg})
		if err != nil {
			return
		}
		rest, ok := strings.CutPrefix(line, `cmd.exe /d /e:ON /v:OFF /c ""x.cmd" `)
		rest, closed := strings.CutSuffix(rest, `"`)
		if !ok || !closed {
			t.Fatal(line)
		}
		quoted := false
		for i, c := range rest {
			switch {
			case c == '"':
				quoted = !quoted
			case !quoted && strings.ContainsRune("&|<>^()%! \t,;=", c):
				t.Fatalf("%q outside of quotes in %s", c, line)
			case c == '%' && !strings.HasPrefix(rest[i:], noVariable) && !strings.HasSuffix(rest[:i], "%") && !strings.HasSuffix(rest[:i], "%%cd:~,"):
				t.Fatalf("%% begins a variable in %s", line)
			}
		}
		if quoted {
			t.Fatalf("a quote is open in %s", line)
		}
	})
}

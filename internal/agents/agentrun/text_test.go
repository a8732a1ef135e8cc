package agentrun

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// readable is what people are shown of a kept output that comes in pieces of a size.
func readable(t interface{ Fatal(...any) }, output string, size int) string {
	var b strings.Builder
	text := NewText(&b)
	for rest := output; rest != ""; {
		n := min(size, len(rest))
		if _, err := text.Write([]byte(rest[:n])); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := text.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What an agent has written to a terminal is shown as text, however it is cut into pieces.
func TestReadableText(t *testing.T) {
	many := ""
	for n := range 60 {
		many += fmt.Sprintf("line %d\r\n", n)
	}
	const size = "[outlive] 2026-11-21 03:00:00 its terminal has 20 columns and 4 rows\n"
	for name, tt := range map[string]struct{ output, want string }{
		"lines":                {"one\n\ntwo\tthree\n", "one\n\ntwo\tthree\n"},
		"lines of a terminal":  {"one\r\n\r\ntwo\r\n", "one\n\ntwo\n"},
		"without an end":       {"Continue? [y/n] ", "Continue? [y/n]\n"},
		"colours and a title":  {"\x1b]0;claude\x07\x1b[1;31mred\x1b[0m and \x1b[4:3mcurly\x1b[24m\n", "red and curly\n"},
		"a hostile sequence":   {"a\x1b]52;c;ZXZpbA==\x1b\\b\x1bP+q544e\x1b\\c\x1b_x\x1b\\d\x9b31me\x05f\x00g\n", "abcd\ufffd31mefg\n"},
		"a progress bar":       {"10 %\r50 %\r100 %\ndone\n", "100 %\ndone\n"},
		"a spinner":            {"\r\x1b[K⠋ building\r\x1b[K⠙ building\r\x1b[Kbuilt\n", "built\n"},
		"a moved cursor":       {"abc\x1b[2Dx\x1b[1Cy\x1b[12Gz\n", "axcy       z\n"},
		"a repeated character": {"=\x1b[9b|\x1b[b\n\x1b[3bx\n", "==========||\nx\n"},
		"a line drawn anew":    {"\x1b[?2004hThinking\r\n> \x1b[1A\r\x1b[JStill thinking\r\n> \x1b[1A\r\x1b[J● The answer is 42.\r\n> ", "Thinking\n● The answer is 42.\n>\n"},
		"what scrolls away":    {"\x1b[2J\x1b[H" + many + "end", strings.ReplaceAll(many, "\r", "") + "end\n"},
		"another screen":       {"$ edit\n\x1b[?1049h\x1b[Hpage one\x1b[?1049l$ \n", "$ edit\npage one\n$\n"},
		"what a run leaves":    {"\x1b[2J\x1b[3;5Hhello\n[outlive] 2026-11-21 03:00:00 ended with exit status 0\n[outlive] 2026-11-21 03:01:00 started: x\nplain\n", "    hello\n[outlive] 2026-11-21 03:00:00 ended with exit status 0\n[outlive] 2026-11-21 03:01:00 started: x\nplain\n"},
		"the terminal's size":  {size + "\x1b[H\x1b[2J" + strings.Repeat("x", 25) + "\r\nb\r\nc\r\nd\x1b[H\x1b[2Jnew", size + strings.Repeat("x", 20) + "\nnew\n"},
		"a dialog in a box":    {"\x1b[H\x1b[2J╭────╮\r\n│ OK │\r\n╰────╯\r\n", "╭────╮\n│ OK │\n╰────╯\n"},
		"a line of JSON":       {`{"type":"result","text":"\u001b[31m"}` + "\n", `{"type":"result","text":"\u001b[31m"}` + "\n"},
		"brackets":             {"[out\n[outlive is good\n", "[out\n[outlive is good\n"},
		"a kitty keyboard":     {"\x1b[>1u\x1b[?1004h\x1b[?25lhi\x1b[<u\n", "hi\n"},
		"a longer line than 9": {strings.Repeat("ä", textLine+9) + "\n", strings.Repeat("ä", textLine+9) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 3, 7, 1 << 20} {
				if d := cmp.Diff(tt.want, readable(t, tt.output, size)); d != "" {
					t.Errorf("in pieces of %d:\n%s", size, d)
				}
			}
		})
	}
}

// What stands still for a while is shown, and not a second time when it leaves the screen.
func TestReadableTextSettles(t *testing.T) {
	var b strings.Builder
	text := NewText(&b)
	for _, step := range []struct{ output, shown string }{
		{"Password: ", "Password: \n"},
		{"", ""},
		{"\r\nwelcome\r\n", "welcome\n"},
		{"\x1b[H\x1b[2JDo you trust this folder?\r\n> yes", "Do you trust this folder?\n> yes\n"},
		{"", ""},
		{"\x1b[2K\r> no", "> no\n"},
		{strings.Repeat("\r\n", textRows), ""},
	} {
		b.Reset()
		_, err := text.Write([]byte(step.output))
		if err == nil {
			err = text.Settle()
		}
		if got := b.String(); err != nil || strings.TrimRight(got, "\n") != strings.TrimRight(step.shown, "\n") {
			t.Errorf("after %q: %q, %v, want %q", step.output, got, err, step.shown)
		}
	}
}

// However far a program moves to the right, its line stays bounded.
func TestReadableTextOfAFarCursor(t *testing.T) {
	got := readable(t, strings.Repeat("\x1b[400C", 1000)+"x", 9)
	if text := strings.TrimSpace(got); text != "x" || len(got) > textLine+2 {
		t.Errorf("%d bytes: %.20q", len(got), text)
	}
}

// Whatever an agent writes, no control character of it reaches people.
func TestReadableTextIsHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.OneOf(
			rapid.String(), rapid.SampledFrom([]string{"\x1b", "\x1b[", "\x1b]0;", "\x07", "\x1b\\", "\x9b", "\u009b31m", "\r", "\n", "\b", "\x1b[2J", "\x1b[?1049h", "\x1b[?1049l", "\x1bP", "[outlive] ", "\x1b[5A", "\x1b[99;99H"}),
			rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return string(b) }),
		)).Draw(t, "parts")
		output := strings.Join(parts, "")
		got := readable(t, output, rapid.IntRange(1, 9).Draw(t, "size"))
		for _, c := range got {
			if c != '\n' && c != '\t' && unicode.IsControl(c) {
				t.Fatalf("%q is shown as %q", output, got)
			}
		}
	})
}

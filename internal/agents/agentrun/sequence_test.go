package agentrun

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// titlesOf are the titles that an output sets.
func titlesOf(pieces ...string) []string {
	var f scanner
	var found []string
	for _, p := range pieces {
		f.scan([]byte(p), func(p piece) {
			if title, ok := p.title(); ok {
				found = append(found, title)
			}
		})
	}
	return found
}

// modesOf are the modes that an output changes.
func modesOf(pieces ...string) (m modes) {
	var f scanner
	for _, p := range pieces {
		f.scan([]byte(p), func(p piece) { m.change(p.sequence) })
	}
	return m
}

func TestTitles(t *testing.T) {
	title := func(s string) []string { return []string{s} }
	tests := []struct {
		name, output string
		want         []string
	}{
		{"plain text has none", "hello\r\nworld", nil},
		{"OSC 0 with BEL", "\x1b]0;✳ Claude Code\x07", title("✳ Claude Code")},
		{"OSC 2 with ST", "a\x1b]2;shop\x1b\\b", title("shop")},
		{"OSC 1 is the icon's", "\x1b]1;shop\x07", nil},
		{"a semicolon in a title", "\x1b]0;a;b\x07", title("a;b")},
		{"an empty title", "\x1b]0;\x07", title("")},
		{"a bell behind an OSC", "\x1b]0;t\x07\x07", title("t")},
		{"a notification is no title", "\x1b]9;Build finished\x07\x1b]777;notify;Codex;needs you\x1b\\", nil},
		{"OSC 52 with much in it", "\x1b]52;c;" + strings.Repeat("QUJD", 5000) + "\x07\x1b]0;t\x07", title("t")},
		{"a title over the limit says nothing", "\x1b]0;" + strings.Repeat("x", heldLimit) + "\x07", nil},
		{"BEL in a DCS is part of it", "\x1bPq\x07\x1b]no\x1b\\", nil},
		{"APC with a picture", "\x1b_Gf=100;\x07AAAA\x1b\\\x07", nil},
		{"broken off by CAN", "\x1b]0;half\x18\x07", nil},
		{"broken off by another sequence", "\x1b]0;half\x1b]2;whole\x07", title("whole")},
		{"ESC ESC", "\x1b\x1b]0;t\x07", title("t")},
		{"a charset", "\x1b(B\x1b]0;t\x07", title("t")},
		{"modes set none", "\x1b[?1000;1006h\x1b[>1u\x1b[5 q\x1bc", nil},
		{"nothing of an unfinished one", "\x1b]0;half", nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, titlesOf(tt.output)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		pieces := strings.Split(tt.output, "")
		if !strings.ContainsFunc(tt.output, func(r rune) bool { return r > 0x7f }) {
			pieces = nil
			for i := range len(tt.output) {
				pieces = append(pieces, tt.output[i:i+1])
			}
		}
		if diff := cmp.Diff(tt.want, titlesOf(pieces...)); diff != "" {
			t.Errorf("%s, cut into pieces: %s", tt.name, diff)
		}
	}
}

// However an output is cut, it says the same; what is held of it never grows over the limits.
func FuzzOutput(f *testing.F) {
	f.Add("\x1b]0;✳ shop\x07{\"type\":\"result\",\"subtype\":\"success\"}\r\n\x07\x1b[?25l\x1b]9;x\x1b\\", uint16(3), uint16(17))
	f.Add("{\"type\":\"x\"\n{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":1e9}\n\x1bP\x07\x1b", uint16(0), uint16(1))
	f.Fuzz(func(t *testing.T, output string, a, b uint16) {
		type all struct {
			Titles []string
			Modes  modes
			Lines  []string
		}
		read := func(pieces ...string) (got all) {
			var f scanner
			var l lines
			for _, p := range pieces {
				f.scan([]byte(p), func(p piece) {
					if title, ok := p.title(); ok {
						got.Titles = append(got.Titles, title)
					}
					got.Modes.change(p.sequence)
				})
				l.scan([]byte(p), func(line []byte) {
					got.Lines = append(got.Lines, string(line))
					readLine(line)
				})
				if len(f.held) > heldLimit || len(l.held) > lineLimit {
					t.Fatalf("held %d and %d bytes", len(f.held), len(l.held))
				}
			}
			return got
		}
		i := int(a) % (len(output) + 1)
		j := i + int(b)%(len(output)-i+1)
		whole, cut := read(output), read(output[:i], output[i:j], output[j:])
		if diff := cmp.Diff(whole, cut, cmp.AllowUnexported(modes{})); diff != "" {
			t.Errorf("cut at %d and %d: %s", i, j, diff)
		}
	})
}

func FuzzScreen(f *testing.F) {
	f.Add("hello\x1b[2J\x1b[5;3Hx\x1b[3r\x1b[L\x1b[9M\x1bM\x1b[4P\x1b[2@\x1b[1J\ttab", uint16(5), uint16(20))
	f.Add("\x1b[2;4r\x1b[4;1H\n\n\x1b[2T\x1b[999X\x1b[?1049h", uint16(6), uint16(1))
	f.Fuzz(func(t *testing.T, output string, rows, cols uint16) {
		for _, line := range drawn(int(rows)%60, int(cols)%200, output).lastLines() {
			if len(line) > lineWidth || strings.ContainsAny(line, "\x1b\n\r\x07") {
				t.Errorf("a line %q", line)
			}
		}
	})
}

func TestModes(t *testing.T) {
	tests := []struct {
		name, output, want string
	}{
		{"nothing was changed", "hello", ""},
		{"everything was changed back", "\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?1000l\x1b[?25h\x1b[?1049l", ""},
		{"the cursor was hidden", "\x1b[?25l", "\x1b[?25h\x1b[0m"},
		{"a screen of its own, the mouse and pasting", "\x1b[?1049h\x1b[?1000;1006h\x1b[?2004h", "\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[?1049l\x1b[0m"},
		{"the kitty keyboard, twice", "\x1b[>1u\x1b[>5u", "\x1b[<u\x1b[<u\x1b[0m"},
		{"reports of the size", "\x1b[?2048h", "\x1b[?2048l\x1b[0m"},
		{"modifyOtherKeys", "\x1b[>4;2m", "\x1b[>4;0m\x1b[0m"},
		{"the keypad and the cursor", "\x1b[?1h\x1b=\x1b[5 q", "\x1b>\x1b[0 q\x1b[?1l\x1b[0m"},
		{"both were set back", "\x1b=\x1b[5 q\x1b[ q\x1b>", ""},
		{"a reset", "\x1b[?1000h\x1b=\x1b[>1u\x1bc", ""},
		{"a colour is not a mode", "\x1b[38;5;1m\x1b[2J\x1b[12l\x1b[1000l", ""},
		{"one over the limit", "\x1b[?1000;" + strings.Repeat("7", csiLimit) + "h", ""},
		{"broken off", "\x1b[?1000\x18h\x1b[?1000\x1b[?25l", "\x1b[?25h\x1b[0m"},
		{"what is not a mode that matters", "\x1b[?7l\x1b[?12h", ""},
	}
	for _, tt := range tests {
		m := modesOf(tt.output)
		if diff := cmp.Diff(tt.want, m.undo()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// A terminal that joins later gets the modes that those have which were there from the beginning.
func TestModesOfAFreshTerminal(t *testing.T) {
	first := modesOf("\x1b[?1049h\x1b[?1h\x1b[?25l\x1b=\x1b[5 q\x1b[>1u\x1b[>7u\x1b[>3u\x1b[<u\x1b[>4;1m")
	screen, rest := first.redo()
	if screen != "\x1b[?1049h" {
		t.Errorf("first of all %q", screen)
	}
	if diff := cmp.Diff(first, modesOf(screen+rest), cmp.AllowUnexported(modes{})); diff != "" {
		t.Errorf("%q: %s", rest, diff)
	}
}

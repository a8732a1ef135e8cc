package agentrun

import "testing"

// What a terminal sends by itself is not a key.
func TestHasKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "y": true, "\r": true, "\x03": true, "\x1b": true, "ü": true, "\x1bb": true, "\x1bOA": true,
		"\x1b[A": true, "\x1b[1;5C": true, "\x1b[3~": true, "\x1b[Z": true, "\x1b[97;5u": true, "\x1b[200~pasted\x1b[201~": true,
		"\x1b[I": false, "\x1b[O": false, // focus
		"\x1b[24;80R": false, "\x1b[?62;22c": false, "\x1b[>0;10;1c": false, "\x1b[?1u": false, "\x1b[0n": false, // answers
		"\x1b[12;40R": false, "\x1b[1;40R": false, "\x1b[10;1R": false, "\x1b[1;5R": true, "\x1b[R": true, // the cursor's place, and F3
		"\x1b]11;rgb:0000/0000/0000\x1b\\": false, "\x1b]11;rgb:ff/ff/ff\a": false, "\x1bP>|xterm(390)\x1b\\": false,
		"\x1b[<0;10;5M": false, "\x1b[<0;10;5m": false, "\x1b[M !!": false, // the mouse
		"\x1b[I\x1b[24;80Ry": true, "\x1b]11;rgb:0/0/0\x1b\\\x1b[A": true,
		"\x1b[12": false, "\x1b]11;rg": false, // cut
	} {
		if got := hasKey([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

package logline

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain, Ä, 漢, 👩‍💻": "plain, Ä, 漢, 👩‍💻",
		"a\x1b[2Jb":        `a\x1b[2Jb`,
		"a\u009b31mb":      `a\u009b31mb`,
		"a\nb\tc\rd":       `a\nb\tc\rd`,
		"a\u202eb\u2066c":  `a\u202eb\u2066c`,
		"a\xffb":           "a\uFFFDb",
		"a\uFFFDb":         "a\uFFFDb",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// No character is cut in two.
func TestHeadAndTail(t *testing.T) {
	s := strings.Repeat("ä", 50)
	for limit := 3; limit < 110; limit++ {
		for _, got := range []string{Head(s, limit), Tail(s, limit)} {
			if len(got) > limit || !utf8.ValidString(got) || limit >= 100 && got != s {
				t.Errorf("%d: %q", limit, got)
			}
		}
	}
}

// However a text is cut on its way, the terminal gets the same, and nothing that it would obey.
func TestScreen(t *testing.T) {
	const text = "one\r\ntwo\tÄ漢\n\x1b]0;title\x07\x9b31m\u009b31m\rover\u202e\xe6\xbc"
	const want = "one\ntwo\tÄ漢\n\\x1b]0;title\\a\uFFFD31m\\u009b31m\\rover\\u202e"
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)), "in halves": iotest.HalfReader(strings.NewReader(text)),
	} {
		var b bytes.Buffer
		if n, err := io.Copy(NewScreen(&b), r); err != nil || n != int64(len(text)) || b.String() != want {
			t.Errorf("%s: %q, want %q (%d, %v)", name, b.String(), want, n, err)
		}
	}
	if _, err := NewScreen(failing{}).Write([]byte("x")); err == nil {
		t.Error("a failure is not told")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

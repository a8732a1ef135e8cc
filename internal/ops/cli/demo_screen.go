package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// screen shows lines, and on a terminal a last one that is rewritten. One goroutine uses it.
type screen struct {
	out      io.Writer
	terminal bool
	width    int         // of the live line that stands there, in characters
	failed   func(error) // is told of a line that could not be written; nil: nobody is
}

func newScreen(out *os.File) *screen {
	st, err := out.Stat()
	return &screen{out: out, terminal: err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"}
}

func (s *screen) line(text string) {
	s.wipe()
	if _, err := fmt.Fprintln(s.out, text); err != nil && s.failed != nil {
		s.failed(err)
	}
}

// live shows a line that the next one takes the place of; only on a terminal.
func (s *screen) live(text string) {
	if !s.terminal {
		return
	}
	s.wipe()
	fmt.Fprint(s.out, text)
	s.width = utf8.RuneCountInString(text)
}

// wipe overwrites the live line with blanks, which every terminal understands.
func (s *screen) wipe() {
	if s.width > 0 {
		fmt.Fprint(s.out, "\r"+strings.Repeat(" ", s.width)+"\r")
		s.width = 0
	}
}

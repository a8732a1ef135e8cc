package agentrun

import (
	"bytes"
	"fmt"
	"strings"
)

// asks reports whether a sequence is a query that terminals answer.
func (q sequence) asks() bool {
	text := string(q.content)
	switch q.intro {
	case 'Z':
		return true
	case '[':
		switch q.final {
		case 'c':
			return true
		case 'n':
			return !strings.HasPrefix(text, ">")
		case 'q':
			return strings.HasPrefix(text, ">")
		case 'u':
			return strings.HasPrefix(text, "?")
		case 'p':
			return strings.HasSuffix(text, "$")
		case 'x':
			return text == "" || text == "0" || text == "1"
		case 't':
			number, _, _ := strings.Cut(text, ";")
			return number == "11" || len(number) == 2 && number >= "13" && number <= "21" && number != "17"
		}
	case ']':
		return strings.HasSuffix(text, ";?") || strings.Contains(text, ";?;")
	case 'P':
		return strings.HasPrefix(text, "+q") || strings.HasPrefix(text, "$q")
	case '_':
		control, _, _ := strings.Cut(text, ";")
		return strings.HasPrefix(control, "G") && strings.Contains(control, "a=q")
	}
	return false
}

// answer is our reply to a terminal query of the agent when no person's terminal can reply: without some replies
// terminal programs do not start. "": none, which means not supported.
func (s *screen) answer(q sequence) string {
	switch q.intro {
	case 'Z':
		return "\x1b[?62;22c"
	case '[':
		return s.report(string(q.content), q.final)
	case ']':
		end := "\x07"
		if q.final != bel {
			end = "\x1b\\"
		}
		switch number, _, _ := bytes.Cut(q.content, []byte{';'}); string(number) {
		case "10", "12": // text, cursor
			return "\x1b]" + string(number) + ";rgb:d0d0/d0d0/d0d0" + end
		case "11": // behind it
			return "\x1b]11;rgb:1010/1010/1010" + end
		}
	case 'P':
		return "\x1bP0" + string(q.content[:1]) + "r\x1b\\" // "+r" or "$r": not known
	}
	return ""
}

// report answers a CSI sequence.
func (s *screen) report(parameters string, final byte) string {
	rows, cols := len(s.cells), len(s.cells[0])
	switch final {
	case 'c':
		switch {
		case parameters == "" || parameters == "0":
			return "\x1b[?62;22c" // a VT220 with colours
		case strings.HasPrefix(parameters, ">"):
			return "\x1b[>1;10;0c"
		}
	case 'n':
		switch parameters {
		case "5":
			return "\x1b[0n"
		case "6":
			return fmt.Sprintf("\x1b[%d;%dR", s.row+1, s.col+1)
		case "?6":
			return fmt.Sprintf("\x1b[?%d;%dR", s.row+1, s.col+1)
		}
	case 'p':
		return "\x1b[" + strings.TrimSuffix(parameters, "$") + ";0$y" // this mode is not known
	case 'q':
		return "\x1bP>|outlive\x1b\\"
	case 't':
		switch parameters {
		case "18":
			return fmt.Sprintf("\x1b[8;%d;%dt", rows, cols)
		case "19":
			return fmt.Sprintf("\x1b[9;%d;%dt", rows, cols)
		}
	}
	return ""
}

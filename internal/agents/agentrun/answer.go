package agentrun

import (
	"fmt"
	"strings"
)

// place is the size of a terminal, and where its cursor is, from 0 on.
type place struct{ rows, cols, row, col int }

func (s *screen) place() place { return place{len(s.cells), len(s.cells[0]), s.row, s.col} }

// vt220 says that we are a VT220 with colours.
const vt220 = "\x1b[?62;22c"

// reply reports whether a sequence asks the terminal something, and what we answer when no person's terminal can. Without some
// answers terminal programs do not start. "": nothing, which means not supported.
func (q sequence) reply(at place) (text string, asks bool) {
	content := string(q.content)
	switch q.intro {
	case 'Z':
		return vt220, true
	case '[':
		return report(content, q.final, at)
	case ']':
		end := "\x07"
		if q.final != bel {
			end = "\x1b\\"
		}
		switch number, _, _ := strings.Cut(content, ";"); number {
		case "10", "12": // text, cursor
			text = "\x1b]" + number + ";rgb:d0d0/d0d0/d0d0" + end
		case "11": // behind it
			text = "\x1b]11;rgb:1010/1010/1010" + end
		}
		return text, strings.HasSuffix(content, ";?") || strings.Contains(content, ";?;")
	case 'P':
		if strings.HasPrefix(content, "+q") || strings.HasPrefix(content, "$q") {
			return "\x1bP0" + content[:1] + "r\x1b\\", true // not known
		}
	case '_':
		control, _, _ := strings.Cut(content, ";")
		return "", strings.HasPrefix(control, "G") && strings.Contains(control, "a=q")
	}
	return "", false
}

// report is reply for a CSI sequence.
func report(parameters string, final byte, at place) (text string, asks bool) {
	private := strings.HasPrefix(parameters, ">")
	switch final {
	case 'c':
		switch {
		case parameters == "" || parameters == "0":
			text = vt220
		case private:
			text = "\x1b[>1;10;0c"
		}
		return text, true
	case 'n':
		switch parameters {
		case "5":
			text = "\x1b[0n"
		case "6":
			text = fmt.Sprintf("\x1b[%d;%dR", at.row+1, at.col+1)
		case "?6":
			text = fmt.Sprintf("\x1b[?%d;%dR", at.row+1, at.col+1)
		}
		return text, !private
	case 'q':
		return "\x1bP>|outlive\x1b\\", private
	case 'u':
		return "", strings.HasPrefix(parameters, "?")
	case 'p':
		mode, asks := strings.CutSuffix(parameters, "$")
		return "\x1b[" + mode + ";0$y", asks // this mode is not known
	case 'x':
		return "", parameters == "" || parameters == "0" || parameters == "1"
	case 't':
		switch parameters {
		case "18":
			text = fmt.Sprintf("\x1b[8;%d;%dt", at.rows, at.cols)
		case "19":
			text = fmt.Sprintf("\x1b[9;%d;%dt", at.rows, at.cols)
		}
		number, _, _ := strings.Cut(parameters, ";")
		return text, number == "11" || len(number) == 2 && number >= "13" && number <= "21" && number != "17"
	}
	return "", false
}

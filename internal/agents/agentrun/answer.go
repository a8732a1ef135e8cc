package agentrun

import (
	"fmt"
	"strings"
)

// answer is our reply to a terminal query of the agent when no person's terminal can reply: without some replies
// terminal programs do not start. "": none, which means not supported.
func (s *screen) answer(question string) string {
	kind, rest := question[:1], ""
	if len(question) > 1 {
		kind, rest = question[:2], question[2:]
	}
	switch kind {
	case "\x1bZ":
		return "\x1b[?62;22c"
	case "\x1b[":
		return s.report(rest[:len(rest)-1], rest[len(rest)-1])
	case "\x1b]":
		end := "\x07"
		if strings.HasSuffix(rest, "\x1b\\") {
			end = "\x1b\\"
		}
		switch number, _, _ := strings.Cut(rest, ";"); number {
		case "10", "12": // text, cursor
			return "\x1b]" + number + ";rgb:d0d0/d0d0/d0d0" + end
		case "11": // behind it
			return "\x1b]11;rgb:1010/1010/1010" + end
		}
	case "\x1bP":
		return "\x1bP0" + rest[:1] + "r\x1b\\" // "+r" or "$r": not known
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

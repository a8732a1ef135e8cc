package agentrun

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Sizes of a screen, and of what is told of it.
const (
	lastCount = 16       // lines told: a dialog with its question and its choices
	lineWidth = 300      // bytes of a line told
	pipeWidth = 400      // characters of a line of an output that is not a terminal
	tailSize  = 64 << 10 // bytes of such an output that are kept at least: one that draws its lines anew needs less
	mostRows  = 200
	mostCols  = 400
)

// screen is a minimal terminal emulator, to know what its lines say.
type screen struct {
	cells       [][]cell
	row, col    int
	top, bottom int // rows that scroll, both included
	saved       [2]int
	wrap        bool     // the next character begins a line
	last        rune     // the character that was written last; 0: none was
	pen         style    // of what is written next
	ink, erased *style   // of the cells that are written now, and of those that are erased
	under       [][]cell // the ordinary screen, while a program uses the other one; nil: it does not
	underAt     [2]int
	left        func([]cell) // called for each line that leaves the ordinary screen at the top; may be nil
}

// cell is one character with its style; nil: the terminal's own. Behind a character two cells wide is a cell with [behind].
type cell struct {
	char  rune
	style *style
}

// look is the style of a cell.
func (c cell) look() style {
	if c.style == nil {
		return style{}
	}
	return *c.style
}

// behind is the character of the second cell of a wide one.
const behind = -1

// empty is a cell that nothing was written to.
var empty = cell{char: ' '}

func textOf(line []cell) string {
	var b strings.Builder
	for _, c := range line {
		if c.char != behind {
			b.WriteRune(c.char)
		}
	}
	return b.String()
}

func newScreen(rows, cols int) *screen {
	rows, cols = bounded(rows, cols)
	s := &screen{cells: make([][]cell, rows), bottom: rows - 1}
	for i := range s.cells {
		s.cells[i] = blank(cols)
	}
	return s
}

// bounded is a size that a screen can have.
func bounded(rows, cols int) (int, int) {
	return min(max(rows, 1), mostRows), min(max(cols, 1), mostCols)
}

func blank(cols int) []cell {
	line := make([]cell, cols)
	for i := range line {
		line[i] = empty
	}
	return line
}

func (s *screen) draw(p piece) {
	switch p.kind {
	case plain:
		s.write(p.bytes)
	case order:
		s.obey(p.sequence)
	}
}

func (s *screen) write(b []byte) {
	for len(b) > 0 {
		c, size := utf8.DecodeRune(b)
		b = b[size:]
		switch {
		case c == '\n', c == '\v', c == '\f':
			s.lineFeed()
		case c == '\r':
			s.col, s.wrap = 0, false
		case c == '\b':
			s.col, s.wrap = max(s.col-1, 0), false
		case c == '\t':
			s.col = min(s.col/8*8+8, len(s.cells[0])-1)
		case c < ' ', c == 0x7f:
		default:
			s.put(c)
		}
	}
}

// width is how many cells a terminal gives to a character: 0 to what joins the one before.
func width(c rune) int {
	if c < 0x7f {
		return 1
	}
	return ansi.StringWidthWc(string(c))
}

func (s *screen) put(c rune) {
	line := s.cells[s.row]
	n := min(width(c), len(line))
	if n == 0 {
		return
	}
	s.last = c
	if s.wrap || s.col+n > len(line) {
		s.col, s.wrap = 0, false
		s.lineFeed()
		line = s.cells[s.row]
	}
	halve(line, s.col)
	halve(line, s.col+n)
	line[s.col] = cell{c, s.ink}
	if n == 2 {
		line[s.col+1] = cell{behind, s.ink}
	}
	if s.col += n; s.col == len(line) {
		s.col, s.wrap = s.col-1, true
	}
}

// halve empties both cells of a wide character that a change at col would cut in two.
func halve(line []cell, col int) {
	if col > 0 && col < len(line) && line[col].char == behind {
		line[col-1].char, line[col].char = ' ', ' '
	}
}

func (s *screen) lineFeed() {
	s.wrap = false
	if s.row == s.bottom {
		s.scrollUp(1)
		return
	}
	s.row = min(s.row+1, len(s.cells)-1)
}

// scroll moves the rows from first to the bottom of the scrolling ones up by n, or down by -n.
func (s *screen) scroll(first, n int) {
	if first > s.bottom {
		return
	}
	rows := s.cells[first : s.bottom+1]
	up := n > 0
	if n = max(n, -n); n >= len(rows) {
		for i := range rows {
			s.clear(first+i, 0, len(rows[i]))
		}
		return
	}
	for range n {
		last := len(rows) - 1
		if up {
			row := rows[0]
			copy(rows, rows[1:])
			rows[last] = row
			s.clear(s.bottom, 0, len(row))
		} else {
			row := rows[last]
			copy(rows[1:], rows)
			rows[0] = row
			s.clear(first, 0, len(row))
		}
	}
}

// scrollUp moves the scrolling rows up, and reports those that leave the screen at the top.
func (s *screen) scrollUp(n int) {
	if s.left != nil && s.top == 0 && s.under == nil {
		for _, line := range s.cells[:min(n, s.bottom+1)] {
			s.left(line)
		}
	}
	s.scroll(s.top, n)
}

func (s *screen) clear(row, from, to int) {
	line := s.cells[row]
	halve(line, from)
	halve(line, to)
	s.wipe(line[from:max(from, min(to, len(line)))])
}

func (s *screen) wipe(line []cell) {
	for i := range line {
		line[i] = cell{' ', s.erased}
	}
}

func (s *screen) obey(q sequence) {
	switch q.intro {
	case '[':
		if q.otherScreen() {
			s.turn(q.final == 'h')
		} else if len(q.content) == 0 || strings.IndexByte("?<=>", q.content[0]) < 0 {
			s.control(string(q.content), q.final)
		}
	case '7':
		s.saved = [2]int{s.row, s.col}
	case '8':
		s.move(s.saved[0], s.saved[1])
	case 'D', 'E':
		if q.intro == 'E' {
			s.col = 0
		}
		s.lineFeed()
	case 'M':
		if s.row == s.top {
			s.scroll(s.top, -1)
		} else {
			s.row = max(s.row-1, 0)
		}
	case 'c':
		s.pen, s.top, s.bottom, s.under = style{}, 0, len(s.cells)-1, nil
		s.dip("")
		s.erase(2)
		s.move(0, 0)
	}
}

func (s *screen) move(row, col int) {
	s.row, s.col, s.wrap = min(max(row, 0), len(s.cells)-1), min(max(col, 0), len(s.cells[0])-1), false
}

func (s *screen) control(text string, final byte) {
	parts := strings.Split(text, ";")
	arg := func(i, missing int) int {
		if i >= len(parts) {
			return missing
		}
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 || n == 0 && missing == 1 {
			return missing
		}
		return min(n, mostCols+1)
	}
	if s.travel(final, arg) {
		return
	}
	n := arg(0, 1)
	switch final {
	case 'm':
		s.dip(text)
	case 'J':
		s.erase(arg(0, 0))
	case 'K':
		s.eraseLine(arg(0, 0))
	case 'L', 'M':
		if s.top <= s.row && s.row <= s.bottom {
			s.scroll(s.row, map[byte]int{'L': -n, 'M': n}[final])
		}
	case 'S':
		s.scrollUp(n)
	case 'T':
		s.scroll(s.top, -n)
	case 'P':
		line := s.cells[s.row][s.col:]
		halve(s.cells[s.row], s.col)
		halve(line, n)
		s.wipe(line[copy(line, line[min(n, len(line)):]):])
	case '@':
		line := s.cells[s.row]
		halve(line, s.col)
		halve(line, len(line)-n)
		copy(line[min(s.col+n, len(line)):], line[s.col:])
		s.clear(s.row, s.col, s.col+n)
	case 'X':
		s.clear(s.row, s.col, s.col+n)
	case 'b':
		for range n {
			if s.last != 0 {
				s.put(s.last)
			}
		}
	case 'r':
		s.top, s.bottom = 0, len(s.cells)-1
		if top, bottom := arg(0, 1)-1, arg(1, len(s.cells))-1; top < bottom && bottom < len(s.cells) {
			s.top, s.bottom = top, bottom
		}
		s.move(0, 0)
	case 's':
		s.saved = [2]int{s.row, s.col}
	case 'u':
		s.move(s.saved[0], s.saved[1])
	}
}

// travel executes sequences that only move the cursor.
func (s *screen) travel(final byte, arg func(i, missing int) int) bool {
	n := arg(0, 1)
	switch final {
	case 'A':
		s.move(s.row-n, s.col)
	case 'B', 'e':
		s.move(s.row+n, s.col)
	case 'C', 'a':
		s.move(s.row, s.col+n)
	case 'D':
		s.move(s.row, s.col-n)
	case 'E':
		s.move(s.row+n, 0)
	case 'F':
		s.move(s.row-n, 0)
	case 'G', '`':
		s.move(s.row, n-1)
	case 'd':
		s.move(n-1, s.col)
	case 'H', 'f':
		s.move(n-1, arg(1, 1)-1)
	default:
		return false
	}
	return true
}

// erase is ED: 0 from the cursor on, 1 up to it, 2 and 3 everything.
func (s *screen) erase(what int) {
	for i := range s.cells {
		switch {
		case what >= 2, what == 0 && i > s.row, what == 1 && i < s.row:
			s.clear(i, 0, len(s.cells[i]))
		}
	}
	if what < 2 {
		s.eraseLine(what)
	}
}

// eraseLine is EL, likewise.
func (s *screen) eraseLine(what int) {
	from, to := 0, len(s.cells[0])
	switch what {
	case 0:
		from = s.col
	case 1:
		to = s.col + 1
	}
	s.clear(s.row, from, to)
}

// dip changes the pen's style.
func (s *screen) dip(parameters string) {
	s.pen.change(parameters)
	s.ink, s.erased = s.pen.kept(), style{back: s.pen.back}.kept()
}

// turn shows the alternate screen, empty, or the ordinary one as it was.
func (s *screen) turn(other bool) {
	switch {
	case other:
		if s.under == nil {
			s.under, s.underAt = make([][]cell, len(s.cells)), [2]int{s.row, s.col}
			for i := range s.cells {
				s.under[i] = slices.Clone(s.cells[i])
			}
		}
		s.erase(2)
		s.move(0, 0)
	case s.under != nil:
		s.cells, s.under = s.under, nil
		s.move(s.underAt[0], s.underAt[1])
	default: // it was in use before we started
		s.erase(2)
		s.move(0, 0)
	}
}

// resize changes the size. What no longer fits is lost: at the right, and above the cursor.
func (s *screen) resize(rows, cols int) {
	rows, cols = bounded(rows, cols)
	drop := max(s.row-rows+1, 0)
	s.cells = resized(s.cells, drop, rows, cols)
	if s.under != nil {
		s.under = resized(s.under, max(s.underAt[0]-rows+1, 0), rows, cols)
	}
	s.top, s.bottom = 0, rows-1
	s.move(s.row-drop, s.col)
}

func resized(cells [][]cell, drop, rows, cols int) [][]cell {
	cells = cells[drop:]
	next := make([][]cell, rows)
	for i := range next {
		next[i] = blank(cols)
		if i < len(cells) {
			halve(cells[i], cols)
			copy(next[i], cells[i])
		}
	}
	return next
}

// lastLines are the last lines for people, without those that have no letter or digit, such as borders.
func (s *screen) lastLines() []string {
	var found []string
	for i := len(s.cells) - 1; i >= 0 && len(found) < lastCount; i-- {
		line := strings.Trim(textOf(s.cells[i]), " \x00│┃║|▌▐")
		if strings.ContainsFunc(line, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) {
			found = append([]string{printable(line, lineWidth)}, found...)
		}
	}
	return found
}

// paint is the output that makes an empty terminal of rows and cols characters show the screen.
func (s *screen) paint(rows, cols int) []byte {
	b := []byte("\x1b[0m\x1b[r\x1b[?7l\x1b[H\x1b[2J")
	for i, line := range s.cells[:min(rows, len(s.cells))] {
		end := min(len(line), cols)
		for end > 0 && line[end-1] == empty {
			end--
		}
		if end == 0 {
			continue
		}
		b = fmt.Appendf(b, "\x1b[%d;1H", i+1)
		now := style{}
		for _, c := range line[:end] {
			if look := c.look(); look != now {
				now = look
				b = append(b, now.sequence()...)
			}
			if c.char != behind {
				b = utf8.AppendRune(b, c.char)
			}
		}
		if now != (style{}) {
			b = append(b, "\x1b[0m"...)
		}
	}
	if s.top > 0 || s.bottom < len(s.cells)-1 {
		b = fmt.Appendf(b, "\x1b[%d;%dr", s.top+1, s.bottom+1)
	}
	col, again := s.col, s.wrap && s.row < rows && s.col < cols
	if again && col > 0 && s.cells[s.row][col].char == behind {
		col--
	}
	b = fmt.Appendf(b, "\x1b[?7h\x1b[%d;%dH", s.row+1, col+1)
	if again { // the last character of a full line, behind which the next one begins a line
		c := s.cells[s.row][col]
		b = utf8.AppendRune(append(b, c.look().sequence()...), c.char)
	}
	return append(b, s.pen.sequence()...)
}

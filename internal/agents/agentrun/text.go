package agentrun

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Sizes of what is made readable.
const (
	// textRows and textCols are those of a terminal whose size the kept output does not name.
	textRows, textCols = 40, 120
	// textLine is the longest line that is held back until it ends, in characters: of a longer one what has come is written.
	textLine = 64 << 10
)

// Text makes readable text of an agent's kept output: no control sequence is left of it, and only lines end. A program that only
// writes lines is shown as it wrote them, with what it wrote over them (a progress bar) in its last state. Of one that draws on a
// terminal each line is shown when it leaves the screen at the top, and the rest of the screen at the end of the run, and when
// [Text.Settle] is called. It is for one goroutine. Bidirectional controls and the like are the business of the writer below it.
type Text struct {
	to      io.Writer
	scanner scanner
	out     bytes.Buffer // for to

	begun []byte // text that may be the beginning of a line of ours
	ours  []byte // of a line of ours, that has not ended; nil: none has begun

	line []rune // that the output writes now, where there is no screen
	col  int
	said string // what of that line was shown before its end
	// recent are the last lines of this run, as many as a terminal may show: the output may go back to them.
	recent []string

	screen     *screen // nil: the output has only written lines so far
	rows, cols int
	shown      map[string]int // lines of the screen that were shown already, how often
	below      map[string]int // the same of the ordinary screen, while a program uses the other one
	blank      bool           // the last line that was shown is empty, or none was
}

// NewText returns a writer that passes text on to another one.
func NewText(to io.Writer) *Text { return &Text{to: to, rows: textRows, cols: textCols, blank: true} }

// Write implements [io.Writer]. It takes the output in pieces of any size.
func (t *Text) Write(p []byte) (int, error) {
	t.scanner.scan(p, t.piece)
	return len(p), t.pass()
}

// Settle shows what the output shows now, though more may come: call it when nothing has come for a while.
func (t *Text) Settle() error {
	t.begunText()
	switch {
	case t.screen != nil:
		t.showScreen()
	case len(t.line) > 0 && string(t.line) != t.said:
		t.said = string(t.line)
		t.emit(t.said)
	}
	return t.pass()
}

// Close shows what is left. Nothing is closed.
func (t *Text) Close() error {
	t.begunText()
	t.finish()
	if t.ours != nil {
		t.endOurs()
	}
	return t.pass()
}

func (t *Text) pass() error {
	_, err := t.to.Write(t.out.Bytes())
	t.out.Reset()
	return err
}

// ownLine is how each line of the wrapper's own begins, see [wrapper.keepLine] and [logline.Kept].
var ownLine = []byte("[outlive] ")

// piece takes a piece of output. What a program asks its terminal says nothing to people.
func (t *Text) piece(p piece) {
	switch p.kind {
	case plain:
		t.mixed(slices.Concat(t.begun, p.bytes))
	case order:
		t.begunText()
		t.sequence(p.sequence)
	}
}

func (t *Text) begunText() {
	b := t.begun
	t.begun = nil
	t.text(b)
}

// mixed takes text in which lines of ours may stand.
func (t *Text) mixed(b []byte) {
	t.begun = nil
	for len(b) > 0 {
		if t.ours != nil {
			end := bytes.IndexByte(b, '\n')
			if end < 0 {
				t.ours = append(t.ours, b...)
				return
			}
			t.ours = append(t.ours, b[:end]...)
			t.endOurs()
			b = b[end+1:]
			continue
		}
		at := bytes.Index(b, ownLine)
		if at < 0 {
			n := overlap(b, ownLine)
			t.begun = bytes.Clone(b[len(b)-n:])
			t.text(b[:len(b)-n])
			return
		}
		t.text(b[:at])
		t.finish()
		t.ours, b = []byte{}, b[at:]
	}
}

// overlap is how many bytes at the end of b begin a word.
func overlap(b, word []byte) int {
	for n := min(len(b), len(word)-1); n > 0; n-- {
		if bytes.HasSuffix(b, word[:n]) {
			return n
		}
	}
	return 0
}

// sizeLine is our own line that names the size of the agent's terminal, see [wrapper.start].
var sizeLine = lazyregexp.New(`its terminal has (\d{1,3}) columns and (\d{1,3}) rows$`)

// endOurs shows a line of ours: what stood before it is over.
func (t *Text) endOurs() {
	line := strings.TrimRight(string(t.ours), "\r")
	t.ours = nil
	if m := sizeLine.FindStringSubmatch(line); m != nil {
		cols, _ := strconv.Atoi(m[1]) // they are digits
		rows, _ := strconv.Atoi(m[2])
		t.rows, t.cols = bounded(rows, cols)
	}
	t.emit(strings.Map(shownRune, line))
}

// finish shows what is left of a run, and begins anew.
func (t *Text) finish() {
	if t.screen != nil {
		t.showScreen()
	} else if len(t.line) > 0 {
		t.endLine()
	}
	t.line, t.col, t.said, t.recent, t.screen, t.shown, t.below = nil, 0, "", nil, nil, nil, nil
}

// shownRune drops what a terminal would obey.
func shownRune(c rune) rune {
	if c != '\t' && unicode.IsControl(c) {
		return -1
	}
	return c
}

func (t *Text) text(b []byte) {
	if t.screen != nil {
		t.screen.write(b)
		return
	}
	for len(b) > 0 {
		c, size := utf8.DecodeRune(b)
		b = b[size:]
		switch {
		case c == '\n':
			t.endLine()
		case c == '\r':
			t.col = 0
		case c == '\b':
			t.col = max(t.col-1, 0)
		case shownRune(c) >= 0:
			t.put(c)
		}
	}
}

func (t *Text) put(c rune) {
	for len(t.line) < t.col {
		t.line = append(t.line, ' ')
	}
	if t.col < len(t.line) {
		t.line[t.col] = c
	} else {
		t.line = append(t.line, c)
	}
	if t.col++; len(t.line) >= textLine && t.col == len(t.line) {
		t.out.WriteString(string(t.line))
		t.line, t.col = t.line[:0], 0
	}
}

func (t *Text) endLine() {
	line := strings.TrimRight(string(t.line), " ")
	if line != strings.TrimRight(t.said, " ") || line == "" {
		t.emit(line)
	}
	if t.recent = append(t.recent, strings.ToValidUTF8(line[:min(len(line), mostRows*mostCols)], "")); len(t.recent) >= 2*mostRows {
		t.recent = slices.Delete(t.recent, 0, mostRows)
	}
	t.line, t.col, t.said = t.line[:0], 0, ""
}

func (t *Text) emit(line string) {
	t.out.WriteString(line)
	t.out.WriteByte('\n')
	t.blank = line == ""
}

func (t *Text) sequence(q sequence) {
	if t.screen == nil && !t.inLine(q) {
		t.open()
	}
	if t.screen == nil {
		return
	}
	before := t.screen.under != nil
	if before && q.otherScreen() && q.final == 'l' {
		t.showScreen() // it is lost then
	}
	t.screen.obey(q)
	switch other := t.screen.under != nil; {
	case other && !before:
		t.below, t.shown = t.shown, nil
	case before && !other:
		t.below, t.shown = nil, t.below
	}
}

// open begins a screen, with the last lines and the one that was being written on it.
func (t *Text) open() {
	t.screen, t.shown = newScreen(t.rows, t.cols), map[string]int{}
	for _, line := range t.recent[max(len(t.recent)-t.rows+1, 0):] {
		t.screen.write([]byte(line + "\r\n"))
	}
	for _, line := range append(t.screen.lines(), t.said) {
		if line = strings.TrimRight(line, " "); line != "" {
			t.shown[line]++
		}
	}
	t.recent = nil
	t.screen.left = t.leave
	t.screen.write([]byte(string(t.line)))
	t.screen.move(t.screen.row, t.col%t.cols)
	t.line, t.col, t.said = nil, 0, ""
}

// inLine obeys a sequence that matters within a line only, and reports whether it is one, or says nothing about what is shown.
func (t *Text) inLine(q sequence) bool {
	switch {
	case q.intro != '[':
		return strings.IndexByte("78DEMc", q.intro) < 0
	case len(q.content) > 0 && strings.IndexByte("?<=>", q.content[0]) >= 0:
		return !q.otherScreen()
	}
	n, err := strconv.Atoi(string(q.content))
	if err != nil || n < 0 {
		n = 0
	}
	n = min(n, mostCols)
	switch q.final {
	case 'K':
		t.eraseInLine(n)
	case 'C', 'a':
		t.col = min(t.col+max(n, 1), textLine)
	case 'D':
		t.col = max(t.col-max(n, 1), 0)
	case 'G', '`':
		t.col = max(n, 1) - 1
	case 'b':
		if t.col > 0 && t.col <= len(t.line) {
			c := t.line[t.col-1]
			for range max(n, 1) {
				t.put(c)
			}
		}
	default:
		return strings.IndexByte("ABEFHfdeJLMPSTX@rsu", q.final) < 0
	}
	return true
}

func (t *Text) eraseInLine(what int) {
	at := min(t.col, len(t.line))
	switch what {
	case 0:
		t.line = t.line[:at]
	case 1:
		for i := range at {
			t.line[i] = ' '
		}
	default:
		t.line = t.line[:0]
	}
}

// leave takes a line that has left the screen at the top.
func (t *Text) leave(cells []cell) {
	line := screenLine(cells)
	switch {
	case t.shown[line] > 0:
		t.shown[line]--
	case line != "" || !t.blank:
		t.emit(line)
	}
}

// showScreen shows what of the screen was not shown yet.
func (t *Text) showScreen() {
	last := -1
	lines := t.screen.lines()
	for i, line := range lines {
		if line != "" {
			last = i
		}
	}
	shown := map[string]int{}
	for _, line := range lines[:last+1] {
		switch {
		case line != "" && t.shown[line] > 0:
			t.shown[line]--
			shown[line]++
		case line != "":
			t.emit(line)
			shown[line]++
		case !t.blank:
			t.emit(line)
		}
	}
	t.shown = shown
}

// lines are those of the screen, without the blanks at their ends.
func (s *screen) lines() []string {
	lines := make([]string, len(s.cells))
	for i, cells := range s.cells {
		lines[i] = screenLine(cells)
	}
	return lines
}

func screenLine(cells []cell) string {
	return strings.TrimRight(strings.Map(shownRune, textOf(cells)), " ")
}

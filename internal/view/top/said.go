package top

import (
	"io"
	"strconv"
	"strings"
)

func number(n int) string { return strconv.Itoa(n) }

// tailBuffer keeps the end of what a program says on stderr.
type tailBuffer struct {
	kept []byte
	to   io.Writer
}

const tailKept = 4 << 10

// beside returns a writer that keeps what is written, and passes it on to another one, if there is one.
func (b *tailBuffer) beside(to io.Writer) io.Writer {
	b.to = to
	return b
}

// Write implements io.Writer.
func (b *tailBuffer) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p...)
	b.kept = b.kept[max(0, len(b.kept)-tailKept):]
	if b.to != nil {
		return b.to.Write(p)
	}
	return len(p), nil
}

// last is the last line.
func (b *tailBuffer) last() string {
	lines := strings.Split(strings.TrimSpace(string(b.kept)), "\n")
	return lines[len(lines)-1]
}

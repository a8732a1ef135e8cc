package diagnose

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// maxLine is the maximum length of a line of a log: far more than an agent with hundreds of sessions needs.
const maxLine = 1 << 20

// ErrLine is wrapped by the errors about lines of a log that cannot be used. Later lines can.
var ErrLine = errors.New("not a line of an evidence log")

// Line is one look at one agent: one JSON object, on one line of the log.
type Line struct {
	At        time.Time `json:"at"`
	Agent     string    `json:"agent"`
	Evidence  Evidence  `json:"evidence"`
	Diagnosis Diagnosis `json:"verdict"`
	// Action is what was done about it, in the caller's own format. It is kept unchanged and not judged.
	Action json.RawMessage `json:"action,omitempty"`
}

// WriteLine writes one line with one Write, so that after a kill at most the last line of an appended log is
// incomplete.
func WriteLine(w io.Writer, l Line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write the evidence of %s: %w", l.Agent, err)
	}
	if len(text) >= maxLine {
		return fmt.Errorf("write the evidence of %s: %d bytes, at most %d", l.Agent, len(text), maxLine)
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write the evidence of %s: %w", l.Agent, err)
	}
	return nil
}

// ReadLog yields the lines of a log in order, with their numbers. An unusable line yields an error that wraps
// [ErrLine], and reading continues; any other error is from r and ends the sequence.
func ReadLog(r io.Reader) iter.Seq2[Numbered, error] {
	return func(yield func(Numbered, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		for n := 1; ; n++ {
			text, long, err := nextLine(in)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(Numbered{Number: n}, fmt.Errorf("read the evidence log: %w", err))
				return
			}
			end := err != nil
			if len(text) > 0 || long {
				l, err := parseLine(text, long)
				if !yield(Numbered{Number: n, Line: l}, err) {
					return
				}
			}
			if end {
				return
			}
		}
	}
}

// Numbered is a line with its number in the file, from 1.
type Numbered struct {
	Number int
	Line
}

// nextLine returns the next line without its line break. If it is longer than maxLine it is skipped and long is true.
func nextLine(in *bufio.Reader) (text []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if !long {
			text = append(text, part...)
		}
		if len(text) > maxLine {
			text, long = nil, true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			for len(text) > 0 && (text[len(text)-1] == '\n' || text[len(text)-1] == '\r') {
				text = text[:len(text)-1]
			}
			return text, long, err
		}
	}
}

func parseLine(text []byte, long bool) (Line, error) {
	if long {
		return Line{}, fmt.Errorf("%w: longer than %d bytes", ErrLine, maxLine)
	}
	var l Line
	if err := json.Unmarshal(text, &l); err != nil {
		return Line{}, fmt.Errorf("%w: %w", ErrLine, err)
	}
	if l.Agent == "" {
		return Line{}, fmt.Errorf("%w: it names no agent", ErrLine)
	}
	return l, nil
}

package diagnose

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// maxLine is the maximum length of a line of a log: far more than an agent with hundreds of sessions needs.
const maxLine = 1 << 20

// Line is one look at one agent: one JSON object, on one line of the log.
type Line struct {
	At        time.Time `json:"at"`
	Agent     string    `json:"agent"`
	Evidence  Evidence  `json:"evidence"`
	Diagnosis Diagnosis `json:"verdict"`
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

package heartbeat

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// Suffix follows an agent's name in the name of its file.
const Suffix = ".json"

// ErrNoBeat is wrapped by the errors about a file or a text that is not a sign of life, because it is incomplete or
// something else. It says nothing about the agent.
var ErrNoBeat = errors.New("no heartbeat")

// fileForm is hb/<agent>.json, version 1.
type fileForm struct {
	Version  int       `json:"v"`
	Time     string    `json:"t"` // RFC 3339
	State    State     `json:"state,omitempty"`
	Phase    *int      `json:"phase,omitempty"`
	Progress *Progress `json:"progress,omitempty"`
	Note     string    `json:"note,omitempty"`
	PID      int       `json:"pid,omitempty"`
	Start    string    `json:"start,omitempty"` // a string, because JavaScript would round the number
	Next     string    `json:"next,omitempty"`  // a duration in Go's format
}

// Write writes a sign of life into dir, which is created if necessary (0700). It replaces the file atomically, so
// that readers never see a partial one. It is not synced to disk: after a loss of power the previous sign is just as
// good. On Windows it may fail while the file is being read; the next one replaces it.
func Write(dir string, o Observation) error {
	if err := ValidName(o.Agent); err != nil {
		return fmt.Errorf("write heartbeat: %w", err)
	}
	form := fileForm{Version: 1, Time: o.Wall.UTC().Format(time.RFC3339Nano), State: o.State, Phase: o.Phase, Note: oneLine(o.Note), PID: o.PID}
	if o.Progress != (Progress{}) {
		form.Progress = &o.Progress
	}
	if o.Start != 0 {
		form.Start = strconv.FormatUint(o.Start, 10)
	}
	if o.Next > 0 {
		form.Next = promise(o.Next).String()
	}
	text, err := json.Marshal(form)
	if err != nil {
		return fmt.Errorf("write heartbeat of %s: %w", o.Agent, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write heartbeat of %s: %w", o.Agent, err)
	}
	if err := atomicfile.Write(filepath.Join(dir, o.Agent+Suffix), append(text, '\n')); err != nil {
		return fmt.Errorf("write heartbeat of %s: %w", o.Agent, err)
	}
	return nil
}

// ReadFile reads the sign of life in a file; the agent's name is the file's without [Suffix]. A file that is not one,
// or is incomplete, is an error that wraps [ErrNoBeat]. Links are not followed, and pipes do not block.
func ReadFile(path string) (Observation, error) {
	text, err := atomicfile.ReadPlain(path, FileLimit)
	if errors.Is(err, atomicfile.ErrIrregular) || errors.Is(err, atomicfile.ErrTooLong) {
		err = fmt.Errorf("%w: %w", ErrNoBeat, err)
	}
	if err != nil {
		return Observation{}, fmt.Errorf("read heartbeat: %w", err)
	}
	o, err := Parse(strings.TrimSuffix(filepath.Base(path), Suffix), text)
	if err != nil {
		return Observation{}, fmt.Errorf("read heartbeat %s: %w", path, err)
	}
	return o, nil
}

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/batchfile"
)

// execTime is how long a program has (not PIV's: ours). Then it is killed with all that it has started, where the system knows groups.
const execTime = 30 * time.Second

// exitRejected is EX_DATAERR of sysexits(3): the program rejects this message; others may work.
const exitRejected = 65

// Exec is the channel of a program: it gets one message on stdin, and has sent it when it exits with status 0. Status 65
// says that it never will; after any other the message is sent again.
type Exec struct {
	command, environ []string
	timeout          time.Duration
}

// Note is what a program gets on stdin: one JSON object and a newline.
type Note struct {
	Version int    `json:"version"` // 1
	Key     string `json:"key"`     // the same message has the same key, also when it is sent again
	Thread  string `json:"thread,omitempty"`
	// Update says that an earlier message of the thread was sent before.
	Update  bool         `json:"update"`
	Text    string       `json:"text"`
	Buttons []NoteButton `json:"buttons,omitempty"`
}

// NoteButton is an answer that a human could give.
type NoteButton struct {
	Label string `json:"label"`
	Data  string `json:"data"` // see [Callback]
}

// NewExec returns the channel of a program with its arguments; no shell is between. It starts nothing. environ nil: it gets an empty one.
func NewExec(command, environ []string) (*Exec, error) {
	if len(command) == 0 || command[0] == "" {
		return nil, errors.New("exec: the command is missing")
	}
	return &Exec{command, environ, execTime}, nil
}

// Check returns the path of the program.
func (x *Exec) Check(context.Context) (path string, err error) {
	if path, err = exec.LookPath(x.command[0]); err != nil {
		return "", &SendError{Failure: Refused, Err: err}
	}
	return path, nil
}

// Send runs the program. Its messages have no ids.
func (x *Exec) Send(ctx context.Context, m Message) (ref string, err error) {
	note := Note{Version: 1, Key: m.Key, Thread: m.Thread, Update: m.Follows, Text: m.Text.Body}
	for _, row := range m.Buttons {
		for _, b := range row {
			note.Buttons = append(note.Buttons, NoteButton{b.Label, b.Callback.String()})
		}
	}
	in, err := json.Marshal(note)
	if err != nil {
		return "", &SendError{Failure: Rejected, Err: fmt.Errorf("exec: %w", err)}
	}
	ctx, cancel := context.WithTimeout(ctx, x.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, x.command[0], x.command[1:]...)
	cmd.Env, cmd.Stdin = x.environ, bytes.NewReader(append(in, '\n'))
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	said := &tail{limit: 300}
	cmd.Stderr = said
	cmd.WaitDelay = time.Second // its descendants may hold its streams
	alone(cmd)
	err = batchfile.Prepare(cmd)
	if err == nil {
		err = cmd.Run()
	}
	return "", x.failure(ctx, err, said.String())
}

// failure classifies the exit of the program.
func (x *Exec) failure(ctx context.Context, err error, said string) error {
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // it has ended well, and left something running
		return nil
	}
	failure := &SendError{Failure: Unreachable, Err: fmt.Errorf("%s: %w", x.command[0], err)}
	if said = strings.TrimSpace(said); said != "" {
		failure.Err = fmt.Errorf("%w: %s", failure.Err, Redact(said))
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		failure.Unsure = true // it was ended on the way
	case !errors.As(err, &exit):
		failure.Failure = Refused // it could not be started: a user has to fix that
	case exit.ExitCode() == exitRejected:
		failure.Failure = Rejected
	}
	return failure
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	buf   []byte
}

// Write keeps the last bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	t.buf = t.buf[max(0, len(t.buf)-t.limit):]
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.buf), "") }

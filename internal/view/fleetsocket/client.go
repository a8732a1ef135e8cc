package fleetsocket

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"syscall"

	"github.com/outlive-mcp/outlive/internal/view/control"
)

// lineLimit is the longest line, in bytes: a machine's state.
const lineLimit = 64 << 20

// Client asks the member of this machine.
type Client struct{ Path string } // of the socket

// Status asks how the fleet stands.
func (c Client) Status(ctx context.Context) (s Status, err error) {
	err = c.ask(ctx, http.MethodGet, "/v1/status", nil, &s)
	return s, err
}

// Leave has the member take this machine out of the fleet, and end.
func (c Client) Leave(ctx context.Context) error {
	return c.ask(ctx, http.MethodPost, "/v1/leave", nil, nil)
}

// Share says which troubles the agents here have whose cause agents of other machines may share, all of them each time, and returns the
// causes that the fleet tells people of.
func (c Client) Share(ctx context.Context, list []Trouble) (left []string, err error) {
	var l ShareAnswer
	err = c.ask(ctx, http.MethodPost, "/v1/share", list, &l)
	return l.Causes, err
}

// Entry has the registry of the fleet do something. An error is one of the way to the member.
func (c Client) Entry(ctx context.Context, e Entry) (a EntryAnswer, err error) {
	err = c.ask(ctx, http.MethodPost, "/v1/entry", e, &a)
	return a, err
}

// endedLine is how the last line of a stream begins.
var endedLine = []byte(`{"ended":`)

// positionLine is how a line begins that says how far a stream has come.
var positionLine = []byte(`{"position":`)

// PositionLine is such a line, with what [Ending.Position] would be.
func PositionLine(position string) []byte {
	text, _ := json.Marshal(position) // a text: no error
	return append(append(bytes.Clone(positionLine), text...), '}')
}

// EndedLine is the last line of a stream.
func EndedLine(e *Ending) []byte {
	text, _ := json.Marshal(e) // texts and a time: no error
	return append(append(bytes.Clone(endedLine), text...), '}')
}

// Follow hands on the lines of "outlive watch --json --state" of a host until ctx ends or the host falls silent: then the error is an
// [*Ending]. after is the position that an earlier one had, or "": with it nothing is said until the host is heard again or it ends in another
// way, and then also what has happened meanwhile.
func (c Client) Follow(ctx context.Context, host, after string, each func(line []byte)) error {
	body, err := c.do(ctx, http.MethodGet, "/v1/follow?host="+url.QueryEscape(host)+"&after="+url.QueryEscape(after), nil)
	if err != nil {
		return err
	}
	defer body.Close()
	var at struct{ Position string }
	err = lines(body, func(line []byte) error {
		switch {
		case bytes.HasPrefix(line, endedLine):
			var l struct{ Ended Ending }
			if err := json.Unmarshal(line, &l); err != nil {
				return err
			}
			return &l.Ended
		case bytes.HasPrefix(line, positionLine):
			return json.Unmarshal(line, &at)
		}
		each(line)
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var e *Ending
	if errors.As(err, &e) {
		return err
	}
	return &Ending{Word: NoMember, Why: "the member of this machine has ended", Position: at.Position}
}

// Run has outlive on a host do something. What it writes is handed on as it comes; the first line of out is "outlive VERSION". The
// error is an [*Ending] if there is no exit status.
func (c Client) Run(ctx context.Context, o Command, out, errs io.Writer) (exit int, err error) {
	body, err := c.do(ctx, http.MethodPost, "/v1/run", o)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	ended := false
	err = lines(body, func(line []byte) error {
		var f Frame
		if err := json.Unmarshal(line, &f); err != nil {
			return err
		}
		_, err1 := out.Write(f.Out)
		_, err2 := errs.Write(f.Err)
		if f.Ended != nil {
			return f.Ended
		}
		if f.Exit != nil {
			exit, ended = *f.Exit, true
		}
		return errors.Join(err1, err2)
	})
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case err == nil && !ended:
		err = &Ending{Word: NoMember, Why: "the member of this machine has ended"}
	}
	return exit, err
}

func lines(body io.Reader, each func([]byte) error) error {
	s := bufio.NewScanner(body)
	s.Buffer(nil, lineLimit)
	for s.Scan() {
		if err := each(s.Bytes()); err != nil {
			return err
		}
	}
	return s.Err()
}

// whyNoMember says what to do where nobody answers at the socket.
func whyNoMember(err error) string {
	const todo = "outlive fleet join starts it; if this machine has joined no fleet yet, outlive fleet join ADDRESS --token TOKEN"
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return "no member of a fleet runs here: " + todo
	}
	return fmt.Sprintf("the member of this machine does not answer (%v): %s", err, todo)
}

// ask sends a request and reads the one answer; nil: there is no question, or no answer.
func (c Client) ask(ctx context.Context, method, path string, question, answer any) error {
	body, err := c.do(ctx, method, path, question)
	if err != nil {
		return err
	}
	defer body.Close()
	if answer == nil {
		return nil
	}
	return json.NewDecoder(body).Decode(answer)
}

// do sends a request.
func (c Client) do(ctx context.Context, method, path string, question any) (io.ReadCloser, error) {
	resp, err := control.Send(ctx, c.Path, method, path, nil, question)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &Ending{Word: NoMember, Why: whyNoMember(err)}
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return nil, fmt.Errorf("the member of this machine: %s", bytes.TrimSpace(text))
	}
	return resp.Body, nil
}
